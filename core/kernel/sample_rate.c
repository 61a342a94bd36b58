// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/sample_rate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/kernel/cpu_clock.h"
#include "core/kernel/varied_clock.h"

#define SETTING_FILE "/proc/sys/kernel/perf_event_max_sample_rate"

uint64_t sample_rate__limit(void)
{
	FILE *file = fopen(SETTING_FILE, "re");
	uint64_t limit = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%" SCNu64, &limit) != 1)
		limit = 0;
	fclose(file);
	return limit;
}

uint32_t sample_rate__highest(uint64_t limit, uint64_t tick_ns)
{
	uint64_t ticks = NSEC_PER_SEC / max_of(tick_ns, 1ULL);
	uint64_t per_tick = (limit + ticks - 1) / max_of(ticks, 1ULL);
	/* Linux before 6.16 stops an event at the last of these, unless it is the only one. */
	double samples = per_tick > 1 ? per_tick - 1 : 1;

	return (uint32_t)min_of(samples * ticks * VARIED_SHORTEST, (double)UINT32_MAX);
}

int sample_rate__check(uint64_t period_ns, struct err *err)
{
	uint64_t limit = sample_rate__limit();
	struct timespec tick;
	uint32_t highest;

	/* The coarse clocks advance with the kernel's tick. */
	if (!limit || clock_getres(CLOCK_MONOTONIC_COARSE, &tick) || tick.tv_sec || !tick.tv_nsec)
		return 0;
	highest = sample_rate__highest(limit, tick.tv_nsec);
	if (NSEC_PER_SEC / period_ns <= highest)
		return 0;
	return err__set(err, -EINVAL,
			"cannot sample at %llu Hz: " SAMPLE_RATE_SETTING " is %" PRIu64
			". Use -F %u or less, or raise the limit: sysctl " SAMPLE_RATE_SETTING
			"=100000",
			(unsigned long long)(NSEC_PER_SEC / period_ns), limit, highest);
}

double sample_rate__stopped(const int *fds, size_t n)
{
	struct cpu_clock_time time;
	uint64_t stopped = 0, total = 0;

	for (size_t i = 0; i < n; i++) {
		if (read(fds[i], &time, sizeof(time)) != sizeof(time))
			continue;
		total += time.running_ns;
		stopped +=
			time.running_ns > time.counted_ns ? time.running_ns - time.counted_ns : 0;
	}
	return total ? (double)stopped / (double)total : 0;
}
