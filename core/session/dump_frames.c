// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/session/dump_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

int dump_thread__add(struct dump_thread *thread, int kind, const char *function, const char *file,
		     uint32_t line)
{
	struct dump_frame frame = { .line = line, .kind = kind };

	frame.function = strdup(function);
	frame.file = strdup(file);
	if (!frame.function || !frame.file ||
	    array__reserve(&thread->frames, &thread->cap_frames, thread->n_frames + 1,
			   sizeof(*thread->frames))) {
		free(frame.function);
		free(frame.file);
		return -ENOMEM;
	}
	thread->frames[thread->n_frames++] = frame;
	return 0;
}

/* "[<0>] futex_wait_queue+0x63/0x90" or "... [module]": the name alone. */
int dump_thread__add_kernel(struct dump_thread *thread, const char *text)
{
	const char *line, *end;
	char name[256];
	int code = 0;

	for (line = text; !code && *line; line = *end ? end + 1 : end) {
		const char *at = strchr(line, ']');

		end = line + strcspn(line, "\n");
		if (!at || at > end || at[1] != ' ')
			continue;
		at += 2;
		snprintf(name, sizeof(name), "%.*s", (int)min_of(strcspn(at, "+ \n"), 255u), at);
		if (name[0])
			code = dump_thread__add(thread, KIND_KERNEL, name, "", 0);
	}
	return code;
}

/* Of the only sample that the thread has: from its node to the root, innermost first. */
static int add_stack(struct dump_thread *thread, const struct profile *profile, const int *kinds)
{
	uint32_t node = 0;
	int code = 0;

	for (size_t i = 1; i < profile->n_nodes; i++)
		node = profile->nodes[i].self ? i : node;
	for (; !code && node; node = profile->nodes[node].parent) {
		const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];

		code = dump_thread__add(thread, kinds[frame->kind],
					strtab__get(profile->strings, frame->name),
					strtab__get(profile->strings, frame->file), frame->line);
	}
	return code;
}

/* A profile numbers the kinds that it shows as they come. */
static void map_kinds(const struct dump *dump, const struct profile *profile, int ret[KINDS_MAX])
{
	for (int i = 0; i < KINDS_MAX; i++) {
		ret[i] = i < KIND_RUNTIME ? i : KIND_NATIVE;
		for (int r = 0;
		     i >= KIND_RUNTIME && (size_t)i < profile->n_kinds && dump->opts.runtimes[r];
		     r++)
			if (!strcmp(profile->kinds[i].name, dump->opts.runtimes[r]->name))
				ret[i] = KIND_RUNTIME + r;
	}
}

int dump__frames(struct dump *dump, struct dump_thread *thread, struct err *err)
{
	char tid[16];
	struct profile_filter filter = { .lines = true,
					 .keep_vm = dump->opts.native,
					 .pid = dump->process->pid,
					 .thread = tid };
	struct profile *profile = NULL;
	int kinds[KINDS_MAX], code;

	snprintf(tid, sizeof(tid), "%u", thread->tid);
	code = live_profile__get(dump->live, &filter, &profile, NULL, err);
	if (code == -ENOENT || code == -EINVAL) /* it has no sample */
		return 0;
	if (code)
		return code;
	map_kinds(dump, profile, kinds);
	code = add_stack(thread, profile, kinds);
	profile__free(profile);
	return code ? err__set(err, code, "out of memory") : 0;
}
