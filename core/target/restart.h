/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RESTART_H
#define BRAID_RESTART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* System calls that are interrupted by a stop. PTRACE_INTERRUPT wakes a thread as a signal does:
 * the call in which it waits ends, and the kernel calls it again when the thread goes on. Some
 * calls do not survive that: they return EINTR or a partial result, or change memory on the way.
 * restart.c has the table, and tests/live/dump_calls.t the experiment for each row. */

/* Condition under which the program cannot notice a stop of a thread in the call. */
enum restart_rule {
	RESTART_ALWAYS,
	RESTART_NULL,	  /* argument `arg` is NULL: no remaining time is written there */
	RESTART_NULL_ABS, /* as RESTART_NULL, or the time is absolute (TIMER_ABSTIME in argument 1)
			   */
	RESTART_WRITABLE, /* argument `arg` is NULL or writable: the remaining time is stored there
			   */
	RESTART_QUIET_FD, /* argument 0 is a pipe, eventfd, timerfd or signalfd */
};

struct restart {
	int call;
	enum restart_rule rule;
	int arg;
	const char *source; /* location in Linux 6.18 that proves it */
};

/* Returns the row of the call, or NULL: a thread in it must not be stopped. */
const struct restart *restart__find(int call);

/* A thread that is not on a CPU. */
struct restart_wait {
	uint32_t pid, tid;
	int call;	      /* THREAD_NO_CALL (threads.h): preempted, or in a page fault */
	const uint64_t *args; /* six arguments */
	bool (*is_writable)(void *ctx, uint64_t address, size_t size);
	void *ctx;
};

/* Returns true if the program cannot notice that the thread is stopped now. Callers that
 * stop threads of targets (dump, hold) have no list of their own. */
bool restart__is_invisible(const struct restart_wait *wait);

/* Returns true if a call that returns EINTR has had no effect. Repeating it is then as if it had
 * not been interrupted. */
bool restart__may_repeat(int64_t call);

#endif
