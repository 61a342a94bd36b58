/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_DIR_H
#define BRAID_RECORDING_DIR_H

#include "core/store/recording.h"

/* A directory that one recorder fills with recordings, one after the other (recording_name.h). A
 * file that is being written has a suffix of its own, and gets its final name when it is complete.
 * If there are too many, the oldest are removed.
 *
 * The directory belongs to braid: it was created with mode 0700, or was empty. A mark file in it
 * says so, and is locked while a recorder fills the directory. Only files with names of recordings
 * are removed.
 *
 * All functions return 0, or a negative errno with a message in @err. */
struct recording_dir;

struct recording_dir_opts {
	const char *path;    /* borrowed */
	uint32_t keep;	     /* maximum number of finished recordings; at least 1 */
	uint64_t keep_bytes; /* maximum size of all files; bytes; 0: any */
	void (*on_note)(void *ctx, const char *text); /* receives notes for the user; may be NULL */
	void *ctx;
};

/* Opens the directory, and finishes recordings of a recorder that was killed. -EEXIST: it does not
 * belong to braid; -EBUSY: another braid fills it; -EACCES: other users may write into it. */
int recording_dir__open(const struct recording_dir_opts *opts, struct recording_dir **ret,
			struct err *err);
/* Finishes the present recording. NULL is fine. */
void recording_dir__free(struct recording_dir *dir);

/* If the disk is full, these functions remove the oldest recording, report that and try again. They
 * return -ENOSPC if there is nothing left to remove. The recording belongs to the directory. It is
 * borrowed until the next call of one of the last four functions. */

/* Creates the first recording. */
int recording_dir__begin(struct recording_dir *dir, struct recording **ret, struct err *err);

/* Commits the recording. */
int recording_dir__commit(struct recording_dir *dir, struct err *err);

/* Creates the next recording, then completes the last one, which gets its final name. On failure
 * *@ret is set if the next one exists, and the caller must use it: the last one may be incomplete.
 */
int recording_dir__rotate(struct recording_dir *dir, struct recording **ret, struct err *err);

/* Completes the last recording. Idempotent. */
int recording_dir__finish(struct recording_dir *dir, struct err *err);

/* Discards the recording before its first commit. */
void recording_dir__discard(struct recording_dir *dir);

struct recording_dir_stats {
	uint64_t finished;     /* recordings finished since recording_dir__open() */
	uint64_t dropped;      /* recordings removed as there were too many */
	uint64_t dropped_full; /* recordings removed as the disk was full */
	size_t files;	       /* present finished recordings */
	uint64_t bytes;	       /* size of these; bytes */
	uint64_t bytes_now;    /* size of the unfinished one at its last commit; bytes */
};
const struct recording_dir_stats *recording_dir__stats(const struct recording_dir *dir);

#endif
