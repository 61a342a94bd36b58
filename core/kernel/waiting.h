/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_WAITING_H
#define BRAID_WAITING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/under_way.h"
#include "bpf/waiting.h"
#include "core/base/err.h"
#include "core/kernel/kernel_half.h"

/* Threads that wait, as user space puts them into the kernel half's notes (bpf/off_cpu.bpf.c) and
 * takes them out. All is by thread ids of this process's PID namespace. */

struct waiting_start {
	uint64_t since_ns; /* CLOCK_MONOTONIC */
	uint64_t exec_ns;  /* for which the thread had run; 0: unknown */
	uint32_t state;	   /* enum thread_state */
};

/* Notes that the thread waits; what the kernel half knows of it counts more. -errno of the kernel.
 */
int waiting__put(const struct kernel_half *half, uint32_t tid, const struct waiting_start *start);

/* The note of a thread. False: there is none, or it runs. */
bool waiting__get(const struct kernel_half *half, uint32_t tid, struct waiting_rec *ret);

/* Takes the note of a thread out. False: there is none, or it runs. */
bool waiting__take(const struct kernel_half *half, uint32_t tid, struct waiting_rec *ret);

/* Where that depends on it (bpf/off_cpu_before.bpf.c): has the kernel half look whether there are
 * threads without restartable sequences among those of targets. */
int waiting__note_rseq(const struct kernel_half *half, struct err *err);

/* All threads of targets as they stand. `ret_list` is the caller's to free. */
int waiting__list(const struct kernel_half *half, struct still_thread **ret_list, size_t *ret_n,
		  struct err *err);

/* The same for who lists them again and again: the kernel checks the program but once. */
struct waiting_lister;
int waiting_lister__new(const struct kernel_half *half, struct waiting_lister **ret,
			struct err *err);
int waiting_lister__list(const struct waiting_lister *lister, struct still_thread **ret_list,
			 size_t *ret_n, struct err *err);
void waiting_lister__free(struct waiting_lister *lister); /* NULL is fine */

/* The system calls and waits for locks that are under way (bpf/under_way.bpf.c). `taken`: the
 * kernel half does not sample them any more when they end. `ret_list` is the caller's to free. */
int waiting__calls(struct kernel_half *half, bool taken, struct call_rec **ret_list, size_t *ret_n,
		   struct err *err);

#endif
