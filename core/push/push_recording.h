/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PUSH_RECORDING_H
#define BRAID_PUSH_RECORDING_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/profile/recorded.h"
#include "core/push/content_hash.h"
#include "core/store/load.h"

/* A finished recording that is being sent, in batches of samples. */

struct push_recording {
	const char *path;
	char id[CONTENT_HASH_TEXT]; /* hash of its content */
	struct recorded *recorded;  /* without samples */
	const char *host;
	const char *service;	 /* service of all processes; NULL: each process's name */
	int64_t clock_offset_ns; /* added to samples' times for CLOCK_REALTIME */

	/* private */
	struct load_samples *samples;
	struct sink_sample *batch;
	size_t cap;
	uint64_t next; /* number of the next sample to read */
};

/* the samples [first, first + n) of a recording */
struct push_batch {
	struct push_recording *of;
	const struct sink_sample *samples;
	size_t n;
	uint64_t first;
};

/* Returns 0, -EBUSY if the recording is not finished, or an error of load__profile(). @host and
 * @service replace the recorded ones unless NULL. The caller must call push_recording__close() also
 * on failure. */
int push_recording__open(const char *path, const char *host, const char *service,
			 struct push_recording *ret, struct err *err);
void push_recording__close(struct push_recording *recording);

/* Skips to number @first, and then reads at most @n samples (at least 1). ret->n is 0 at the
 * end. */
int push_recording__read(struct push_recording *recording, uint64_t first, size_t n,
			 struct push_batch *ret, struct err *err);

/* Return properties of a sample; borrowed. */
const char *push_recording__service(const struct push_recording *recording, uint32_t thread);
const char *push_recording__container(const struct push_recording *recording, uint32_t thread);
int64_t push_recording__time_ns(const struct push_recording *recording,
				const struct sink_sample *sample); /* CLOCK_REALTIME, since 1970 */

#endif
