// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/idle.h"

#include <fnmatch.h>
#include <string.h>

#include "core/base/syscalls.h"

struct wait {
	const struct recorded *recorded;
	const struct recorded_stack *stack;
	const struct profile *profile;
	const uint32_t *frames; /* root first */
	size_t n;
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

static bool has_image(const struct wait *wait, const char *pattern)
{
	const struct recorded *recorded = wait->recorded;
	uint32_t node = wait->stack->native;

	if (!pattern)
		return true;
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

static const char *text_of(const struct wait *wait, uint32_t text)
{
	return strtab__get(wait->profile->strings, text);
}

static bool is_native(const struct profile_frame *frame)
{
	return frame->kind == KIND_NATIVE || frame->kind == KIND_INLINED;
}

static bool has_outer(const struct wait *wait, size_t below, const char *pattern)
{
	if (!pattern)
		return true;
	while (below-- > 0) {
		const struct profile_frame *frame = &wait->profile->frames[wait->frames[below]];

		if (!is_native(frame))
			return fits(pattern, text_of(wait, frame->name));
	}
	return false;
}

static bool has_function(const struct wait *wait, const struct idle_rule *rule)
{
	if (!rule->function)
		return true;
	for (size_t i = wait->n; i-- > 0;) {
		const struct profile_frame *frame = &wait->profile->frames[wait->frames[i]];
		const char *name = text_of(wait, frame->name);
		bool native = is_native(frame);

		if (frame->kind == KIND_KERNEL)
			continue;
		if (native == rule->native && fits(rule->function, name) &&
		    fits(rule->file, text_of(wait, frame->file)) && has_outer(wait, i, rule->outer))
			return true;
		if (native && !rule->native)
			continue;
		if (!rule->through || !fits(rule->through, name))
			return false;
	}
	return false;
}

static bool is_of(const struct wait *wait, const struct idle_rule *rule)
{
	const struct recorded *recorded = wait->recorded;
	uint32_t thread = wait->stack->thread;

	if (rule->thread &&
	    (thread == RECORDED_NONE ||
	     !fits(rule->thread, recorded__text(recorded, recorded->threads.rows[thread].name))))
		return false;
	return has_syscall(rule->syscalls, wait->stack->condition.syscall) &&
	       has_function(wait, rule) && has_image(wait, rule->image);
}

/* Who waits for the lock of its interpreter has work. */
bool idle__matches(const struct idle_rule *const *rules, const struct recorded *recorded,
		   const struct recorded_stack *stack, const struct profile *profile,
		   const uint32_t *frames, size_t n)
{
	const struct wait wait = { recorded, stack, profile, frames, n };

	if (stack->condition.state != STATE_BLOCKED || stack->condition.lock == LOCK_WAITED)
		return false;
	for (; *rules; rules++)
		for (const struct idle_rule *rule = *rules; rule->source; rule++)
			if (is_of(&wait, rule))
				return true;
	return false;
}
