// SPDX-License-Identifier: GPL-2.0-or-later
/* One stream of samples into a recording and into a live profile gives one profile, at any time.
 * Data that the live profile evicts to save memory is counted. */
#include "core/live/live_profile.h"

#include <errno.h>

#include "core/base/util.h"
#include "core/capture/ids.h"
#include "core/store/load.h"
#include "core/store/recording.h"
#include "tests/tap.h"
#include "tests/tee.h"
#include "tests/unit/workdir.h"

#define FUNCTIONS 40
#define THREADS	  3
#define DEPTH	  12

static char path[100];
static struct err err;

/* Returns a number below @n, of a fixed sequence. */
static uint32_t random_below(uint32_t n)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % n;
}

struct stream {
	struct ids *ids;
	uint32_t events[2], threads[THREADS], native[FUNCTIONS], runtime[FUNCTIONS];
};

static uint32_t frame_of(struct ids *ids, const struct ids_frame *frame)
{
	uint32_t id = 0;

	ids__frame(ids, frame, &id, NULL, &err);
	return id;
}

/* Begins a stream of two events, two processes and a thread that was renamed. Every third native
 * frame is a loop; one place has no name. */
static void begin(struct stream *stream)
{
	static const struct sink_event cpu = { "cpu", "samples" }, faults = { "faults", "bytes" };
	static const struct sink_process app = { 42, 1, 1, "app", "app", NULL, NULL },
					 tool = { 43, 42, 2, "tool", "tool", NULL, NULL };
	struct ids *ids = stream->ids;
	uint32_t first, second, image;

	ids__event(ids, &cpu, &stream->events[0], &err);
	ids__event(ids, &faults, &stream->events[1], &err);
	ids__process(ids, &app, &first, &err);
	ids__process(ids, &tool, &second, &err);
	ids__thread(ids, first, 42, "app", &stream->threads[0], &err);
	ids__thread(ids, first, 42, "renamed", &stream->threads[1], &err);
	ids__thread(ids, second, 44, "work", &stream->threads[2], &err);
	ids__thread_is_called(ids, stream->threads[2], "worker", &err);
	ids__image(ids, "/usr/bin/app", "ab", &image, &err);
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		stream->native[i] = frame_of(ids, &(struct ids_frame) { .kind = KIND_NATIVE,
									.image = image,
									.address = 16 * i });
		stream->runtime[i] = frame_of(ids, &(struct ids_frame) { .kind = KIND_RUNTIME,
									 .process = first,
									 .address = i + 1 });
	}
}

/* Sends names, which arrive after the first samples. */
static void name(struct stream *stream)
{
	char function[32];

	for (uint32_t i = 1; i < FUNCTIONS; i++) {
		const struct sink_location native[] = { { KIND_INLINED, "inner", "a.h", i },
							{ KIND_NATIVE, function, "a.c", 2 * i } };
		const struct sink_location runtime = { KIND_RUNTIME, function, "/x/a.py", 3 * i };

		snprintf(function, sizeof(function), "f%u", i);
		ids__locations(stream->ids, stream->native[i], native + i % 2, 1, &err);
		ids__locations(stream->ids, stream->native[i], native + i % 2, 2 - i % 2, &err);
		ids__locations(stream->ids, stream->runtime[i], &runtime, 1, &err);
		if (i % 3 == 0)
			ids__frame_is_loop(stream->ids, stream->native[i], &err);
	}
}

static void take(struct stream *stream, uint32_t n)
{
	while (n--) {
		struct sink_sample sample = { .event = stream->events[random_below(2)],
					      .thread = stream->threads[random_below(THREADS)],
					      .value = 1 + random_below(1000),
					      .weight = 1 };
		uint32_t depth = random_below(DEPTH);

		sample.total = sample.value;
		for (uint32_t i = 0; i < depth; i++) {
			uint32_t function = i + random_below(FUNCTIONS - DEPTH);
			int64_t offset = 64 * (int64_t)i;

			ids__node(stream->ids, sample.native, stream->native[function], offset,
				  &sample.native, &err);
			if (function % 3 == 0)
				ids__node(stream->ids, sample.runtime, stream->runtime[function],
					  i % 5 ? offset + 8 : SINK_APART, &sample.runtime, &err);
		}
		if (random_below(4) == 0)
			ids__node(stream->ids, sample.native,
				  frame_of(stream->ids, &(struct ids_frame) { .kind = KIND_KERNEL,
									      .address = -4096 }),
				  SINK_NO_OFFSET, &sample.native, &err);
		ids__sample(stream->ids, &sample, &err);
	}
}

static void check_same(const struct live_profile *live, const char *when)
{
	static const struct {
		const char *what;
		struct profile_filter filter;
	} cases[] = {
		{ "all", {} },
		{ "lines and loops", { .lines = true, .keep_vm = true } },
		{ "an event", { .event = "faults" } },
		{ "a process", { .pid = 42 } },
		{ "a thread", { .thread = "worker", .event = "faults" } },
		{ "a runtime", { .runtime = "made" } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct profile *loaded = NULL, *shown = NULL;
		struct merge_report report[2];
		char *want, *got;

		if (!ok(!load__profile(path, &cases[i].filter, &loaded, &report[0], &err) &&
				!live_profile__get(live, &cases[i].filter, &shown, &report[1],
						   &err),
			"%s: %s", when, cases[i].what))
			continue;
		want = tee__text(loaded);
		got = tee__text(shown);
		is_str(got, want, "the profiles are equal");
		ok(!memcmp(&report[0], &report[1], sizeof(report[0])), "and so is their merge");
		ok(strlen(want) > 1000 && shown->n_losses == 0, "there is something, and all");
		free(want);
		free(got);
		profile__free(loaded);
		profile__free(shown);
	}
}

static void test_same(void)
{
	struct recording *recording = NULL;
	struct live_profile *live = NULL;
	struct stream stream = {};
	struct tee tee;

	recording__create(path, true, &recording, &err);
	live_profile__new(SIZE_MAX, &live);
	recording__kind(recording, KIND_RUNTIME, "made", "_[m]", &err);
	live_profile__kind(live, KIND_RUNTIME, "made", "_[m]");
	tee = tee__of(recording__sink(recording), live_profile__sink(live));
	ids__new(&tee.sink, &stream.ids, &err);
	begin(&stream);
	take(&stream, 500);
	recording__commit(recording, &err);
	check_same(live, "before frames are named");
	name(&stream);
	take(&stream, 1500);
	recording__commit(recording, &err);
	check_same(live, "afterwards");
	ids__free(stream.ids);
	recording__close(recording, &err);
	live_profile__free(live);
}

static uint32_t named_frame(struct stream *stream, uint32_t number, const char *function)
{
	const struct sink_location location = { KIND_NATIVE, function, NULL, 0 };
	struct ids_frame row = { .kind = KIND_NATIVE, .process = 1, .address = number };
	uint32_t frame;
	bool is_new;

	ids__frame(stream->ids, &row, &frame, &is_new, &err);
	if (is_new)
		ids__locations(stream->ids, frame, &location, 1, &err);
	return frame;
}

/* Sends a sample of main, which calls a function whose name is @number. */
static void take_one(struct stream *stream, uint32_t thread, uint32_t number, uint64_t value)
{
	struct sink_sample sample = {
		.event = 1, .thread = thread, .value = value, .weight = 1, .total = value
	};
	char function[32];

	snprintf(function, sizeof(function), "function %u", number);
	ids__node(stream->ids, 0, named_frame(stream, 0, "main"), 0, &sample.native, &err);
	ids__node(stream->ids, sample.native, named_frame(stream, number, function), 64,
		  &sample.native, &err);
	ids__sample(stream->ids, &sample, &err);
}

static bool is_called(const struct profile *profile, uint32_t node, const char *function)
{
	const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];

	return node && !strcmp(strtab__get(profile->strings, frame->name), function);
}

/* Returns the weight of @function when it is called by main. */
static uint64_t weight_of(const struct profile *profile, const char *function)
{
	for (size_t i = 1; i < profile->n_nodes; i++) {
		uint32_t parent = profile->nodes[i].parent;

		if (is_called(profile, i, function) && is_called(profile, parent, "main") &&
		    !profile->nodes[parent].parent)
			return profile->nodes[i].self;
	}
	return 0;
}

static void test_bounds(void)
{
	enum { LIMIT = 100000, STACKS = 100000 };
	static const struct profile_filter all = {};
	struct live_profile *live = NULL;
	struct live_profile_stats stats;
	struct profile *profile = NULL;
	struct stream stream = {};
	bool within = true;

	live_profile__new(LIMIT, &live);
	ids__new(live_profile__sink(live), &stream.ids, &err);
	begin(&stream);
	for (uint32_t i = 1; i <= STACKS; i++) {
		take_one(&stream, stream.threads[2], i, 1);
		take_one(&stream, stream.threads[0], STACKS + 1, 3);
		live_profile__stats(live, &stats);
		within = within && stats.bytes <= LIMIT;
	}
	ok(within, "it never takes more than the limit");
	is_int(stats.samples, 2 * STACKS, "all samples came");
	ok(stats.stacks > 100 && stats.stacks < 2000, "some stacks are there");
	is_int(stats.evicted, STACKS + 1 - stats.stacks, "the others are counted");
	take_one(&stream, stream.threads[2], 1, 1);
	live_profile__stats(live, &stats);
	is_int(stats.evicted, STACKS + 2 - stats.stacks,
	       "one of them that comes again is no loss more");
	if (!ok(!live_profile__get(live, &all, &profile, NULL, &err), "a profile"))
		return;
	is_int(weight_of(profile, "function 100001"), 3 * STACKS, "what is always there is whole");
	is_int(weight_of(profile, "function 100000"), 1, "the newest are there");
	is_int(weight_of(profile, "function 1"), 1, "and one that has come again");
	is_int(weight_of(profile, "function 2"), 0, "the oldest are not");
	is_int(profile->total, 3 * STACKS + stats.stacks - 1, "nothing else is");
	ok(profile->n_losses == 1 && profile->losses[0].count == stats.evicted, "a loss says so");
	profile__free(profile);
	ids__free(stream.ids);
	live_profile__free(live);
	live_profile__free(NULL);
}

/* Each sample has the labels of its own context, also if another sample precedes it. */
static void test_queue(void)
{
	static const struct sink_label label = { "http.route", "/orders" };
	static const struct sink_context context = { .labels = &label, .n_labels = 1 };
	struct sink_sample sample = { .event = 1, .weight = 1 };
	struct live_profile *live = NULL;
	struct live_sample taken;
	struct stream stream = {};
	uint32_t id = 0;

	live_profile__new(1 << 20, &live);
	live_profile__queue(live, 2);
	ids__new(live_profile__sink(live), &stream.ids, &err);
	begin(&stream);
	ids__context(stream.ids, &context, &id, &err);
	sample.thread = stream.threads[1];
	ids__sample(stream.ids, &sample, &err);
	sample.context = id;
	sample.thread = stream.threads[0];
	ids__sample(stream.ids, &sample, &err);
	ids__sample(stream.ids, &sample, &err);
	ok(live_profile__next(live, false, &taken) == 1 && !taken.queued->n_labels,
	   "a sample without a context has no labels");
	ok(live_profile__next(live, false, &taken) == 1 && taken.queued->n_labels == 1 &&
		   !strcmp(taken.queued->labels[0].value, "/orders"),
	   "the sample with the context has its labels");
	is_int(live_profile__next(live, false, &taken), 0, "a full queue takes no more");
	ids__free(stream.ids);
	live_profile__free(live);
}

int main(void)
{
	workdir__make();
	snprintf(path, sizeof(path), "%s/live.db", workdir);
	test_same();
	test_bounds();
	test_queue();
	return tap__done();
}
