/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_THREADS_H
#define BRAID_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind_rule.h"

/* Threads and children of live processes, read from /proc without a stop. */

#define THREAD_KERNEL_BYTES 8192
#define THREAD_NO_CALL	    (-1)

struct thread_now {
	uint32_t tid, inner_tid; /* inner_tid: in its own PID namespace */
	char name[16];
	char state;	   /* 'R', 'S', 'D', 'T', 't', 'I', 'Z', 'X'; 0: it is gone */
	bool off_cpu;	   /* the following fields are valid */
	int call;	   /* number of its system call; THREAD_NO_CALL */
	uint64_t args[6];  /* arguments of the call */
	uint64_t sp, pc;   /* in user space; 0: unknown */
	uint64_t switches; /* number of context switches */
	uint32_t cpu;	   /* last CPU that it ran on */
};

/* Lists the threads of a process, ascending. The caller must free the list. Returns 0, -ESRCH,
 * -ENOMEM, or errors of opendir(). */
int threads__list(uint32_t pid, uint32_t **ret, size_t *ret_n);

/* Reads the state of a thread. Returns false if it is gone. If it is not visible to braid,
 * @ret->off_cpu is false. */
bool thread__read(uint32_t pid, uint32_t tid, struct thread_now *ret);

/* Returns true if the thread did not run between these two readings, and waited all the time. */
bool thread__has_not_run(const struct thread_now *a, const struct thread_now *b);

/* Reads the thread's kernel frames in the format of /proc/PID/task/TID/stack: a line each,
 * innermost first. "": not permitted (needs CAP_SYS_ADMIN), or none. */
void thread__kernel_stack(uint32_t pid, uint32_t tid, char ret[THREAD_KERNEL_BYTES]);

/* Returns the time in ns for which the thread has not run; 0: unknown. The thread must be off the
 * CPU. */
uint64_t thread__waited_ns(uint32_t pid, const struct thread_now *thread);

/* Adds the descendants of the processes in the list, each once. The array is malloc'ed. Returns 0
 * or -ENOMEM. */
int processes__add_children(uint32_t **pids, size_t *n);

#endif
