// SPDX-License-Identifier: GPL-2.0-or-later
#include "bpf/host/shim.h"

#include "bpf/node_unwind.bpf.c"
