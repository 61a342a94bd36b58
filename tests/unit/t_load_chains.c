// SPDX-License-Identifier: GPL-2.0-or-later
/* Stacks that share their outer frames, and in part their depth: each one remains complete. */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/util.h"
#include "core/capture/ids.h"
#include "core/out/output.h"
#include "core/store/load.h"
#include "core/store/recording.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

static struct err err;

/* Adds a node of the tree whose frame has a letter as its name. */
static uint32_t add_node(struct ids *ids, uint32_t parent, char letter)
{
	struct ids_frame frame = { .kind = KIND_NATIVE, .address = letter };
	struct sink_location location = { KIND_NATIVE, (char[]) { letter, '\0' }, NULL, 0 };
	uint32_t id, node = 0;
	bool is_new;

	ids__frame(ids, &frame, &id, &is_new, &err);
	if (is_new)
		ids__locations(ids, id, &location, 1, &err);
	ids__node(ids, parent, id, SINK_NO_OFFSET, &node, &err);
	return node;
}

/* Records stacks of letters, outermost first, in this order. */
static void record(const char *path, const char *const *stacks, size_t n)
{
	static const struct sink_process app = { 42, 1, 1, "app", "app", NULL, NULL };
	struct sink_sample sample = {
		.time_ns = 1, .event = 1, .value = 1, .weight = 1, .total = 1
	};
	struct recording *recording = NULL;
	struct ids *ids = NULL;
	uint32_t process;

	recording__create(path, true, &recording, &err);
	ids__new(recording__sink(recording), &ids, &err);
	recording__kind(recording, KIND_NATIVE, "native", "", &err);
	ids__process(ids, &app, &process, &err);
	ids__thread(ids, process, 42, "app", &sample.thread, &err);
	for (size_t i = 0; i < n; i++) {
		sample.native = 0;
		for (const char *letter = stacks[i]; *letter; letter++)
			sample.native = add_node(ids, sample.native, *letter);
		ids__sample(ids, &sample, &err);
	}
	ids__free(ids);
	if (recording__close(recording, &err))
		printf("Bail out! %s\n", err.text);
}

static const char *folded(const char *path)
{
	const struct profile_filter filter = { 0 };
	const struct output_opts opts = { 0 };
	struct profile *profile = NULL;
	static char text[1000];
	FILE *out = fmemopen(text, sizeof(text), "w");

	if (load__profile(path, &filter, &profile, NULL, &err) ||
	    output__folded(profile, &opts, out))
		fprintf(out, "%s", err.text);
	fclose(out);
	profile__free(profile);
	return text;
}

int main(void)
{
	static const char *const stacks[] = { "mabc", "mabd", "mxbd", "mx", "mabce", "nabce" };
	char path[100];

	workdir__make();
	snprintf(path, sizeof(path), "%s/chains.db", workdir);
	record(path, stacks, ARRAY_SIZE(stacks));
	is_str(folded(path), "m;a;b;c 1\nm;a;b;c;e 1\nm;a;b;d 1\nm;x 1\nm;x;b;d 1\nn;a;b;c;e 1\n",
	       "stacks");
	return tap__done();
}
