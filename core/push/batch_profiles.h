/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_BATCH_PROFILES_H
#define BRAID_BATCH_PROFILES_H

#include "core/out/output.h"
#include "core/push/push_recording.h"

/* Batches as profiles, for servers that receive profiles. */

struct batch_profiles {
	struct profile **rows; /* one event each, with some weight */
	size_t n;
};

/* Builds profiles from the samples of threads for whose ids @wants returns true; NULL: all threads.
 * @threads: divides the profiles by thread. Returns 0, or a negative errno with a message. The
 * caller must call batch_profiles__done() also on failure. */
int batch_profiles__init(struct batch_profiles *profiles, const struct push_batch *batch,
			 bool (*wants)(void *ctx, uint32_t thread), void *ctx, bool threads,
			 struct err *err);
void batch_profiles__done(struct batch_profiles *profiles);

/* Returns the time and place of the batch. Its id follows from the recording and the numbers of the
 * samples, so that a repeated batch has the same id. Returns 0 or -ENOMEM. */
int batch_profiles__origin(const struct push_batch *batch, struct output_origin *ret);

/* The output of a writer of profiles, in memory; the caller frees it. */
struct batch_bytes {
	char *data;
	size_t len;
};
int batch_profiles__write(const struct batch_profiles *profiles,
			  int (*write)(const struct profile *, const struct output_opts *, FILE *),
			  const struct output_origin *origin, struct batch_bytes *ret);

#endif
