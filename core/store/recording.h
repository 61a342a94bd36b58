/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_H
#define BRAID_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/profile/sink.h"

/* Writes a recording: one SQLite file with the schema in docs/reference/recording.md. The recorded
 * data arrive at its sink, which writes row by row and does not remember rows
 * (core/profile/sink.h). Data about the recording as a whole arrive by the functions here. Readers
 * see nothing before a commit. A commit makes everything before it durable against the death of
 * this process.
 *
 * All functions, and the sink, return 0 or a negative errno and set a message in @err. The errors
 * are -ENOSPC (disk full; committed data stay readable), -ESTALE (the file was moved or removed),
 * -EIO and -ENOMEM. After a failed call the caller may only close the recording. */

#define RECORDING_SCHEMA_VERSION 8
#define RECORDING_APPLICATION_ID 0x62726169 /* "brai" */

/* Keys of the table meta: the start of the recording by CLOCK_MONOTONIC, the difference of
 * CLOCK_REALTIME and CLOCK_MONOTONIC at that time, and the duration. */
#define META_START_NS	     "start_ns"
#define META_CLOCK_OFFSET_NS "clock_offset_ns"
#define META_DURATION_S	     "duration_s"

/* Key of the time of the machine's boot, from which process.start_ticks count: CLOCK_REALTIME less
 * CLOCK_BOOTTIME, in seconds. */
#define META_BOOT_S "boot_s"

/* Key of the number of files for which debug servers received a request. */
#define META_SYMBOLS_QUERIED "symbols_asked"
/* Keys of the start in UTC to the second, and of the host. */
#define META_STARTED_AT	     "started_at"
#define META_HOST	     "host"
#define META_TASK	     "task" /* meaning of the numbers in sample.task: "goroutine" */

struct recording;

/* Creates @path with mode 0600 and the first commit, owned by the user who called sudo. Until the
 * first commit succeeds, an existing file stays in place. NULL for @path: the recording is in
 * memory only.
 *
 * An existing braid recording is then renamed to @path.old and replaces an older one there, unless
 * another braid is writing it (-EBUSY). Any other existing file is refused with -EEXIST unless
 * @force, which replaces it. Directories (-EISDIR), symbolic links and devices are always refused.
 *
 * A file that would be lost, or that SQLite would treat as a part of a recording, is refused with
 * -EEXIST. Such files are a @path.old that is not a recording, and a journal or write-ahead log
 * that belongs to no recording beside either. Failure leaves no files behind. */
int recording__create(const char *path, bool force, struct recording **ret, struct err *err);

/* Makes a full disk (-ENOSPC) no longer final. The state before the failed commit remains, and the
 * commit may be repeated. Data since the last successful commit stay in memory. */
void recording__keep_trying(struct recording *recording);

/* As recording__commit(), but waits seconds for readers; for the end of the recording. */
int recording__complete(struct recording *recording, struct err *err);

/* Commits, closes and frees the recording, which may be NULL. Frees it also on failure. */
int recording__close(struct recording *recording, struct err *err);

/* Frees the recording, which may be NULL, without a commit. Before the first commit, removes all
 * traces of it. */
void recording__discard(struct recording *recording);

/* Commits the data since the last commit. */
int recording__commit(struct recording *recording, struct err *err);

/* Returns the number of samples in the file: those of successful commits. */
uint64_t recording__committed(const struct recording *recording);

/* Writes a value that replaces earlier values of the same key. */
int recording__meta(struct recording *recording, const char *key, const char *value,
		    struct err *err);
/* Writes a counter. A 0 is written only over an earlier value, as when a loss was repaired. */
int recording__counter(struct recording *recording, const char *name, uint64_t value,
		       struct err *err);

/* Writes a kind; once per kind. The caller defines the numbers (core/profile/profile.h). */
int recording__kind(struct recording *recording, int kind, const char *name, const char *suffix,
		    struct err *err);

/* Returns the sink, borrowed until the recording is closed or discarded. */
struct sink *recording__sink(struct recording *recording);

#endif
