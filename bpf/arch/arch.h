/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_ARCH_H
#define BRAID_ARCH_H

/* The machine for which the kernel half is built. User space includes its register numbers, too.
 * Another machine adds a header like x86_64.h and a branch here. The machine of a target's files
 * and core files is a value instead: core/arch/arch.h. */

#if defined(__TARGET_ARCH_x86) || defined(__x86_64__)
#include "bpf/arch/x86_64.h"
#else
#error "bpf/arch has no header for this machine"
#endif

#endif
