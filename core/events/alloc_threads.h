/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ALLOC_THREADS_H
#define BRAID_ALLOC_THREADS_H

#include <sys/types.h>

#include "core/kernel/kernel_half.h"

/* What windows need to know of the targets' threads beside their calls (bpf/alloc.bpf.c): how far
 * each has got, and by a clock what share of their time probes take. */
struct alloc_threads;

int alloc_threads__new(const struct kernel_half *half, struct alloc_threads **ret, struct err *err);
void alloc_threads__free(struct alloc_threads *threads); /* NULL is fine */

/* Has the kernel half look at all of them, or at those of one process (-1: all), as its
 * alloc_window says. */
void alloc_threads__visit(struct alloc_threads *threads, pid_t pid);

/* What a tick of the clock takes of a thread, as measured: on virtual machines more than 10 us. */
uint64_t alloc_threads__tick_ns(const struct alloc_threads *threads);

void alloc_threads__tick(const struct alloc_threads *threads, bool run);

#endif
