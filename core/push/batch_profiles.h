/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_BATCH_PROFILES_H
#define BRAID_BATCH_PROFILES_H

#include "core/profile/output.h"
#include "core/push/push_recording.h"

/* Batches as profiles, for servers that take those. */

struct batch_profiles {
	struct profile **rows; /* of one event each, with some weight */
	size_t n;
};

/* Of samples of threads for which `wants` says so, given as ids; NULL: of all. `threads`: divide
 * them. 0 or a negative errno with the sentence in `err`; call batch_profiles__done in any case. */
int batch_profiles__init(struct batch_profiles *profiles, const struct push_batch *batch,
			 bool (*wants)(void *ctx, uint32_t thread), void *ctx, bool threads,
			 struct err *err);
void batch_profiles__done(struct batch_profiles *profiles);

/* When and where that was; ids follow from the recording and the numbers of the samples, so that
 * the same batch is the same whenever it is sent. -ENOMEM. */
int batch_profiles__origin(const struct push_batch *batch, struct output_origin *ret);

/* What a writer of profiles writes, in memory; the caller frees it. */
struct batch_bytes {
	char *data;
	size_t len;
};
int batch_profiles__write(const struct batch_profiles *profiles,
			  int (*write)(const struct profile *, const struct output_opts *, FILE *),
			  const struct output_origin *origin, struct batch_bytes *ret);

#endif
