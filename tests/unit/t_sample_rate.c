// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel's limit of samples: the highest frequency that it allows, and the time in which it
 * stopped clock events. The events are pipes that contain the values that the kernel returns for
 * them. */
#include "core/kernel/sample_rate.h"

#include <unistd.h>

#include "core/kernel/cpu_clock.h"
#include "tests/tap.h"

#define MS 1000000ULL

/* Returns the highest number of samples in one tick, counted as the kernel does over ticks of all
 * alignments. More than that in one tick stop the event. */
static uint64_t most_in_a_tick(uint32_t hz, uint64_t tick_ns)
{
	double period = 1e9 / hz * 0.925, first, most = 0, n;

	for (first = 0; first < period; first += period / 16)
		for (n = 0; first + n * period < tick_ns; n++)
			most = n + 1 > most ? n + 1 : most;
	return most;
}

static void test_highest(void)
{
	static const uint64_t ticks[] = { 1 * MS, 4 * MS, 10 * MS },
			      limits[] = { 1, 100, 1000, 2000, 100000 };

	for (size_t t = 0; t < 3; t++)
		for (size_t l = 0; l < 5; l++) {
			uint64_t hz = 1000 / (ticks[t] / MS), allowed = (limits[l] + hz - 1) / hz;
			uint64_t most =
				most_in_a_tick(sample_rate__highest(limits[l], ticks[t]), ticks[t]);

			ok(most == 1 || most < allowed,
			   "limit %lu, tick %lu ms: %lu samples of %lu", (unsigned long)limits[l],
			   (unsigned long)(ticks[t] / MS), (unsigned long)most,
			   (unsigned long)allowed);
		}
	ok(sample_rate__highest(100000, 4 * MS) >= 10000, "the usual limit allows all of -F");
	ok(sample_rate__highest(100, 4 * MS) < 999, "a limit of 100 does not allow 999 Hz");
	ok(sample_rate__highest(100, 4 * MS) >= 99, "but the usual frequency");
}

static int event(uint64_t counted, uint64_t running)
{
	struct cpu_clock_time time = { counted, running, running };
	int fds[2];

	if (pipe(fds) || write(fds[1], &time, sizeof(time)) != sizeof(time))
		return -1;
	close(fds[1]);
	return fds[0];
}

static void test_stopped(void)
{
	int half[] = { event(250, 1000), event(1000, 1000) }, ahead = event(1001, 1000), none = -1;

	ok(sample_rate__stopped(half, 2) == 0.375, "of two events");
	ok(sample_rate__stopped(&ahead, 1) == 0, "an event that counted more than it ran");
	ok(sample_rate__stopped(&none, 1) == 0, "an event that cannot be read");
	ok(sample_rate__stopped(NULL, 0) == 0, "no events");
}

int main(void)
{
	test_highest();
	test_stopped();
	return tap__done();
}
