/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_H
#define BRAID_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

/* Writing a recording: one SQLite file. Its schema is docs/recording.md. Everything is interned
 * here, so callers may offer the same thing again and again; ids are dense from 1, and 0 means
 * "none". Nothing is visible to readers before a commit; a commit makes all before it durable
 * against the death of this process.
 *
 * All functions return 0 or a negative errno: -ENOSPC (disk full: what was committed stays
 * readable), -ESTALE (the file was moved or removed), -EIO, -ENOMEM; `err` has the sentence. After
 * a failed call only close may follow. */

#define RECORDING_SCHEMA_VERSION 2
#define RECORDING_APPLICATION_ID 0x62726169 /* "brai" */

struct recording;

/* Creates `path`, mode 0600, the user's who called sudo, with the first commit; until that has
 * succeeded, what is there stays as it is. An existing braid recording is renamed to `path`.old
 * then, over an older one, unless another braid is writing it (-EBUSY); any other existing file is
 * refused with -EEXIST unless `force`, which replaces it. Directories (-EISDIR), symbolic links and
 * devices are always refused, and so is what would be lost or taken for a part of a recording:
 * `path`.old that is none, and a journal or write-ahead log beside either that belongs to no
 * recording (-EEXIST). Nothing is left behind on failure. NULL for `path`: in memory only. */
int recording__create(const char *path, bool force, struct recording **ret, struct err *err);

/* Commits and closes. NULL is fine. Frees in any case. */
int recording__close(struct recording *recording, struct err *err);

/* Frees and commits nothing: before the first commit, as if nothing had been. NULL is fine. */
void recording__discard(struct recording *recording);

/* Commits what came since the last commit and begins anew. */
int recording__commit(struct recording *recording, struct err *err);

/* How many samples are in the file: of all that came, those of the commits that succeeded. */
uint64_t recording__committed(const struct recording *recording);

/* Later values replace earlier ones of the same key. */
int recording__meta(struct recording *recording, const char *key, const char *value,
		    struct err *err);
/* 0 writes nothing, unless there was something: a loss that was repaired is none. */
int recording__counter(struct recording *recording, const char *name, uint64_t value,
		       struct err *err);

/* Kind numbers are the caller's (core/profile.h); once per kind. */
int recording__kind(struct recording *recording, int kind, const char *name, const char *suffix,
		    struct err *err);

struct recording_process {
	uint32_t pid, parent_pid;
	uint64_t start_ticks; /* field 22 of /proc/PID/stat: with pid, one incarnation */
	const char *name;     /* comm */
	const char *command;  /* command line, blanks between arguments */
};

/* A new row each time (exec makes a new one); not interned. */
int recording__process(struct recording *recording, const struct recording_process *process,
		       uint32_t *ret_id, struct err *err);

/* Interned by (process, tid, name): a thread that renames itself has two rows. */
int recording__thread(struct recording *recording, uint32_t process, uint32_t tid, const char *name,
		      uint32_t *ret_id, struct err *err);

/* Frame source that was chosen for a runtime in a process, and why not the ones before it. */
int recording__source(struct recording *recording, uint32_t process, const char *runtime,
		      const char *version, const char *source, const char *reason, struct err *err);

/* Interned by path and build-id (hex, "" for none). */
int recording__image(struct recording *recording, const char *path, const char *build_id,
		     uint32_t *ret_id, struct err *err);

struct recording_frame {
	int kind;
	uint32_t image;	  /* native code of a file: address is link-time; else 0 */
	uint32_t process; /* code of one process only (JIT, runtime frames); else 0 */
	uint64_t address; /* native and kernel: an instruction that belongs to the call or is the
			   * interrupted one; runtime frames: the frame key */
	bool loop;	  /* native code of an interpreter's loop; the same each time */
	/* Code of one process: which code, of those that had the address one after the other. Not
	 * stored. */
	uint32_t generation;
};

/* Interned by all fields but `loop`. `ret_new` (may be NULL) tells that it is new, so that the
 * caller will have to give it locations sooner or later. */
int recording__frame(struct recording *recording, const struct recording_frame *frame,
		     uint32_t *ret_id, bool *ret_new, struct err *err);

/* What was recorded as `id` turns out to be the code of a loop. */
int recording__frame_is_loop(struct recording *recording, uint32_t id,
			     const struct recording_frame *frame, struct err *err);

struct recording_location {
	int kind; /* differs from the frame's for inlined functions */
	const char *function;
	const char *file; /* NULL: none */
	uint32_t line;	  /* 0: unknown */
};

/* Names a frame: innermost first, the last being the function that owns the code. Once per frame,
 * or again with at least as many. */
int recording__locations(struct recording *recording, uint32_t frame,
			 const struct recording_location *locations, size_t n, struct err *err);

/* Stacks are trees of nodes: a node is a frame called by its parent's frame. parent 0: outermost.
 * `offset` is how far below the sample's stack base the frame's stack address (a native frame's
 * CFA, a runtime frame's anchor) lies, so that equal stacks of different threads are equal nodes;
 * RECORDING_NO_OFFSET where there is none (kernel frames), RECORDING_APART for a runtime frame that
 * waits on another stack than the sampled one. Interned by all three. */
#define RECORDING_NO_OFFSET INT64_MIN
#define RECORDING_APART	    (INT64_MIN + 1)
int recording__node(struct recording *recording, uint32_t parent, uint32_t frame, int64_t offset,
		    uint32_t *ret_id, struct err *err);

struct recording_sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t thread, cpu;
	uint32_t native;  /* innermost node of the native (and kernel) stack; 0: none */
	uint32_t runtime; /* innermost node of the runtime stack; 0: none */
	uint32_t flags;	  /* SAMPLE_* of bpf/shared.h */
	uint64_t weight;
};
int recording__sample(struct recording *recording, const struct recording_sample *sample,
		      struct err *err);

#endif
