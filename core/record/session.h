/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SESSION_H
#define BRAID_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/capture/capture.h"
#include "core/events/events.h"
#include "core/live/live_profile.h"
#include "core/profile/profile.h"
#include "core/record/activity.h"
#include "core/record/trigger.h"
#include "core/service/recording_dir.h"
#include "core/target/scope.h"
#include "runtimes/runtime.h"

/* One recording from beginning to end: open, run, close. */
struct session;

struct session_progress {
	double elapsed_s;
	uint64_t samples, lost;
	double own_cpu_percent; /* percent of one CPU, since the last call */
	uint32_t unread;	/* processes that braid lacks CPU to read */
};

/* The measures that enforced --max-overhead. */
struct session_limit {
	double max_percent;   /* percent of this machine; 0: no limit */
	double exceeded_s;    /* seconds from the start to the detachment of all probes */
	const char *exceeded; /* the reason in a sentence; NULL: probes stayed attached */
	uint32_t lowest_hz;   /* lowest rate of samples; 0: it was never reduced */
};

/* Processes of a scope that braid could not read in time for lack of CPU. */
struct session_lag {
	uint32_t unread; /* largest number of unread processes at a time; 0: none */
	double seconds;	 /* time in which processes were unread */
};

/* One recording after the other, in a directory of bounded size. */
struct session_rotation {
	double seconds;	     /* length of each recording; 0: one recording, and no directory */
	uint32_t keep;	     /* largest number of recordings */
	uint64_t keep_bytes; /* largest sum; 0: unlimited */
};

struct session_opts {
	const struct runtime *const *runtimes; /* all runtimes, NULL-terminated */
	uint32_t enabled;		       /* bit n: runtimes[n] is enabled */
	const uint32_t *pids;		       /* either these ... */
	size_t n_pids;
	char *const *command;	  /* ... or this, NULL-terminated, started by the session */
	struct scope_opts scope;  /* ... or any process in this scope */
	bool no_children;	  /* without the children of those processes */
	double duration_s;	  /* 0: until a signal or the targets' end */
	struct event_list events; /* empty: cpu, if anything */
	uint32_t frequency_hz;	  /* rate of events by the clock */
	uint64_t period;	  /* other events: one in `period` is sampled; 0: each */
	uint64_t bytes;	 /* events sampled by bytes: one sample in this many bytes; 0: each */
	bool no_preload; /* alloc:usdt: the command gets no sampler */
	const struct trigger_place *trigger; /* NULL: the events; else instead of them */
	uint32_t ring_bytes;  /* size of the ring buffer, a power of two, in pages; 0: default */
	uint32_t table_bytes; /* memory for unwind tables; 0: default */
	enum unwind_mode unwind;
	enum runtime_source source; /* RUNTIME_SOURCE_CALLS: count calls, take no samples */
	const char *output;	    /* a file, or the directory; NULL: no recording is written */
	struct session_rotation rotation;
	const char *metrics; /* destination of braid's own figures, as metrics__open; NULL: none */
	struct live_profile *live; /* takes all samples instead of a recording; NULL: none */
	bool force;		   /* overwrite whatever `output` is */
	/* Limit of the cost of probes, in percent of all CPUs' time; 0: none. `insist`: the session
	 * fails if the limit cannot be enforced, and lowers the sampling rate if braid itself
	 * exceeds it. */
	double max_overhead_percent;
	bool insist;

	/* Decides whether a record of the ring is captured; with it each sample has its stack.
	 * NULL: all are captured. */
	bool (*filter)(void *ctx, const void *data, size_t size);

	/* All may be NULL. */
	tracker_source_fn on_source;
	void (*on_note)(void *ctx, const char *text); /* a sentence for the user */
	void (*on_progress)(void *ctx, const struct session_progress *progress); /* 1/s */
	void *ctx;
};

enum session_end {
	SESSION_DURATION,
	SESSION_SIGNAL,
	SESSION_TARGETS_ENDED,
	SESSION_EXCEEDED, /* calls cannot be counted any more: --max-overhead */
};

#define SESSION_NAMELESS_FILES 3

/* Native code addresses in stacks, by how they are named. */
struct session_nameless {
	uint64_t addresses, nameless; /* all; those of functions that no symbol names */
	/* Files with at least a tenth of `nameless`, in falling order; borrowed. NULL: no more. */
	const struct image *images[SESSION_NAMELESS_FILES];
};

/* Returns the value of --unwind for an enum unwind_mode; NULL: there is no such mode. */
const char *session__unwind_name(int mode);

struct session_summary {
	double duration_s, own_cpu_s;
	const struct capture_stats *stats; /* sums over the recording's samples ... */
	uint64_t samples_lost;		   /* ... and the samples that could not be written */
	struct compiled_stats compiled;
	uint64_t counters[COUNTERS_N];
	const struct unread_files *unread;
	const struct tracker_forbidden *forbidden;
	const struct recording_dir_stats *files; /* the directory's; NULL: one file */
	size_t table_bytes, table_max_bytes; /* kernel memory used by unwind tables; its limit */
	const struct images_stats *images;
	struct session_nameless nameless;
	struct session_limit limit;
	struct session_lag lag;
	struct kernel_half_economy economy;  /* with samples of events that can be frequent */
	const char *event_notes[EVENTS_MAX]; /* results of events__note; number n is at n - 1 */
	const char *event_late[EVENTS_MAX];  /* results of events__late; likewise */
	/* Number and duration of runs of the sampling program while the kernel's BPF statistics
	 * were on. */
	uint64_t sampler_runs, sampler_ns;
	enum session_end end;
	struct activity activity; /* with less than ACTIVITY_SAMPLES samples; else empty */
	int command_pid;	  /* 0: none, or ended */
	int command_status;	  /* as from wait */
};

/* Checks everything, then begins to sample. On failure nothing is left behind: no file, no probe,
 * no child. Returns 0, or a negative errno with the message in @err: -EINVAL for targets that
 * cannot be profiled, -ESRCH, -EPERM, -EEXIST, ... */
int session__open(const struct session_opts *opts, struct session **ret_session, struct err *err);

/* Records until the duration is over, all targets have ended, or SIGINT, SIGTERM or SIGHUP arrives.
 * On failure (disk full) the committed part stays readable. */
int session__run(struct session *session, struct err *err);

/* Runs one round of session__run(): it waits up to 100 ms for events, and handles them. */
int session__step(struct session *session, bool *ret_over, struct err *err);

/* Adds waits that have not ended to the live profile, up to now, if waiting is an event. They count
 * until the next call, or the end of the session. */
int session__look_at_waits(struct session *session, struct err *err);

/* Names all frames without a name, so that a live profile can be shown. */
int session__name_frames(struct session *session, struct err *err);

/* Requests the symbols of stripped files from the servers of DEBUGINFOD_URLS, and names their
 * frames again. A signal ends it, without a failure. */
int session__fetch_names(struct session *session, struct err *err);

/* Returns true if SIGINT, SIGTERM or SIGHUP has arrived, also after session__finish. */
bool session__has_signal(const struct session *session);

/* Returns the target in words: "pid 4711 (python3 app.py)". Borrowed. */
const char *session__target(const struct session *session);

/* Returns the number of recorded processes below those of -p that were running when the session
 * began. */
unsigned session__children(const struct session *session);

/* Return the number of samples that were taken until now, including lost samples, and of samples
 * that were recorded. */
uint64_t session__taken(const struct session *session);
uint64_t session__recorded(const struct session *session);

/* Stops sampling, writes the rest and closes the recording. Called once, also after a failed run;
 * the recording is then valid up to its last commit. `ret_summary` is valid until session__free. */
int session__finish(struct session *session, struct session_summary *ret_summary, struct err *err);

/* Returns the counts of a RUNTIME_SOURCE_CALLS session after session__finish; the caller frees
 * them. `lines`: functions with equal names are different if they begin at different lines. */
int session__calls(struct session *session, bool lines, struct profile **ret_profile,
		   struct err *err);

/* Returns the command's PID, while it has not ended; 0: none. */
int session__command_pid(const struct session *session);
void session__free(struct session *session); /* NULL is fine */

#endif
