// SPDX-License-Identifier: GPL-2.0-or-later
/* Runs an hour of `braid top` at 999 Hz in about a minute. Memory does not grow for a program with
 * 20,000 different stacks. In a third of an hour, it does not grow for one that never has the same
 * stack twice. */
#include "core/live/live_profile.h"

#include <malloc.h>
#include <stdio.h>

#include "core/base/util.h"
#include "core/capture/ids.h"
#include "tests/tap.h"

#define HZ	  999
#define SLOTS	  10
#define LIMIT	  (40 << 20)  /* as in core/cli/cmd_top.c */
#define GREATEST  (100 << 20) /* bytes; a part of 150 MB for braid */
#define FUNCTIONS 5000
#define DEPTH	  24
#define STACKS	  20000

static struct err err;

/* Returns a number below @n; the sequence is the same at each run. */
static uint32_t random_below(uint64_t *seed, uint32_t n)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*seed >> 33) % n;
}

static size_t in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static void take(struct ids *ids, const uint32_t *threads, uint64_t time_ns, uint32_t salt)
{
	static uint64_t seed = 1;
	uint64_t stack = random_below(&seed, STACKS); /* decides about all frames */
	struct sink_sample sample = { .event = 1,
				      .thread = threads[stack % 8],
				      .value = 1,
				      .weight = 1,
				      .total = 1,
				      .time_ns = time_ns };

	for (uint32_t depth = 0; depth < DEPTH; depth++) {
		/* Few choices further out, and the same functions at any depth. */
		uint32_t number =
			(depth * 7919 + random_below(&stack, depth < 20 ? 2 : 6)) % FUNCTIONS;
		struct ids_frame row = { .kind = KIND_NATIVE, .process = 1, .address = number };
		char function[32];
		const struct sink_location location = { KIND_NATIVE, function, "a.c", 0 };
		uint32_t frame = 0;
		bool is_new;

		if (depth == DEPTH - 1 && salt)
			row.address = FUNCTIONS + salt;
		ids__frame(ids, &row, &frame, &is_new, &err);
		snprintf(function, sizeof(function), "function %ju", (uintmax_t)row.address);
		if (is_new)
			ids__locations(ids, frame, &location, 1, &err);
		ids__node(ids, sample.native, frame, 64 * depth, &sample.native, &err);
	}
	ids__sample(ids, &sample, &err);
}

static uint64_t total_of(const struct live_profile *live)
{
	static const struct profile_filter filter = { .threads = true };
	struct profile *profile = NULL;
	uint64_t total;

	if (live_profile__get(live, &filter, &profile, NULL, &err))
		return 0;
	total = profile->total;
	profile__free(profile);
	return total;
}

static void run(const char *what, uint64_t seconds, bool always_new)
{
	static const struct sink_event cpu = { "cpu", SINK_UNIT_SAMPLES };
	static const struct sink_process app = { 42, 1, 1, "app", "app", NULL, NULL };
	struct live_profile_stats stats;
	struct live_profile *live = NULL;
	size_t half = 0, greatest = 0;
	uint32_t process, event, threads[8], salt = 0;
	struct ids *ids = NULL;
	bool within = true;

	live_profile__new(LIMIT, &live);
	live_profile__window(live, SLOTS, 0);
	ids__new(live_profile__sink(live), &ids, &err);
	ids__event(ids, &cpu, &event, &err);
	ids__process(ids, &app, &process, &err);
	for (uint32_t i = 0; i < 8; i++)
		ids__thread(ids, process, 42 + i, "worker", &threads[i], &err);
	for (uint64_t second = 0; second < seconds; second++) {
		live_profile__advance(live, second * NSEC_PER_SEC);
		for (uint64_t i = 0; i < HZ; i++)
			take(ids, threads, second * NSEC_PER_SEC + i, always_new ? ++salt : 0);
		live_profile__stats(live, &stats);
		within = within && stats.bytes <= LIMIT;
		greatest = max_of(greatest, in_use());
		if (second == seconds / 2)
			half = greatest;
	}
	ok(within, "%s: the limit is kept", what);
	is_int(stats.samples, seconds * HZ, "%s: all samples came", what);
	is_int(total_of(live), (SLOTS + 1) * HZ, "%s: the window is whole", what);
	ok(greatest <= GREATEST, "%s: that and the ids take no more than 100 MB", what);
	ok(greatest <= half + half / 20, "%s: %zu KB in the first half, %zu KB in all", what,
	   half >> 10, greatest >> 10);
	ids__free(ids);
	live_profile__free(live);
}

int main(void)
{
	run("20,000 stacks", 3600, false);
	run("never the same stack", 1200, true);
	return tap__done();
}
