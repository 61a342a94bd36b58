// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/push/push_recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "core/base/util.h"
#include "core/profile/group.h"
#include "core/store/recording_file.h"

#define UNKNOWN_SERVICE "unknown_service" /* OpenTelemetry's name */

/* Computes the difference between the wall clock and the clock of the samples. Older recordings
 * lack this difference, and have only their start in whole seconds. The first sample is assumed to
 * be taken at the start, although it may be slightly later. */
static int find_clock(struct push_recording *recording, struct err *err)
{
	struct recorded *recorded = recording->recorded;
	struct load_samples *samples = NULL;
	struct sink_sample first;
	struct tm tm = {};
	int ret;

	recording->clock_offset_ns = recorded->clock_offset_ns;
	if (recording->clock_offset_ns)
		return 0;
	ret = load_samples__open(recording->path, &samples, err);
	if (!ret)
		ret = load_samples__next(samples, &first, err);
	if (ret > 0) {
		struct stat st;
		time_t start = 0;

		if (strptime(recorded__text(recorded, recorded->started), "%Y-%m-%dT%H:%M:%SZ",
			     &tm))
			start = timegm(&tm);
		else if (!stat(recording->path, &st))
			start = st.st_mtim.tv_sec - (time_t)recorded->duration_s;
		recording->clock_offset_ns = start * (int64_t)NSEC_PER_SEC - (int64_t)first.time_ns;
	}
	load_samples__close(samples);
	return min_of(ret, 0);
}

int push_recording__open(const char *path, const char *host, const char *service,
			 struct push_recording *ret, struct err *err)
{
	int code;

	*ret = (struct push_recording) { .path = path, .service = service };
	if (recording_file__is_being_written(path))
		return err__set(err, -EBUSY, "%s is still being recorded", path);
	code = load_samples__open(path, &ret->samples, err);
	if (!code)
		code = content_hash__file(path, ret->id, err);
	if (code)
		return code;
	ret->recorded = load_samples__recorded(ret->samples);
	ret->host = host ? host : recorded__text(ret->recorded, ret->recorded->host);
	return find_clock(ret, err);
}

void push_recording__close(struct push_recording *recording)
{
	load_samples__close(recording->samples);
	free(recording->batch);
	*recording = (struct push_recording) {};
}

int push_recording__read(struct push_recording *recording, uint64_t first, size_t n,
			 struct push_batch *ret, struct err *err)
{
	struct sink_sample sample;
	int code = 1;

	*ret = (struct push_batch) { .of = recording, .first = first };
	if (array__reserve(&recording->batch, &recording->cap, n, sizeof(sample)))
		return err__set(err, -ENOMEM, "out of memory");
	while (ret->n < n && (code = load_samples__next(recording->samples, &sample, err)) > 0)
		if (recording->next++ >= first)
			recording->batch[ret->n++] = sample;
	ret->samples = recording->batch;
	return min_of(code, 0);
}

const char *push_recording__service(const struct push_recording *recording, uint32_t thread)
{
	const struct recorded *recorded = recording->recorded;
	struct profile_thread_of of =
		group__thread(recorded, recorded__find(&recorded->threads, thread));

	if (recording->service)
		return recording->service;
	if (of.service && *of.service)
		return of.service;
	return of.process && *of.process ? of.process : UNKNOWN_SERVICE;
}

const char *push_recording__container(const struct push_recording *recording, uint32_t thread)
{
	const struct recorded *recorded = recording->recorded;
	uint32_t index = recorded__find(&recorded->threads, thread), process;

	if (index == RECORDED_NONE)
		return "";
	process = recorded->threads.rows[index].process;
	return process == RECORDED_NONE
		       ? ""
		       : recorded__text(recorded, recorded->processes.rows[process].container);
}

int64_t push_recording__time_ns(const struct push_recording *recording,
				const struct sink_sample *sample)
{
	int64_t time_ns;

	/* an impossible time becomes 0, which is recognizably invalid */
	if (__builtin_add_overflow((int64_t)sample->time_ns, recording->clock_offset_ns,
				   &time_ns) ||
	    time_ns < 0 || time_ns / (int64_t)NSEC_PER_SEC > UINT32_MAX)
		return 0;
	return time_ns;
}
