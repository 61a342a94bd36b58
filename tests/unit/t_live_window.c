// SPDX-License-Identifier: GPL-2.0-or-later
/* The sums of a live profile with a window are exactly those of the samples in it, by the samples'
 * own times. An interval counts with its part inside the window. Both also hold after stacks were
 * evicted. */
#include "core/live/live_profile.h"
#include "core/live/live_window.h"

#include <stdio.h>
#include <string.h>

#include "core/base/util.h"
#include "tests/tap.h"

#define S	NSEC_PER_SEC
#define SLOTS	3
#define THREADS 2

static struct err err;

/* Begins a profile with an event of each unit and two threads. Stacks are frames of one node, "f1",
 * "f2", ... */
static struct sink *begin(struct live_profile **ret, size_t bytes_max, uint64_t now_ns)
{
	static const struct sink_event cpu = { "cpu", SINK_UNIT_SAMPLES },
				       wall = { "wall", SINK_UNIT_NS };
	static const struct sink_process app = { 42, 1, 1, "app", "app", NULL, NULL };
	struct sink *sink;

	live_profile__new(bytes_max, ret);
	live_profile__window(*ret, SLOTS, now_ns);
	sink = live_profile__sink(*ret);
	sink->ops->event(sink, 1, &cpu, &err);
	sink->ops->event(sink, 2, &wall, &err);
	sink->ops->process(sink, 1, &app, &err);
	for (uint32_t i = 1; i <= THREADS; i++)
		sink->ops->thread(sink, i, 1, 41 + i, "thread", &err);
	return sink;
}

static void add_function(struct sink *sink, uint32_t number)
{
	char name[16];
	const struct sink_location location = { KIND_NATIVE, name, NULL, 0 };

	snprintf(name, sizeof(name), "f%u", number);
	sink->ops->frame(sink, number,
			 &(struct sink_frame) { .kind = KIND_NATIVE, .address = number }, &err);
	sink->ops->locations(sink, number, &location, 1, &err);
	sink->ops->node(sink, number, &(struct sink_node) { 0, number, 0, 0 }, &err);
}

static void take(struct sink *sink, uint32_t event, uint32_t function, uint64_t time_ns,
		 uint64_t value)
{
	const struct sink_sample sample = { .event = event,
					    .thread = 1 + function % THREADS,
					    .native = function,
					    .time_ns = time_ns,
					    .value = value,
					    .weight = 1,
					    .total = value };

	sink->ops->sample(sink, &sample, &err);
}

/* Returns "f1 2/2 f2 1/5": weight and samples of each of the first functions that has any. */
static const char *sums(const struct live_profile *live, const char *event)
{
	static char text[1000];
	struct profile_filter filter = { .event = event, .threads = true };
	struct profile *profile = NULL;
	uint64_t shares = 0, selves = 0;
	size_t len = 0;

	*text = '\0';
	if (live_profile__get(live, &filter, &profile, NULL, &err))
		return err.text;
	for (size_t i = 1; i < profile->n_nodes; i++) {
		const struct profile_node *node = &profile->nodes[i];

		selves += node->self;
		if (len > 900)
			continue;
		len += snprintf(text + len, sizeof(text) - len, "%s%s %ju/%ju", len ? " " : "",
				strtab__get(profile->strings, profile->frames[node->frame].name),
				(uintmax_t)node->self, (uintmax_t)node->samples);
	}
	for (size_t i = 0; i < profile->n_shares; i++)
		shares += profile->shares[i].value.weight;
	if (shares != selves || profile->total != selves)
		snprintf(text + len, sizeof(text) - len, " of %ju, %ju", (uintmax_t)shares,
			 (uintmax_t)profile->total);
	profile__free(profile);
	return text;
}

static void test_slots(void)
{
	struct live_profile *live;
	struct sink *sink = begin(&live, SIZE_MAX, 10 * S);

	add_function(sink, 1);
	add_function(sink, 2);
	is_str(sums(live, "cpu"), "", "nothing at first");
	take(sink, 1, 1, 10 * S, 1);
	take(sink, 1, 1, 11 * S - 1, 1);
	live_profile__advance(live, 11 * S);
	take(sink, 1, 2, 11 * S, 3);
	take(sink, 1, 1, 11 * S - 1, 1);
	take(sink, 1, 1, 10 * S - 1, 100);
	is_str(sums(live, "cpu"), "f1 3/3 f2 3/1", "what came before the beginning is left out");
	live_profile__advance(live, 12 * S);
	live_profile__advance(live, 13 * S);
	is_str(sums(live, "cpu"), "f1 3/3 f2 3/1", "three whole slots are in the window");
	live_profile__advance(live, 14 * S);
	is_str(sums(live, "cpu"), "f2 3/1", "what is late has left with its own second");
	take(sink, 1, 1, 11 * S - 1, 1);
	take(sink, 1, 1, 13 * S, 4);
	is_str(sums(live, "cpu"), "f1 4/1 f2 3/1", "and what comes too late never is in it");
	live_profile__advance(live, 15 * S);
	is_str(sums(live, "cpu"), "f1 4/1", "one by one");
	for (int i = 16; i < 20; i++)
		live_profile__advance(live, i * S);
	is_str(sums(live, "cpu"), "", "nothing at the end");
	live_profile__free(live);
}

static void test_intervals(void)
{
	struct live_profile *live;
	struct sink *sink = begin(&live, SIZE_MAX, 10 * S);

	add_function(sink, 1);
	add_function(sink, 2);
	live_profile__advance(live, 11 * S);
	live_profile__advance(live, 12 * S);
	live_profile__advance(live, 13 * S);
	take(sink, 2, 1, 13 * S + S / 2, 60 * S);
	is_str(sums(live, "wall"), "f1 3500000000/1", "of a minute what is in the window");
	is_str(sums(live, "cpu"), "", "and nothing of another event");
	live_profile__advance(live, 14 * S);
	is_str(sums(live, "wall"), "f1 2500000000/1", "a second less, a second later");
	take(sink, 2, 2, 13 * S + 7, 3);
	take(sink, 2, 2, 13 * S + 7, 9);
	take(sink, 2, 2, 13 * S + 7, 0);
	is_str(sums(live, "wall"), "f1 2500000000/1 f2 12/3", "one that touches two seconds");
	live_profile__advance(live, 15 * S);
	live_profile__advance(live, 16 * S);
	is_str(sums(live, "wall"), "f1 500000000/1 f2 10/3", "the part in the second one is left");
	live_profile__advance(live, 17 * S);
	is_str(sums(live, "wall"), "", "nothing at the end");
	live_profile__free(live);
}

static void wait_so_far(struct sink *sink, uint32_t function, uint64_t since_ns, uint64_t now_ns)
{
	const struct sink_sample sample = { .event = 2,
					    .thread = 1 + function % THREADS,
					    .native = function,
					    .time_ns = now_ns,
					    .value = now_ns - since_ns,
					    .weight = 1,
					    .total = now_ns - since_ns,
					    .flags = SAMPLE_UNDER_WAY };

	sink->ops->sample(sink, &sample, &err);
}

static void test_under_way(void)
{
	struct live_profile *live;
	struct sink *sink = begin(&live, SIZE_MAX, 10 * S);
	struct live_profile_stats stats;

	add_function(sink, 1);
	add_function(sink, 2);
	live_profile__look(live);
	is_int(live_profile__waits(live, 42, 9 * S, 11 * S), 0, "a wait that is not known");
	wait_so_far(sink, 1, 9 * S, 11 * S);
	wait_so_far(sink, 2, 10 * S, 11 * S);
	is_str(sums(live, "wall"), "f1 1000000000/1 f2 1000000000/1", "of waits, what is in it");
	live_profile__advance(live, 12 * S);
	live_profile__look(live);
	is_str(sums(live, "wall"), "", "until the next look");
	is_int(live_profile__waits(live, 43, 9 * S, 13 * S), 1, "one goes on");
	is_int(live_profile__waits(live, 42, 11 * S, 13 * S), 0, "another one of a thread");
	is_str(sums(live, "wall"), "f1 3000000000/1", "counts up to now");
	take(sink, 2, 2, 12 * S, 2 * S);
	is_str(sums(live, "wall"), "f1 3000000000/1 f2 2000000000/1", "one that has ended, once");
	for (int i = 13; i < 17; i++)
		live_profile__advance(live, i * S);
	live_profile__look(live);
	is_int(live_profile__waits(live, 43, 9 * S, 17 * S), 1, "it still goes on");
	is_str(sums(live, "wall"), "f1 4000000000/1", "what has left the window is left out");
	take(sink, 2, 1, 17 * S, 8 * S);
	live_profile__look(live);
	is_str(sums(live, "wall"), "f1 4000000000/1", "at its end it counts once");
	is_int(live_profile__waits(live, 43, 9 * S, 18 * S), 1, "what was seen is remembered");
	live_profile__look(live);
	live_profile__look(live);
	is_int(live_profile__waits(live, 43, 9 * S, 19 * S), 0, "until it is not seen any more");
	live_profile__stats(live, &stats);
	is_int(stats.samples, 2, "waits that go on are no samples");
	live_profile__free(live);
}

/* Each second has one recurring function, and many functions that never recur. */
static void test_bounds(void)
{
	enum { LIMIT = 1000000, SECONDS = 300, EACH = 100 };
	struct live_profile *live;
	struct live_profile_stats stats;
	struct sink *sink = begin(&live, LIMIT, 0);
	uint32_t number = 1;
	bool within = true, exact = true;
	char want[64], begins[64];

	add_function(sink, 1);
	for (uint64_t second = 0; second < SECONDS; second++) {
		live_profile__advance(live, second * S);
		for (int i = 0; i < EACH; i++) {
			take(sink, 1, 1, second * S + i, 2);
			add_function(sink, ++number);
			take(sink, 1, number, second * S + i, 1);
			live_profile__stats(live, &stats);
			within = within && stats.bytes <= LIMIT;
		}
		snprintf(want, sizeof(want), "f1 %d/%d ", 2 * EACH * (int)min_of(second + 1, 4U),
			 EACH * (int)min_of(second + 1, 4U));
		snprintf(begins, sizeof(begins), "%.*s", (int)strlen(want), sums(live, "cpu"));
		exact = exact && !strcmp(begins, want);
	}
	ok(within, "memory stays below the limit");
	ok(exact, "what is always there is exact whatever was forgotten: %s", begins);
	is_int(stats.samples, 2 * SECONDS * EACH, "all samples came");
	is_int(stats.evicted, 0, "none of the window was forgotten");
	for (uint64_t second = SECONDS; second < SECONDS + 4; second++)
		live_profile__advance(live, second * S);
	is_str(sums(live, "cpu"), "", "nothing at the end");
	live_profile__free(live);
}

int main(void)
{
	test_slots();
	test_intervals();
	test_under_way();
	test_bounds();
	return tap__done();
}
