// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/dump/dump_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/u64map.h"
#include "core/base/util.h"
#include "core/elf/demangle.h"
#include "core/profile/idle.h"

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

void dump_thread__clear(struct dump_thread *thread)
{
	while (thread->n_frames) {
		thread->n_frames--;
		free(thread->frames[thread->n_frames].function);
		free(thread->frames[thread->n_frames].file);
		free(thread->frames[thread->n_frames].image);
	}
}

/* Adds the frames of /proc/PID/task/TID/stack by name only. Lines are "[<0>]
 * futex_wait_queue+0x63/0x90", or "... [module]". */
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
		name[symbol_name__length(name)] = '\0';
		if (name[0])
			code = dump_thread__add(thread, KIND_KERNEL, name, "", 0);
	}
	return code;
}

/* Sets the file of the thread's last frame. Returns 0 or -ENOMEM. */
static int add_image(struct dump_thread *thread, const struct profile *profile, uint32_t image)
{
	struct dump_frame *frame = &thread->frames[thread->n_frames - 1];

	frame->image = strdup(strtab__get(profile->strings, profile->images[image].path));
	return frame->image ? 0 : -ENOMEM;
}

/* Adds the frames from the node to the root, innermost first. */
static int add_stack(struct dump_thread *thread, const struct profile *profile, const int *kinds,
		     uint32_t node)
{
	int code = 0;

	for (; !code && node; node = profile->nodes[node].parent) {
		const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];

		code = dump_thread__add(thread, kinds[frame->kind],
					strtab__get(profile->strings, frame->name),
					strtab__get(profile->strings, frame->file), frame->line);
		if (!code && frame->image)
			code = add_image(thread, profile, frame->image - 1);
	}
	return code;
}

/* Maps the kinds of a profile, which are numbered in the order of their appearance, to those of a
 * dump. */
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

/* Maps thread ids to the node where the stack of the thread's only sample ends. */
static int index_nodes(const struct profile *profile, struct u64map *ret)
{
	int code = 0;

	for (size_t i = 0; !code && i < profile->n_shares; i++) {
		const struct profile_share *share = &profile->shares[i];

		if (share->node)
			code = u64map__put(ret, profile->threads[share->thread].tid, share->node);
	}
	return code;
}

static int add_stacks(struct dump_thread *threads, size_t n, const struct profile *profile,
		      const int *kinds, const struct u64map *nodes)
{
	int code = 0;

	for (size_t i = 0; !code && i < n; i++)
		code = add_stack(&threads[i], profile, kinds, u64map__get(nodes, threads[i].tid));
	return code;
}

int dump__add_frames(struct dump *dump, struct live_profile *live, bool tasks, struct err *err)
{
	const struct profile_filter filter = {
		.lines = true, .addresses = true, .keep_vm = dump->opts.native, .threads = true
	};
	struct dump_process *result = dump->result;
	struct profile *profile = NULL;
	struct u64map nodes = {};
	int kinds[KINDS_MAX], code;

	code = live_profile__get(live, &filter, &profile, NULL, err);
	if (code == -ENOENT || code == -EINVAL) /* no samples */
		return 0;
	if (code)
		return code;
	map_kinds(dump, profile, kinds);
	code = index_nodes(profile, &nodes);
	if (!code)
		code = add_stacks(result->threads, result->n_threads, profile, kinds, &nodes);
	if (!code && tasks)
		code = add_stacks(result->tasks, result->n_tasks, profile, kinds, &nodes);
	u64map__done(&nodes);
	profile__free(profile);
	return code ? err__set(err, code, "out of memory") : 0;
}

/* --- idle waits --- */

static void get_frame(const void *ctx, size_t i, struct idle_frame *ret)
{
	const struct dump_thread *thread = ctx;
	const struct dump_frame *frame = &thread->frames[thread->n_frames - 1 - i];

	*ret = (struct idle_frame) { frame->function, frame->file, frame->kind };
}

static bool has_image(const void *ctx, const char *pattern)
{
	const struct dump_thread *thread = ctx;

	for (size_t i = 0; i < thread->n_frames; i++) {
		const char *path = thread->frames[i].image;
		const char *slash = path ? strrchr(path, '/') : NULL;

		if (path && idle__is_image(pattern, slash ? slash + 1 : path))
			return true;
	}
	return false;
}

/* Returns true if the thread or task is idle. A thread that waits for a lock has work. */
static bool is_idle(const struct dump *dump, const struct dump_thread *thread)
{
	const struct idle_rule *rules[RUNTIMES_MAX + 1] = {};
	const struct idle_wait wait = { .thread = thread->name,
					.syscall = thread->call,
					.n_frames = thread->n_frames,
					.ctx = thread,
					.get_frame = get_frame,
					.has_image = has_image };
	size_t n = 0;

	if (!(thread->sort ? !thread->doing[0] : thread->state == 'S') ||
	    thread->lock == LOCK_WAITED || !thread->complete)
		return false;
	for (size_t r = 0; dump->opts.runtimes[r] && n < RUNTIMES_MAX; r++)
		if (dump->opts.runtimes[r]->idle)
			rules[n++] = dump->opts.runtimes[r]->idle;
	return idle__fits(rules, &wait);
}

void dump__find_idle(const struct dump *dump, struct dump_process *process)
{
	for (size_t i = 0; i < process->n_threads; i++)
		process->threads[i].idle = is_idle(dump, &process->threads[i]);
	for (size_t i = 0; i < process->n_tasks; i++)
		process->tasks[i].idle = is_idle(dump, &process->tasks[i]);
}

int dump__frames(struct dump *dump, struct err *err)
{
	return dump__add_frames(dump, dump->live, true, err);
}
