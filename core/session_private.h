/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SESSION_PRIVATE_H
#define BRAID_SESSION_PRIVATE_H

/* Shared by session.c (the beginning and the end) and session_run.c (what is between). */

#include <poll.h>
#include <signal.h>

#include "core/child.h"
#include "core/mmap_events.h"
#include "core/session.h"
#include "core/wordspace.h"

#define TARGET_BYTES 400

struct session {
	struct session_opts opts;
	struct kernel_half *half;
	struct wordspace *wordspace;
	struct images *images;
	struct runtime_session *sessions[RUNTIMES_MAX];
	struct tracker *tracker;
	struct recording *recording;
	struct capture *capture;
	struct ring_buffer *ring;
	struct mmap_events *mmap_events; /* NULL: not to be had */
	struct child child;
	int command_status;
	sigset_t old_signals;
	int signal_fd;
	uint64_t start_ns, last_tick_ns;
	double last_cpu_s;
	struct pollfd *polled; /* POLLED_FIRST others, then the processes in `watched` */
	struct process **watched;
	size_t n_watched, cap_polled, cap_watched;
	enum session_end end;
	char *cache_dir;
	char target[TARGET_BYTES];
	struct err ring_err;
	int ring_code; /* negative: what consuming the ring returned within a callback */
	uint64_t consume_until_ns;
};

uint64_t now_ns(void);	/* CLOCK_MONOTONIC */
double own_cpu_s(void); /* user and system time of this process */

/* Records what the kernel half has sent so far, and no more: where samples come faster than they
 * can be unwound from stack copies, the ring would never be empty. */
int session__consume(struct session *session, struct err *err);
int session__consume_ring(struct session *session); /* the same, without process events */

/* Sums over all CPUs, less what was cut in the kernel half but completed from a stack copy. */
void session__counters(const struct session *session, uint64_t ret_counters[COUNTERS_N]);

/* Writes counters and figures as they are now. */
int session__write_counters(struct session *session, struct err *err);

#endif
