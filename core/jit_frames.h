/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JIT_FRAMES_H
#define BRAID_JIT_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "core/naming.h"
#include "core/recording.h"
#include "core/tracker.h"

/* Frames of code that no file backs: which code it was that had the address when the sample was
 * taken, and what it is called. The name may be known only later, or never. */
struct jit_frames;

struct jit_frames_opts {
	struct recording *recording;
	struct tracker *tracker;
	struct naming *naming;
	const struct runtime *const *runtimes;
	struct runtime_session *const *sessions; /* per runtime; NULL where not enabled or none */
	uint32_t enabled;			 /* bit n: runtimes[n] is wanted */
	tracker_source_fn on_source;		 /* what the user should know; may be NULL */
	void *ctx;
};

struct jit_frames_stats {
	uint64_t places, named;	   /* distinct addresses of compiled code that no walker names, and
				    * those with a name */
	uint64_t symbols, skipped; /* of maps; and what in them made no sense or found no room */
};

int jit_frames__new(const struct jit_frames_opts *opts, struct jit_frames **ret); /* -ENOMEM */
void jit_frames__free(struct jit_frames *jit); /* NULL is fine; before the tracker's end */

/* Reads all that a process has told of its code until now. For those that run already. */
int jit_frames__begin(struct jit_frames *jit, struct process *process, struct err *err);

/* The frame of an address that no image holds, in the process whose row has the id. `mapped` is
 * what is there, NULL for nothing. 0 or a negative errno. */
int jit_frames__get(struct jit_frames *jit, struct process *process, uint32_t process_id,
		    const struct mapped *mapped, uint64_t address, uint64_t time_ns,
		    uint32_t *ret_id, struct err *err);

/* Reads what the process has told of its code until `time_ns`. As long as the number is the same,
 * jit_frames__get gives the same frames. -ENOMEM. */
int jit_frames__version(struct process *process, uint64_t time_ns, uint32_t *ret_version,
			struct err *err);

/* Once a second, after naming__run: names what can be named by now. The `last` time waits a little
 * for processes that are asked for their maps. */
int jit_frames__run(struct jit_frames *jit, bool last, struct err *err);

/* A child has been forked, which goes on in a copy of its parent's code. */
int jit_frames__forked(struct jit_frames *jit, struct process *parent, struct process *child,
		       uint64_t time_ns, struct err *err);

/* The process is gone, or executes something else: names what its files still tell. */
int jit_frames__ended(struct jit_frames *jit, struct process *process, struct err *err);

void jit_frames__stats(const struct jit_frames *jit, struct jit_frames_stats *ret);

#endif
