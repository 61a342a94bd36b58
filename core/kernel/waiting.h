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

/* Records of waiting threads in the kernel half (bpf/off_cpu.bpf.c), for user space to add and
 * remove. All thread ids are those of this process's PID namespace. */

struct waiting_start {
	uint64_t since_ns; /* CLOCK_MONOTONIC */
	uint64_t exec_ns;  /* time for which the thread had run; 0: unknown */
	uint32_t state;	   /* enum thread_state */
};

/* Adds a record that the thread waits, unless the kernel half has one. Returns 0 or the kernel's
 * -errno. */
int waiting__put(const struct kernel_half *half, uint32_t tid, const struct waiting_start *start);

/* Reads the record of a thread. Returns false if there is none, or if the thread runs. */
bool waiting__get(const struct kernel_half *half, uint32_t tid, struct waiting_rec *ret);

/* Removes the record of a thread and returns it in *@ret. Returns false if there is none, or if the
 * thread runs. */
bool waiting__take(const struct kernel_half *half, uint32_t tid, struct waiting_rec *ret);

/* Checks for threads without restartable sequences in targets, in the kernel half, if the session
 * depends on that (bpf/off_cpu_before.bpf.c). */
int waiting__note_rseq(const struct kernel_half *half, struct err *err);

/* Lists the present state of all threads of targets. The caller frees *@ret_list. */
int waiting__list(const struct kernel_half *half, struct waiting_thread **ret_list, size_t *ret_n,
		  struct err *err);

/* A lister for repeated use: the kernel verifies its program only once. */
struct waiting_lister;
int waiting_lister__new(const struct kernel_half *half, struct waiting_lister **ret,
			struct err *err);
int waiting_lister__list(const struct waiting_lister *lister, struct waiting_thread **ret_list,
			 size_t *ret_n, struct err *err);
void waiting_lister__free(struct waiting_lister *lister); /* NULL is fine */

/* Lists the system calls and the waits for locks that are under way (bpf/under_way.bpf.c). @taken:
 * the kernel half will not sample them when they end. The caller frees *@ret_list. */
int waiting__calls(struct kernel_half *half, bool taken, struct call_rec **ret_list, size_t *ret_n,
		   struct err *err);

#endif
