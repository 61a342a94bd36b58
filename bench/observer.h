/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OBSERVER_H
#define BRAID_OBSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "runtimes/runtime.h"

/* One recording or counting of a process or of a command, in a child process of its own, so that
 * its memory and CPU time are its own, too. The child leads a process group, which the command is
 * in: Ctrl-C reaches neither. However this process ends, both end with it. */
struct observer;

#define OBSERVED_SOURCES_MAX  8
#define OBSERVED_REASON_BYTES 400

struct observer_opts {
	const struct runtime *const *runtimes; /* all known, NULL-terminated */
	uint32_t enabled;		       /* bit n: runtimes[n] is wanted */
	uint32_t pid;			       /* either this ... */
	char *const *command;		       /* ... or this, its output to /dev/null */
	bool nothing; /* only run the command, held and let go the same way */
	enum unwind_mode unwind;
	enum runtime_source source; /* RUNTIME_SOURCE_CALLS: count calls */
	uint32_t frequency_hz;	    /* not for calls */
	double duration_s;	    /* 0: until observer__stop or the target's end */
	const char *callee; /* calls: count those of functions whose name ends so; NULL: of all */
};

/* Where a runtime's frames come from: as tracker_source_fn reports it. */
struct observed_source {
	char runtime[16], version[RUNTIME_VERSION_BYTES], source[16];
	char reason[OBSERVED_REASON_BYTES];
};

struct observation {
	double duration_s; /* a command's wall time: from its entry point to its end */
	uint64_t samples, complete, lost;
	uint64_t calls;			   /* of RUNTIME_SOURCE_CALLS */
	double run_cpu_s;		   /* own, while the target ran */
	double own_cpu_s;		   /* own, from beginning to end */
	uint64_t sampler_runs, sampler_ns; /* of the kernel half's program; 0: no BPF statistics */
	uint64_t memory_bytes;		   /* own: the most that was resident, and of BPF maps */
	struct observed_source sources[OBSERVED_SOURCES_MAX]; /* each once */
	size_t n_sources;
	/* Of a command that has ended, with the children that it waited for. */
	double command_cpu_s;
	int command_status; /* as from wait */
};

/* Returns when all is attached, and the command was let go. -EPERM, ... as session__open. */
int observer__start(const struct observer_opts *opts, struct observer **ret, struct err *err);

/* Ends it, if it has not by itself, and takes back all that it has attached. Frees it. A command
 * that has not ended is killed. */
int observer__stop(struct observer *observer, struct observation *ret, struct err *err);

/* Until it ends by itself; frees it. -EINTR: `signal_fd` (a signalfd, or -1) became readable; then
 * observer and command were killed. */
int observer__wait(struct observer *observer, int signal_fd, struct observation *ret,
		   struct err *err);

/* The first source of this runtime that was reported, or NULL. */
const struct observed_source *observation__source(const struct observation *observation,
						  const char *runtime);

#endif
