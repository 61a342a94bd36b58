// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/fuzz/recording_seed.h"

#include <sqlite3.h>
#include <string.h>

#include "core/capture/ids.h"
#include "core/store/load.h"
#include "core/store/recording.h"
#include "runtimes/jvm/jvm_idle.h"
#include "runtimes/native/native_idle.h"
#include "tests/fuzz/fuzz.h"

#define FUNCTION    "seed_function"
#define OTHER_EVENT "seed:event"

static void check(int rc, const struct err *err)
{
	if (rc)
		fuzz__die("the recording cannot be written: %s", err->text);
}

struct parts {
	uint32_t event, other_event, process, thread, image;
	uint32_t kernel, loop, native, runtime; /* frames */
};

static void add_names(struct recording *to, struct ids *ids, struct parts *parts)
{
	static const struct sink_event event = { "cpu", SINK_UNIT_SAMPLES };
	static const struct sink_event other = { OTHER_EVENT, SINK_UNIT_NS };
	static const struct sink_process process = {
		100, 1, 5, "seed", "./seed of it", NULL, NULL
	};
	struct err err = {};

	check(recording__meta(to, "target", "pid 100 (seed)", &err), &err);
	check(recording__meta(to, "duration_s", "1.5", &err), &err);
	check(recording__meta(to, "frequency_hz", "99", &err), &err);
	check(recording__counter(to, "samples taken", 2, &err), &err);
	check(recording__counter(to, "samples lost", 1, &err), &err);
	check(recording__kind(to, KIND_KERNEL, "kernel", "_[k]", &err), &err);
	check(recording__kind(to, KIND_NATIVE, "native", "_[n]", &err), &err);
	check(recording__kind(to, KIND_INLINED, "inlined", "_[i]", &err), &err);
	check(recording__kind(to, KIND_RUNTIME, "seed", "_[s]", &err), &err);
	check(ids__event(ids, &event, &parts->event, &err), &err);
	check(ids__event(ids, &other, &parts->other_event, &err), &err);
	check(ids__process(ids, &process, &parts->process, &err), &err);
	check(ids__thread(ids, parts->process, 101, "thread", &parts->thread, &err), &err);
	check(ids__source(ids,
			  &(struct sink_source) { parts->process, "seed", "1.2", "walk",
						  "it is best" },
			  &err),
	      &err);
	check(ids__image(ids, "/bin/seed", "0123456789abcdef", &parts->image, &err), &err);
	check(ids__attribute(ids, parts->process, &(struct sink_label) { "service.name", "seeds" },
			     &err),
	      &err);
}

static uint32_t add_frame(struct ids *ids, const struct ids_frame *frame,
			  const struct sink_location *locations, size_t n)
{
	struct err err = {};
	uint32_t id;

	check(ids__frame(ids, frame, &id, NULL, &err), &err);
	check(ids__locations(ids, id, locations, n, &err), &err);
	return id;
}

static void add_frames(struct ids *ids, struct parts *parts)
{
	struct ids_frame frame = { .kind = KIND_KERNEL, .address = -4096ULL };
	struct sink_location at[2] = { { KIND_KERNEL, "sys_seed", NULL, 0 } };

	parts->kernel = add_frame(ids, &frame, at, 1);
	frame = (struct ids_frame) { KIND_NATIVE, parts->image, 0, 0x1000, true, 0 };
	at[0] = (struct sink_location) { KIND_NATIVE, "loop", "loop.c", 7 };
	parts->loop = add_frame(ids, &frame, at, 1);
	frame.address = 0x2000;
	frame.loop = false;
	at[0] = (struct sink_location) { KIND_INLINED, "inlined", "seed.h", 8 };
	at[1] = (struct sink_location) { KIND_NATIVE, "native", "seed.c", 9 };
	parts->native = add_frame(ids, &frame, at, 2);
	frame = (struct ids_frame) { KIND_RUNTIME, 0, parts->process, 5, false, 0 };
	at[0] = (struct sink_location) { KIND_RUNTIME, FUNCTION, "seed.x", 10 };
	parts->runtime = add_frame(ids, &frame, at, 1);
}

static void add_samples(struct ids *ids, const struct parts *parts)
{
	struct sink_sample sample = { .time_ns = 1000,
				      .value = 1,
				      .weight = 1,
				      .total = 1,
				      .event = parts->event,
				      .thread = parts->thread,
				      .cpu = 1,
				      .flags = 1 };
	static const struct sink_label label = { "http.route", "/seed" };
	static const struct sink_context context = {
		.trace = "01", .span = "02", .labels = &label, .n_labels = 1
	};
	struct err err = {};

	check(ids__context(ids, &context, &sample.context, &err), &err);
	check(ids__node(ids, 0, parts->native, 64, &sample.native, &err), &err);
	check(ids__node(ids, sample.native, parts->loop, 128, &sample.native, &err), &err);
	check(ids__node(ids, 0, parts->runtime, 130, &sample.runtime, &err), &err);
	check(ids__sample(ids, &sample, &err), &err);
	check(ids__node(ids, sample.native, parts->kernel, SINK_NO_OFFSET, &sample.native, &err),
	      &err);
	check(ids__node(ids, sample.runtime, parts->runtime, SINK_APART, &sample.runtime, &err),
	      &err);
	sample.time_ns += 1000;
	check(ids__sample(ids, &sample, &err), &err);
	sample.event = parts->other_event;
	sample.value = sample.total = UINT64_MAX;
	sample.condition = (struct rec_condition) { .state = STATE_BLOCKED, .syscall = 1 };
	check(ids__sample(ids, &sample, &err), &err);
}

/* Makes the file smaller, as a fuzzer is faster with fewer bytes. */
static void shrink(const char *path)
{
	sqlite3 *db = NULL;

	if (sqlite3_open(path, &db) ||
	    sqlite3_exec(db, "PRAGMA journal_mode = OFF; PRAGMA page_size = 512; VACUUM", NULL,
			 NULL, NULL))
		fuzz__die("the recording cannot be made smaller: %s", sqlite3_errmsg(db));
	sqlite3_close(db);
}

uint8_t *recording_seed__make(size_t *ret_size)
{
	const char *path = fuzz__file(NULL, 0);
	struct recording *recording;
	struct ids *ids;
	struct parts parts = {};
	struct err err = {};
	uint8_t *data;

	check(recording__create(path, false, &recording, &err), &err);
	check(ids__new(recording__sink(recording), &ids, &err), &err);
	add_names(recording, ids, &parts);
	add_frames(ids, &parts);
	add_samples(ids, &parts);
	ids__free(ids);
	check(recording__close(recording, &err), &err);
	shrink(path);
	data = fuzz__read(path, ret_size);
	fuzz__file(NULL, 0);
	return data;
}

static bool load(const char *path, const struct profile_filter *filter,
		 void (*show)(const struct profile *profile))
{
	struct profile *profile = NULL;
	struct merge_report report;
	bool named = false;

	if (load__profile(path, filter, &profile, &report, NULL) != 0)
		return false;
	for (size_t i = 0; i < profile->n_frames; i++)
		named |= !strcmp(strtab__get(profile->strings, profile->frames[i].name), FUNCTION);
	named &= profile->total > 1;
	if (show)
		show(profile);
	profile__free(profile);
	return named;
}

bool recording_seed__load(const char *path, void (*show)(const struct profile *profile))
{
	const struct idle_rule *const rules[] = { native_idle, jvm_idle, NULL };
	const struct profile_filter plain = { .lines = true, .times = true };
	struct profile_filter filter = { .lines = true, .event = OTHER_EVENT, .histogram = true };
	bool named = load(path, &plain, show);

	load(path, &filter, show);
	filter.idle = rules;
	filter.not_thread = "a.*";
	filter.by = PROFILE_BY_STATE;
	load(path, &filter, show);
	filter.by = PROFILE_BY_THREAD;
	load(path, &filter, NULL);
	return named;
}
