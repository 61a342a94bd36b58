/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_HALF_H
#define BRAID_TESTS_REPLAY_HALF_H

/* The kernel half built for the host (bpf/host), behind the interfaces by which the user half
 * reaches the real one: core/kernel/kernel_half.h, and the functions of libbpf that work on maps. A
 * program that links half.c uses these instead of the kernel's, and needs no privilege. */

/* Makes all maps, which are empty. */
void half__open(void);

/* Empties the maps, except for the table arena, whose tables may serve the next process. */
void half__reset(void);

void half__close(void);

#endif
