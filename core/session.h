/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SESSION_H
#define BRAID_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/capture.h"
#include "core/err.h"
#include "runtimes/runtime.h"

/* One recording from beginning to end: open, run, close. */
struct session;

struct session_progress {
	double elapsed_s;
	uint64_t samples, lost;
	double own_cpu_percent; /* of one CPU, since the last call */
};

struct session_opts {
	const struct runtime *const *runtimes; /* all known, NULL-terminated */
	uint32_t enabled;		       /* bit n: runtimes[n] is wanted */
	const uint32_t *pids;		       /* either these ... */
	size_t n_pids;
	char *const *command; /* ... or this, NULL-terminated, started by the session */
	double duration_s;    /* 0: until a signal or the targets' end */
	uint32_t frequency_hz;
	enum unwind_mode unwind;
	const char *output;
	bool force; /* overwrite whatever `output` is */

	/* All may be NULL. */
	tracker_source_fn on_source;
	void (*on_progress)(void *ctx, const struct session_progress *progress); /* 1/s */
	void *ctx;
};

enum session_end { SESSION_DURATION, SESSION_SIGNAL, SESSION_TARGETS_ENDED };

struct session_summary {
	double duration_s, own_cpu_s;
	const struct capture_stats *stats;
	uint64_t counters[COUNTERS_N];
	size_t table_bytes; /* kernel memory of unwind tables */
	enum session_end end;
	int command_pid;    /* 0: none, or ended */
	int command_status; /* as from wait */
};

/* Checks everything, then begins to sample. On failure nothing is left behind: no file, no probe,
 * no child. -EINVAL for targets that cannot be profiled, -ESRCH, -EPERM, -EEXIST, ... with the
 * sentence in `err`. */
int session__open(const struct session_opts *opts, struct session **ret, struct err *err);

/* Until the duration is over, all targets have ended, or SIGINT, SIGTERM or SIGHUP comes. On
 * failure (disk full) what was committed stays readable. */
int session__run(struct session *session, struct err *err);

/* Stops sampling, writes what is left and closes the recording. Call once, also after a failed
 * run (then the recording keeps what it has). `ret_summary` is valid until session__free. */
int session__finish(struct session *session, struct session_summary *ret_summary, struct err *err);
void session__free(struct session *session); /* NULL is fine */

#endif
