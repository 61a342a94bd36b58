/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_THREADS_H
#define BRAID_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind_rule.h"

/* Threads and children of live processes as /proc tells of them, which stops none of them. */

#define THREAD_KERNEL_BYTES 8192
#define THREAD_NO_CALL	    (-1)

struct thread_now {
	uint32_t tid, inner_tid; /* the latter in its own PID namespace */
	char name[16];
	char state;	   /* 'R', 'S', 'D', 'T', 't', 'I', 'Z', 'X'; 0: it is gone */
	bool off_cpu;	   /* what follows is known */
	int call;	   /* number of the system call that it is in; THREAD_NO_CALL */
	uint64_t args[6];  /* of the call */
	uint64_t sp, pc;   /* in user space; 0: there is nothing to be known */
	uint64_t switches; /* how often it has left a CPU */
	uint32_t cpu;	   /* that it ran on last */
};

/* Its threads, ascending; for the caller to free. 0, -ESRCH, -ENOMEM, or as of opendir. */
int threads__list(uint32_t pid, uint32_t **ret, size_t *ret_n);

/* False: it is gone. Of what braid may not see, `off_cpu` stays false. */
bool thread__read(uint32_t pid, uint32_t tid, struct thread_now *ret);

/* Has it not run between these two readings, and did it wait all the time? */
bool thread__stood_still(const struct thread_now *a, const struct thread_now *b);

/* Its frames in the kernel, as /proc/PID/task/TID/stack writes them: a line each, innermost first.
 * "": not permitted (that takes CAP_SYS_ADMIN), or none. */
void thread__kernel_stack(uint32_t pid, uint32_t tid, char ret[THREAD_KERNEL_BYTES]);

/* For how many ns it has not run; 0: not known. Of one that is off the CPU. */
uint64_t thread__waited_ns(uint32_t pid, const struct thread_now *thread);

/* Adds the processes that those in the list have started, and what these have, each once; the
 * array is malloc'ed. 0 or -ENOMEM. */
int processes__add_children(uint32_t **pids, size_t *n);

#endif
