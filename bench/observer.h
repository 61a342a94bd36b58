/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OBSERVER_H
#define BRAID_OBSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "runtimes/runtime.h"

/* One recording or counting of a process or of a command, in a separate child process, so that
 * memory and CPU time are measured separately. The child leads a process group that contains the
 * command: Ctrl-C reaches neither the child nor the command. Both end with this process, however it
 * ends. */
struct observer;

#define OBSERVED_SOURCES_MAX  8
#define OBSERVED_REASON_BYTES 400

struct observer_opts {
	const struct runtime *const *runtimes; /* all runtimes of braid, NULL-terminated */
	uint32_t enabled;		       /* bit n: runtimes[n] is enabled */
	uint32_t pid;			       /* process to observe; unused with a command */
	char *const *command; /* command to run, its output to /dev/null; NULL: none */
	bool nothing;	      /* only run the command, held and released in the same way */
	enum unwind_mode unwind;
	enum runtime_source source; /* RUNTIME_SOURCE_CALLS: count calls */
	uint32_t frequency_hz;	    /* unused for calls */
	double duration_s;	    /* 0: until observer__stop() or the target's end */
	const char *callee; /* calls: counts functions whose name ends with this; NULL: all */
};

/* The source of a runtime's frames, as tracker_source_fn reports it. */
struct observed_source {
	char runtime[16], version[RUNTIME_VERSION_BYTES], source[16];
	char reason[OBSERVED_REASON_BYTES];
};

struct observation {
	double duration_s; /* wall time; for a command from its entry point to its end */
	uint64_t samples, complete, lost;
	uint64_t calls;			   /* counted calls, with RUNTIME_SOURCE_CALLS */
	double run_cpu_s;		   /* braid's own CPU time while the target ran */
	double own_cpu_s;		   /* braid's own CPU time, from beginning to end */
	uint64_t sampler_runs, sampler_ns; /* kernel half's program; 0: no BPF statistics */
	uint64_t memory_bytes;		   /* braid's own memory: maximum resident, plus BPF maps */
	struct observed_source sources[OBSERVED_SOURCES_MAX]; /* each once */
	size_t n_sources;
	/* Results of a command that ended. CPU time includes the children that it waited for. */
	double command_cpu_s;
	int command_status; /* as from wait() */
};

/* Starts an observation. Returns 0 when all is attached and the command is released, or a negative
 * errno as session__open(). */
int observer__start(const struct observer_opts *opts, struct observer **ret, struct err *err);

/* Ends the observation if it still runs, and detaches everything. Frees @observer. Kills a command
 * that still runs. */
int observer__stop(struct observer *observer, struct observation *ret, struct err *err);

/* Waits until the observation ends. Frees @observer. Returns -EINTR if @signal_fd (a signalfd, or
 * -1) became readable; observer and command are then killed. */
int observer__wait(struct observer *observer, int signal_fd, struct observation *ret,
		   struct err *err);

/* Returns the first reported source of this runtime, or NULL. */
const struct observed_source *observation__source(const struct observation *observation,
						  const char *runtime);

#endif
