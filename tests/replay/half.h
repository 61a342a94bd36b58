/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_HALF_H
#define BRAID_TESTS_REPLAY_HALF_H

/* The kernel half built for the host (bpf/host), behind the interfaces by which the user half
 * reaches the real one: core/kernel_half.h, and those functions of libbpf that work on maps. A
 * program that links half.c has these instead of the kernel's; it needs no privilege. */

/* Maps are there and empty; what an earlier call left is gone. */
void half__open(void);
void half__close(void);

#endif
