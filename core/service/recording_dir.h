/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_DIR_H
#define BRAID_RECORDING_DIR_H

#include "core/store/recording.h"

/* A directory that one recorder fills with recordings, one after the other (recording_name.h). A
 * file that is being written has a suffix of its own, and gets its name when it is whole; the
 * oldest ones go when there are too many.
 *
 * The directory is braid's: it is made, mode 0700, or was empty, and a file in it says so, which is
 * locked as long as a recorder fills it. In it, nothing goes but what has a recording's name.
 *
 * All functions return 0 or a negative errno with a sentence in `err`. */
struct recording_dir;

struct recording_dir_opts {
	const char *path;    /* borrowed */
	uint32_t keep;	     /* so many finished recordings at most; at least 1 */
	uint64_t keep_bytes; /* and bytes of all files; 0: any */
	void (*on_note)(void *ctx, const char *text); /* what the user should know; may be NULL */
	void *ctx;
};

/* Takes the directory, and finishes what a recorder that was killed has left in it. -EEXIST: it is
 * not braid's; -EBUSY: another braid fills it; -EACCES: others may write into it. */
int recording_dir__open(const struct recording_dir_opts *opts, struct recording_dir **ret,
			struct err *err);
/* Finishes what is being written. NULL is fine. */
void recording_dir__free(struct recording_dir *dir);

/* Where there is no room on the disk, these remove the oldest recording, say so and try again:
 * -ENOSPC means that there was nothing more to remove. The recording is the directory's, borrowed
 * until the next call of one of the last four. */

/* The first recording. */
int recording_dir__begin(struct recording_dir *dir, struct recording **ret, struct err *err);

/* Commits it. */
int recording_dir__commit(struct recording_dir *dir, struct err *err);

/* The next recording, after which the last one is completed and gets its name. On failure `*ret` is
 * set if there is a next one, which is to be used then: of the last one, not all could be written.
 */
int recording_dir__turn(struct recording_dir *dir, struct recording **ret, struct err *err);

/* Completes the last one. Idempotent. */
int recording_dir__finish(struct recording_dir *dir, struct err *err);

/* Before its first commit: as if there had not been one. */
void recording_dir__discard(struct recording_dir *dir);

struct recording_dir_stats {
	uint64_t finished;     /* recordings, since recording_dir__open */
	uint64_t dropped;      /* the same: that went, as there were too many */
	uint64_t dropped_full; /* as the disk was full */
	size_t files;	       /* finished ones that there are */
	uint64_t bytes;	       /* of these */
	uint64_t bytes_now;    /* of the one that is being written, at its last commit */
};
const struct recording_dir_stats *recording_dir__stats(const struct recording_dir *dir);

#endif
