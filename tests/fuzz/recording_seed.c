// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/fuzz/recording_seed.h"

#include <sqlite3.h>
#include <string.h>

#include "core/load.h"
#include "core/recording.h"
#include "tests/fuzz/fuzz.h"

#define FUNCTION "seed_function"

static void check(int rc, const struct err *err)
{
	if (rc)
		fuzz__die("the recording cannot be written: %s", err->text);
}

struct parts {
	uint32_t process, thread, image;
	uint32_t kernel, loop, native, runtime; /* frames */
};

static void add_names(struct recording *to, struct parts *parts)
{
	static const struct recording_process process = { 100, 1, 5, "seed", "./seed of it" };
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
	check(recording__process(to, &process, &parts->process, &err), &err);
	check(recording__thread(to, parts->process, 101, "thread", &parts->thread, &err), &err);
	check(recording__source(to, parts->process, "seed", "1.2", "walk", "it is best", &err),
	      &err);
	check(recording__image(to, "/bin/seed", "0123456789abcdef", &parts->image, &err), &err);
}

static uint32_t add_frame(struct recording *to, const struct recording_frame *frame,
			  const struct recording_location *locations, size_t n)
{
	struct err err = {};
	uint32_t id;

	check(recording__frame(to, frame, &id, NULL, &err), &err);
	check(recording__locations(to, id, locations, n, &err), &err);
	return id;
}

static void add_frames(struct recording *to, struct parts *parts)
{
	struct recording_frame frame = { .kind = KIND_KERNEL, .address = -4096ULL };
	struct recording_location at[2] = { { KIND_KERNEL, "sys_seed", NULL, 0 } };

	parts->kernel = add_frame(to, &frame, at, 1);
	frame = (struct recording_frame) { KIND_NATIVE, parts->image, 0, 0x1000, true, 0 };
	at[0] = (struct recording_location) { KIND_NATIVE, "loop", "loop.c", 7 };
	parts->loop = add_frame(to, &frame, at, 1);
	frame.address = 0x2000;
	frame.loop = false;
	at[0] = (struct recording_location) { KIND_INLINED, "inlined", "seed.h", 8 };
	at[1] = (struct recording_location) { KIND_NATIVE, "native", "seed.c", 9 };
	parts->native = add_frame(to, &frame, at, 2);
	frame = (struct recording_frame) { KIND_RUNTIME, 0, parts->process, 5, false, 0 };
	at[0] = (struct recording_location) { KIND_RUNTIME, FUNCTION, "seed.x", 10 };
	parts->runtime = add_frame(to, &frame, at, 1);
}

static void add_samples(struct recording *to, const struct parts *parts)
{
	struct recording_sample sample = { 1000, parts->thread, 1, 0, 0, 1, 1 };
	struct err err = {};

	check(recording__node(to, 0, parts->native, 64, &sample.native, &err), &err);
	check(recording__node(to, sample.native, parts->loop, 128, &sample.native, &err), &err);
	check(recording__node(to, 0, parts->runtime, 130, &sample.runtime, &err), &err);
	check(recording__sample(to, &sample, &err), &err);
	check(recording__node(to, sample.native, parts->kernel, RECORDING_NO_OFFSET, &sample.native,
			      &err),
	      &err);
	check(recording__node(to, sample.runtime, parts->runtime, RECORDING_APART, &sample.runtime,
			      &err),
	      &err);
	sample.time_ns += 1000;
	check(recording__sample(to, &sample, &err), &err);
}

/* A fuzzer is the quicker the fewer bytes there are. */
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
	struct parts parts = {};
	struct err err = {};
	uint8_t *data;

	check(recording__create(path, false, &recording, &err), &err);
	add_names(recording, &parts);
	add_frames(recording, &parts);
	add_samples(recording, &parts);
	check(recording__close(recording, &err), &err);
	shrink(path);
	data = fuzz__read(path, ret_size);
	fuzz__file(NULL, 0);
	return data;
}

bool recording_seed__load(const char *path, void (*show)(const struct profile *profile))
{
	const struct load_filter filter = { .lines = true };
	struct profile *profile = NULL;
	struct merge_report report;
	bool named = false;

	if (load__profile(path, &filter, &profile, &report, NULL) != 0)
		return false;
	for (size_t i = 0; i < profile->n_frames; i++)
		named |= !strcmp(strtab__get(profile->strings, profile->frames[i].name), FUNCTION);
	named &= profile->samples > 1;
	if (show)
		show(profile);
	profile__free(profile);
	return named;
}
