/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_H
#define BRAID_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/profile/sink.h"

/* Writing a recording: one SQLite file. Its schema is docs/reference/recording.md. What is recorded
 * comes through its sink, which writes row by row what it is offered (core/profile/sink.h) and
 * remembers nothing of it; what is about the recording as a whole comes through the functions here.
 * Nothing is visible to readers before a commit; a commit makes all before it durable against the
 * death of this process.
 *
 * All functions, and the sink, return 0 or a negative errno: -ENOSPC (disk full: what was committed
 * stays readable), -ESTALE (the file was moved or removed), -EIO, -ENOMEM; `err` has the sentence.
 * After a failed call only close may follow. */

#define RECORDING_SCHEMA_VERSION 7
#define RECORDING_APPLICATION_ID 0x62726169 /* "brai" */

/* Keys of the table meta: when the recording began, by CLOCK_MONOTONIC, and what CLOCK_REALTIME was
 * more than that then; how long it is. */
#define META_START_NS	     "start_ns"
#define META_CLOCK_OFFSET_NS "clock_offset_ns"
#define META_DURATION_S	     "duration_s"

/* When the machine was booted, as process.start_ticks count from there: CLOCK_REALTIME less
 * CLOCK_BOOTTIME, in seconds. */
#define META_BOOT_S "boot_s"

/* The same: a file without symbols, and the package that has them; of how many files
 * debug servers were asked. */
#define META_SYMBOLS_ASKED "symbols_asked"
/* The same: when, in UTC to the second, and where. */
#define META_STARTED_AT	   "started_at"
#define META_HOST	   "host"
#define META_TASK	   "task" /* what sample.task are numbers of: "goroutine" */

struct recording;

/* Creates `path`, mode 0600, the user's who called sudo, with the first commit; until that has
 * succeeded, what is there stays as it is. An existing braid recording is renamed to `path`.old
 * then, over an older one, unless another braid is writing it (-EBUSY); any other existing file is
 * refused with -EEXIST unless `force`, which replaces it. Directories (-EISDIR), symbolic links and
 * devices are always refused, and so is what would be lost or taken for a part of a recording:
 * `path`.old that is none, and a journal or write-ahead log beside either that belongs to no
 * recording (-EEXIST). Nothing is left behind on failure. NULL for `path`: in memory only. */
int recording__create(const char *path, bool force, struct recording **ret, struct err *err);

/* From now on a full disk (-ENOSPC) ends nothing: all stays as before the commit that failed, which
 * may be repeated. What came since the last one that succeeded is in memory. */
void recording__keep_trying(struct recording *recording);

/* As recording__commit, but waits for readers for seconds: to be called at the end. */
int recording__complete(struct recording *recording, struct err *err);

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

/* Kind numbers are the caller's (core/profile/profile.h); once per kind. */
int recording__kind(struct recording *recording, int kind, const char *name, const char *suffix,
		    struct err *err);

/* Borrowed until the recording is closed or discarded. */
struct sink *recording__sink(struct recording *recording);

#endif
