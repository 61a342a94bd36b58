/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LOAD_H
#define BRAID_LOAD_H

#include "core/base/err.h"
#include "core/profile/build.h"

/* Reads a recording and builds the merged profile of one event. Needs only the file, which is
 * untrusted. A directory that braid fills stands for all its finished recordings, as one recording.
 * Unreadable recordings in it are left out (profile_filter.on_skipped).
 *
 * Returns -ENOENT if there is no such file, or an error of build__profile(). Returns -EBADMSG if
 * the file is not a braid recording, has an unknown schema version, or is corrupt or truncated. The
 * message in @err names the file. A recording whose writer was killed is read up to its last
 * commit. */
int load__profile(const char *path, const struct profile_filter *filter, struct profile **ret,
		  struct merge_report *report, struct err *err);

/* As load__profile(), for all events of the recording, as in build__profiles(). */
int load__profiles(const char *path, const struct profile_filter *filter, struct profile **ret,
		   struct profile ***ret_others, size_t *ret_n, struct err *err);

/* A recording whose samples are read one by one, in the order of their recording. The file stays
 * open, and all reads see one commit. Errors are those of load__profile(). */
struct load_samples;

/* Reads everything except the samples. The caller must call load_samples__close() also on
 * failure. */
int load_samples__open(const char *path, struct load_samples **ret, struct err *err);
void load_samples__close(struct load_samples *samples); /* NULL is fine */

/* Returns the recorded data without the samples, borrowed. The caller may add samples. */
struct recorded *load_samples__recorded(struct load_samples *samples);

/* Reads the next sample. Returns 1, 0 after the last sample, or a negative errno. The ids in the
 * sample may refer to missing rows. */
int load_samples__next(struct load_samples *samples, struct sink_sample *ret, struct err *err);

#endif
