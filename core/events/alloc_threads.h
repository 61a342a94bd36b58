/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ALLOC_THREADS_H
#define BRAID_ALLOC_THREADS_H

#include <sys/types.h>

#include "core/kernel/kernel_half.h"

/* Data about the targets' threads that windows need besides calls (bpf/alloc.bpf.c): the progress
 * of each thread, and, by a clock, the share of its time that probes take. */
struct alloc_threads;

int alloc_threads__new(const struct kernel_half *half, struct alloc_threads **ret, struct err *err);
void alloc_threads__free(struct alloc_threads *threads); /* NULL is fine */

/* Makes the kernel half inspect all threads, or those of one process (-1: all), as its alloc_window
 * specifies. */
void alloc_threads__visit(struct alloc_threads *threads, pid_t pid);

/* Returns the measured cost of a tick of the clock for a thread: more than 10 us on virtual
 * machines. */
uint64_t alloc_threads__tick_ns(const struct alloc_threads *threads);

void alloc_threads__tick(const struct alloc_threads *threads, bool run);

#endif
