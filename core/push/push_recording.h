/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PUSH_RECORDING_H
#define BRAID_PUSH_RECORDING_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/profile/recorded.h"
#include "core/push/content_hash.h"
#include "core/store/load.h"

/* A finished recording on its way, some samples at a time. */

struct push_recording {
	const char *path;
	char id[CONTENT_HASH_TEXT]; /* by its content */
	struct recorded *recorded;  /* without samples */
	const char *host;
	const char *service;	 /* of all processes; NULL: each by its name */
	int64_t clock_offset_ns; /* what to add to samples' times for CLOCK_REALTIME */

	/* private */
	struct load_samples *samples;
	struct sink_sample *batch;
	size_t cap;
	uint64_t next; /* number of the next sample that will be read */
};

/* Numbers [first, first + n) of its samples. */
struct push_batch {
	struct push_recording *of;
	const struct sink_sample *samples;
	size_t n;
	uint64_t first;
};

/* -EBUSY: it is still being written; errors of load__profile. `host`, `service`: instead of those
 * that it names; or NULL. Call push_recording__close in any case. */
int push_recording__open(const char *path, const char *host, const char *service,
			 struct push_recording *ret, struct err *err);
void push_recording__close(struct push_recording *recording);

/* Reads on to number `first`, and then at most `n` (at least 1). `ret->n` 0: it has no more. */
int push_recording__read(struct push_recording *recording, uint64_t first, size_t n,
			 struct push_batch *ret, struct err *err);

/* What a sample is of; borrowed. */
const char *push_recording__service(const struct push_recording *recording, uint32_t thread);
const char *push_recording__container(const struct push_recording *recording, uint32_t thread);
int64_t push_recording__time_ns(const struct push_recording *recording,
				const struct sink_sample *sample); /* CLOCK_REALTIME, from 1970 */

#endif
