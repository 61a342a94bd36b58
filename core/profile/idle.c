// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/idle.h"

#include <fnmatch.h>
#include <string.h>

#include "core/base/syscalls.h"

/* A wait of a recording: the context of the hooks of struct idle_wait. */
struct recorded_wait {
	const struct recorded *recorded;
	const struct recorded_stack *stack;
	const struct profile *profile;
	const uint32_t *frames; /* root first */
};

static bool fits(const char *pattern, const char *text)
{
	return !pattern || !fnmatch(pattern, text, FNM_EXTMATCH);
}

static bool has_syscall(const char *list, int number)
{
	const char *name = syscall__name(number), *at = list;
	size_t len = name ? strlen(name) : 0;

	if (!list)
		return true;
	while (name && (at = strstr(at, name))) {
		if ((at == list || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
			return true;
		at += len;
	}
	return false;
}

static bool is_native(const struct idle_frame *frame)
{
	return frame->kind == KIND_NATIVE || frame->kind == KIND_INLINED;
}

static struct idle_frame frame_at(const struct idle_wait *wait, size_t i)
{
	struct idle_frame frame;

	wait->get_frame(wait->ctx, i, &frame);
	return frame;
}

static bool has_outer(const struct idle_wait *wait, size_t below, const char *pattern)
{
	if (!pattern)
		return true;
	while (below-- > 0) {
		struct idle_frame frame = frame_at(wait, below);

		if (!is_native(&frame))
			return fits(pattern, frame.function);
	}
	return false;
}

static bool has_function(const struct idle_wait *wait, const struct idle_rule *rule)
{
	if (!rule->function)
		return true;
	for (size_t i = wait->n_frames; i-- > 0;) {
		struct idle_frame frame = frame_at(wait, i);
		bool native = is_native(&frame);

		if (frame.kind == KIND_KERNEL)
			continue;
		if (native == rule->native && fits(rule->function, frame.function) &&
		    fits(rule->file, frame.file) && has_outer(wait, i, rule->outer))
			return true;
		if (native && !rule->native)
			continue;
		if (!rule->through || !fits(rule->through, frame.function))
			return false;
	}
	return false;
}

static bool is_of(const struct idle_wait *wait, const struct idle_rule *rule)
{
	if (rule->thread && (!wait->thread || !fits(rule->thread, wait->thread)))
		return false;
	return has_syscall(rule->syscalls, wait->syscall) && has_function(wait, rule) &&
	       (!rule->image || wait->has_image(wait->ctx, rule->image));
}

bool idle__fits(const struct idle_rule *const *rules, const struct idle_wait *wait)
{
	for (; *rules; rules++)
		for (const struct idle_rule *rule = *rules; rule->source; rule++)
			if (is_of(wait, rule))
				return true;
	return false;
}

bool idle__is_image(const char *pattern, const char *name)
{
	return fits(pattern, name);
}

static bool has_image(const void *ctx, const char *pattern)
{
	const struct recorded_wait *wait = ctx;
	const struct recorded *recorded = wait->recorded;
	uint32_t node = wait->stack->native;

	for (; node != RECORDED_NONE; node = recorded->nodes.rows[node].parent) {
		uint32_t frame = recorded->nodes.rows[node].frame;
		uint32_t image =
			frame == RECORDED_NONE ? frame : recorded->frames.rows[frame].image;

		if (image != RECORDED_NONE &&
		    fits(pattern, recorded__text(recorded, recorded->images.rows[image].name)))
			return true;
	}
	return false;
}

static void get_frame(const void *ctx, size_t i, struct idle_frame *ret)
{
	const struct recorded_wait *wait = ctx;
	const struct profile_frame *frame = &wait->profile->frames[wait->frames[i]];

	ret->kind = frame->kind;
	ret->function = strtab__get(wait->profile->strings, frame->name);
	ret->file = strtab__get(wait->profile->strings, frame->file);
}

/* A thread that waits for the lock of its interpreter has work, so that its wait is not idle. */
bool idle__matches(const struct idle_rule *const *rules, const struct recorded *recorded,
		   const struct recorded_stack *stack, const struct profile *profile,
		   const uint32_t *frames, size_t n)
{
	const struct recorded_wait of = { recorded, stack, profile, frames };
	const struct idle_wait wait = {
		.thread = stack->thread == RECORDED_NONE
				  ? NULL
				  : recorded__text(recorded,
						   recorded->threads.rows[stack->thread].name),
		.syscall = stack->condition.syscall,
		.n_frames = n,
		.ctx = &of,
		.get_frame = get_frame,
		.has_image = has_image,
	};

	return (stack->condition.state == STATE_BLOCKED ||
		stack->condition.state == STATE_PARKED) &&
	       stack->condition.lock != LOCK_WAITED && idle__fits(rules, &wait);
}
