// SPDX-License-Identifier: GPL-2.0
/* The unwinder's hook for HotSpot's code. */
#include "bpf/jvm_frames.bpf.h"
