/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_UNIT_LOADED_H
#define BRAID_TESTS_UNIT_LOADED_H

/* A recording as the tests of load__profile() make it, and the profile that is loaded from it, as
 * text. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/util.h"
#include "core/capture/ids.h"
#include "core/store/load.h"
#include "core/store/recording.h"
#include "tests/tap.h"
#include "tests/unit/sqlite_text.h"
#include "tests/unit/workdir.h"

static char path[100];
static struct err err;

/* Returns all stacks, root first, with their weights, in the order of the tree. */
static const char *drawn(const struct profile *profile)
{
	static char text[4096];
	size_t len = 0, i;

	text[0] = '\0';
	for (i = 0; i < profile->n_nodes; i++) {
		uint32_t chain[64], n = 0, node = i;

		if (!profile->nodes[i].self)
			continue;
		for (; node && n < ARRAY_SIZE(chain); node = profile->nodes[node].parent)
			chain[n++] = profile->nodes[node].frame;
		len += snprintf(text + len, sizeof(text) - len, "%s", len ? "  " : "");
		while (n--) {
			char label[256];

			profile__label(profile, &profile->frames[chain[n]], 1, label,
				       sizeof(label));
			len += snprintf(text + len, sizeof(text) - len, "%s%s", label,
					n ? ";" : "");
		}
		len += snprintf(text + len, sizeof(text) - len, " %" PRIu64,
				profile->nodes[i].self);
	}
	return text;
}

/* Returns the profile that load__profile() makes of the file as text, or the name of its error. */
static const char *load_drawn(const struct profile_filter *filter)
{
	struct profile *profile = NULL;
	static char text[4096];
	int code = load__profile(path, filter, &profile, NULL, &err);

	if (code)
		return strerrorname_np(-code);
	snprintf(text, sizeof(text), "%s", drawn(profile));
	profile__free(profile);
	return text;
}

static uint32_t add_node(struct ids *ids, uint32_t parent, int64_t offset,
			 const struct ids_frame *frame, const struct sink_location *names, size_t n)
{
	uint32_t id, node = 0;
	bool new;

	ids__frame(ids, frame, &id, &new, &err);
	if (new)
		ids__locations(ids, id, names, n, &err);
	ids__node(ids, parent, id, offset, &node, &err);
	return node;
}

/* Writes a recording of four samples. One thread in main > eval > strcmp (> sys_read) runs mod > f:
 * two samples of weight 2. Another process in main > work, with helper inlined into work, has one
 * sample. One sample has no stack. */
static void record(void)
{
	static const struct sink_event cpu = { "cpu", SINK_UNIT_SAMPLES };
	static const struct sink_process app = { 42, 1, 1, "app", "app", NULL, NULL };
	static const struct sink_process tool = { 43, 42, 2, "tool", "tool -v", NULL, NULL };
	const struct sink_location in_main = { KIND_NATIVE, "main", "src/app.c", 10 };
	const struct sink_location in_eval = { KIND_NATIVE, "eval", NULL, 0 };
	const struct sink_location in_strcmp = { KIND_NATIVE, "strcmp", NULL, 0 };
	const struct sink_location in_read = { KIND_KERNEL, "sys_read", NULL, 0 };
	const struct sink_location in_mod = { KIND_RUNTIME, "<module>", "/x/app.py", 1 };
	const struct sink_location in_f = { KIND_RUNTIME, "f", "/x/app.py", 7 };
	const struct sink_location in_work[] = { { KIND_INLINED, "helper", "src/app.h", 3 },
						 { KIND_NATIVE, "work", "src/app.c", 20 } };
	struct sink_sample sample = { .time_ns = 1, .value = 2, .weight = 1, .total = 2 };
	struct recording *recording = NULL;
	struct ids *ids = NULL;
	uint32_t process[2], main_node, eval, image;

#define FRAME(...) (&(struct ids_frame) { __VA_ARGS__, .loop = false })
	recording__create(path, true, &recording, &err);
	ids__new(recording__sink(recording), &ids, &err);
	recording__kind(recording, KIND_KERNEL, "kernel", "_[k]", &err);
	recording__kind(recording, KIND_NATIVE, "native", "_[n]", &err);
	recording__kind(recording, KIND_INLINED, "inlined", "_[i]", &err);
	recording__kind(recording, KIND_RUNTIME, "python", "_[py]", &err);
	recording__meta(recording, "target", "pid 42 (app)", &err);
	recording__meta(recording, "duration_s", "1.5", &err);
	recording__meta(recording, "frequency_hz", "999", &err);
	recording__counter(recording, "samples taken", 4, &err);
	recording__counter(recording, "ring full", 3, &err);
	recording__counter(recording, "nothing", 0, &err);
	ids__event(ids, &cpu, &sample.event, &err);
	ids__process(ids, &app, &process[0], &err);
	ids__process(ids, &tool, &process[1], &err);
	ids__image(ids, "/usr/bin/app", "ab", &image, &err);

	ids__thread(ids, process[0], 42, "app", &sample.thread, &err);
	main_node = add_node(ids, 0, 0, FRAME(1, image, 0, 0x10), &in_main, 1);
	eval = add_node(ids, main_node, 100, FRAME(1, image, 0, 0x20), &in_eval, 1);
	sample.native = add_node(ids, eval, 200, FRAME(1, image, 0, 0x30), &in_strcmp, 1);
	sample.native = add_node(ids, sample.native, SINK_NO_OFFSET,
				 FRAME(0, 0, 0, 0xffffffff80000000), &in_read, 1);
	sample.runtime = add_node(ids, 0, 150, FRAME(3, 0, process[0], 1), &in_mod, 1);
	sample.runtime = add_node(ids, sample.runtime, 160, FRAME(3, 0, process[0], 2), &in_f, 1);
	ids__sample(ids, &sample, &err);
	ids__sample(ids, &sample, &err);
	sample.value = sample.total = 1;
	sample.native = sample.runtime = 0;
	ids__sample(ids, &sample, &err);

	ids__thread(ids, process[1], 44, "worker", &sample.thread, &err);
	sample.native = add_node(ids, main_node, 50, FRAME(1, image, 0, 0x40), in_work, 2);
	ids__sample(ids, &sample, &err);
	ids__free(ids);
	if (recording__close(recording, &err))
		printf("Bail out! %s\n", err.text);
}

#define PYTHON "<module> (app.py)_[py];f (app.py)_[py];strcmp_[n];sys_read_[k]"
#define ALL    " 1  main_[n];" PYTHON " 4  main_[n];work_[n];helper_[i] 1"

#endif
