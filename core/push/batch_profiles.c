// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/push/batch_profiles.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/build.h"

static int add_samples(const struct push_batch *batch, bool (*wants)(void *ctx, uint32_t thread),
		       void *ctx)
{
	struct recorded *recorded = batch->of->recorded;

	recorded__clear_samples(recorded);
	for (size_t i = 0; i < batch->n; i++)
		if ((!wants || wants(ctx, batch->samples[i].thread)) &&
		    recorded__add_sample(recorded, &batch->samples[i]))
			return -ENOMEM;
	return 0;
}

int batch_profiles__init(struct batch_profiles *profiles, const struct push_batch *batch,
			 bool (*wants)(void *ctx, uint32_t thread), void *ctx, bool threads,
			 struct err *err)
{
	const struct profile_filter filter = { .lines = true, .threads = threads };
	struct recorded *recorded = batch->of->recorded;
	struct profile *first = NULL, **others = NULL;
	size_t n = 0;
	int code;

	*profiles = (struct batch_profiles) {};
	if (add_samples(batch, wants, ctx))
		return err__set(err, -ENOMEM, "out of memory");
	code = build__profiles(recorded, batch->of->path, &filter, &first, &others, &n, err);
	if (!code && first->total) {
		profiles->rows = calloc(n + 1, sizeof(*profiles->rows));
		if (!profiles->rows)
			code = err__set(err, -ENOMEM, "out of memory");
	}
	if (!code && profiles->rows) {
		profiles->rows[profiles->n++] = first;
		first = NULL;
		memcpy(profiles->rows + 1, others, n * sizeof(*others));
		profiles->n += n;
		free(others);
	} else if (!code) {
		profiles->rows = others;
		profiles->n = n;
	}
	profile__free(first);
	return code;
}

void batch_profiles__done(struct batch_profiles *profiles)
{
	for (size_t i = 0; i < profiles->n; i++)
		profile__free(profiles->rows[i]);
	free(profiles->rows);
	*profiles = (struct batch_profiles) {};
}

int batch_profiles__origin(const struct push_batch *batch, struct output_origin *ret)
{
	const struct push_recording *recording = batch->of;
	uint8_t hash[CONTENT_HASH_BYTES];
	int64_t first_ns = INT64_MAX, last_ns = 0;
	char range[64];

	for (size_t i = 0; i < batch->n; i++) {
		int64_t time_ns = push_recording__time_ns(recording, &batch->samples[i]);

		first_ns = min_of(first_ns, time_ns);
		last_ns = max_of(last_ns, time_ns);
	}
	snprintf(range, sizeof(range), " %llu %zu", (unsigned long long)batch->first, batch->n);
	if (content_hash__of(recording->id, range, strlen(range), hash))
		return -ENOMEM;
	*ret = (struct output_origin) { .service = recording->service,
					.host = recording->host,
					.time_ns = first_ns,
					.duration_ns = last_ns - first_ns };
	memcpy(ret->id, hash, sizeof(ret->id));
	return 0;
}

int batch_profiles__write(const struct batch_profiles *profiles,
			  int (*write)(const struct profile *, const struct output_opts *, FILE *),
			  const struct output_origin *origin, struct batch_bytes *ret)
{
	const struct output_opts opts = { .others = profiles->rows + 1,
					  .n_others = profiles->n - 1,
					  .origin = origin };
	FILE *out = open_memstream(&ret->data, &ret->len);
	int code = out ? write(profiles->rows[0], &opts, out) : -ENOMEM;

	if (out && fclose(out) && !code)
		code = -ENOMEM;
	return code;
}
