/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SESSION_PRIVATE_H
#define BRAID_SESSION_PRIVATE_H

/* Shared by session.c (the beginning and the end) and session_run.c (what is between). */

#include <poll.h>
#include <signal.h>

#include "core/calls.h"
#include "core/child.h"
#include "core/governor.h"
#include "core/mmap_events.h"
#include "core/session.h"
#include "core/stopper.h"
#include "core/wordspace.h"

#define TARGET_BYTES 400
#define JIT_SKIPPED  "entries of perf maps and jitdumps not understood, or too many"

struct session {
	struct session_opts opts;
	struct kernel_half *half;
	struct wordspace *wordspace;
	struct images *images;
	struct runtime_session *sessions[RUNTIMES_MAX];
	struct tracker *tracker;
	struct recording *recording;
	struct capture *capture;
	struct capture_stats in_file; /* what is in the recording: all up to its last commit */
	struct ring_buffer *ring;
	struct mmap_events *mmap_events; /* NULL: not to be had */
	uint32_t *remapped;		 /* PIDs of processes that have mapped code */
	size_t n_remapped, cap_remapped;
	struct child child;
	int command_status;
	struct rlimit users_files; /* the limit of open files, which a command gets back */
	struct stopper *stopper;
	uint64_t start_ns, last_tick_ns, end_ns;
	double last_cpu_s;
	uint64_t woken_ns;     /* when poll had something the last time; 0: it had nothing */
	struct pollfd *polled; /* POLLED_FIRST others, then processes that are about to end */
	size_t n_polled, cap_polled;
	uint64_t lost_events; /* one more than there were when exits were last looked for */
	enum session_end end;
	char *cache_dir;
	char target[TARGET_BYTES];
	struct err ring_err;
	int ring_code; /* negative: what consuming the ring returned within a callback */
	uint64_t consume_until_ns;
	uint64_t consume_end_ns; /* when it has to look at other things again */
	bool behind;		 /* it did so before all was consumed */
	/* --max-overhead */
	struct governor *governor; /* NULL: no limit */
	uint32_t n_shadows;	   /* room in the kernel half */
	struct calls_cut cut;
	uint64_t window_ns; /* since when probes are attached; 0: they are not */
	uint64_t attached_ns;
	unsigned n_windows; /* that are over */
	struct pace pace;
	double paced_cpu_s; /* 0: the first second, when files are read, is not over */
};

double own_cpu_s(void); /* user and system time of this process */

/* The time, or that of the sampling's end. */
uint64_t session__now_ns(const struct session *session);

/* Records what the kernel half has sent so far, and no more: where samples come faster than they
 * can be unwound from stack copies, the ring would never be empty. Not all of it if that takes
 * long: then the session is `behind`, and should look at the clock first. */
int session__consume(struct session *session, struct err *err);

/* Sums over all CPUs, less what was cut in the kernel half but completed from a stack copy. */
void session__counters(const struct session *session, uint64_t ret_counters[COUNTERS_N]);

/* After the kernel half is loaded: gets ready to keep --max-overhead, if there is one. */
int session__begin_limit(struct session *session, uint32_t n_shadows, struct err *err);

/* Again and again: detaches probes that cost too much, attaches them again. */
int session__keep_limit(struct session *session, struct err *err);

/* Once a second, `elapsed_ns` after the last time: samples less often if that costs too much. */
void session__keep_pace(struct session *session, uint64_t elapsed_ns);

/* All probes are detached, for good. */
void session__end_windows(struct session *session);

void session__limit(const struct session *session, struct session_limit *ret);
int session__write_limit(struct session *session, struct err *err);
void session__end_limit(struct session *session); /* idempotent */

/* Commits the recording. */
int session__commit(struct session *session, struct err *err);

/* Writes counters and figures as they are now. */
int session__write_counters(struct session *session, struct err *err);

#endif
