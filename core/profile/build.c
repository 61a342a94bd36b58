// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/build.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/select.h"

/* A file can name the same long stacks in so many combinations that no memory holds them. */
#define PROFILE_NODES_MAX (1u << 26)

#define UNKNOWN "[unknown]"

/* The counter that is not a loss. */
#define COUNTER_TAKEN "samples taken"

/* What frames are shown as: places in `names`, innermost first. Made when first needed, so that
 * the profile has nothing in it that was filtered out. */
struct shown {
	uint32_t first, n; /* n 0: not made yet */
};

/* The frames from a node outwards. They end where the array ends, so that those which the next
 * chain has in common with this one are where they belong already. */
struct chain {
	struct merge_frame frames[RECORDED_DEPTH_MAX];
	uint32_t nodes[RECORDED_DEPTH_MAX];
	size_t n;
};

struct build {
	const struct recorded *recorded;
	const struct profile_filter *filter;
	struct profile *profile;
	struct merge_report report;
	int kinds[KINDS_MAX + 1]; /* of the file -> of the profile */
	struct shown *shown;	  /* by frame; one more for frames that lead nowhere */
	uint32_t *names;	  /* profile frames */
	size_t n_names, cap_names;
	struct chain native, runtime;
	struct merge_placed placed[2 * RECORDED_DEPTH_MAX];
	uint32_t *stack; /* profile frames, root first */
	size_t cap_stack;
};

/* The first kinds are what profile.h says; a file cannot rename them. Frames of a kind that the
 * file does not name are shown as native ones. */
static void map_kinds(struct build *build)
{
	const struct recorded *recorded = build->recorded;
	int i;

	for (i = 0; i <= KINDS_MAX; i++)
		build->kinds[i] = i < KIND_RUNTIME ? i : KIND_NATIVE;
	for (i = KIND_RUNTIME; i < KINDS_MAX; i++) {
		const char *name = recorded__text(recorded, recorded->kind_names[i]);
		const char *suffix = recorded__text(recorded, recorded->kind_suffixes[i]);
		int kind = *name ? profile__kind(build->profile, name, suffix) : -ENOENT;

		if (kind >= 0)
			build->kinds[i] = kind;
	}
}

static int add_name(struct build *build, struct shown *shown, uint8_t kind, const char *name,
		    const char *file, uint32_t line)
{
	uint32_t frame;

	if (array__reserve(&build->names, &build->cap_names, build->n_names + 1,
			   sizeof(*build->names)) ||
	    profile__frame(build->profile, build->kinds[kind], name, file,
			   build->filter->lines ? line : 0, &frame))
		return -ENOMEM;
	build->names[build->n_names++] = frame;
	shown->n++;
	return 0;
}

/* The recorder was killed before it could name it. */
static int add_unnamed(struct build *build, struct shown *shown, const struct recorded_frame *frame)
{
	const struct recorded *recorded = build->recorded;
	const char *image = NULL;
	char name[300];

	if (frame->kind == KIND_KERNEL)
		image = "kernel";
	else if (frame->kind == KIND_NATIVE && frame->image != RECORDED_NONE)
		image = recorded__text(recorded, recorded->images.rows[frame->image].name);
	if (!image || !*image)
		return add_name(build, shown, frame->kind, UNKNOWN, NULL, 0);
	snprintf(name, sizeof(name), "[%.255s+0x%" PRIx64 "]", image, frame->address);
	return add_name(build, shown, frame->kind, name, NULL, 0);
}

static int add_location(struct build *build, struct shown *shown,
			const struct recorded_location *location)
{
	const struct recorded *recorded = build->recorded;
	const char *name = "", *file = NULL;

	if (location->function != RECORDED_NONE) {
		const struct recorded_function *function =
			&recorded->functions.rows[location->function];

		name = recorded__text(recorded, function->name);
		file = recorded__text(recorded, function->file);
	}
	return add_name(build, shown, location->kind, *name ? name : UNKNOWN, file, location->line);
}

static int show(struct build *build, uint32_t frame, const struct shown **ret)
{
	const struct recorded_frame *from = NULL;
	struct shown *shown;
	int ret_code = 0;
	uint32_t i;

	if (frame == RECORDED_NONE)
		frame = build->recorded->frames.n;
	else
		from = &build->recorded->frames.rows[frame];
	shown = &build->shown[frame];
	*ret = shown;
	if (shown->n)
		return 0;
	shown->first = build->n_names;
	if (!from)
		return add_name(build, shown, KIND_NATIVE, UNKNOWN, NULL, 0);
	if (!from->n_locations)
		return add_unnamed(build, shown, from);
	for (i = 0; !ret_code && i < from->n_locations; i++)
		ret_code = add_location(build, shown,
					&build->recorded->locations.rows[from->location + i]);
	return ret_code;
}

static struct merge_frame merge_frame(const struct recorded *recorded,
				      const struct recorded_node *node)
{
	static const struct recorded_frame none = { .kind = KINDS_MAX };
	const struct recorded_frame *frame =
		node->frame == RECORDED_NONE ? &none : &recorded->frames.rows[node->frame];
	bool kernel = frame->kind == KIND_KERNEL;

	return (struct merge_frame) { .frame = node->frame,
				      .kind = frame->kind,
				      .kernel = kernel,
				      .loop = frame->loop,
				      .jit = frame->kind == KIND_NATIVE && frame->anonymous &&
					     !frame->loop,
				      .address = kernel ? MERGE_NO_ADDRESS : node->address };
}

/* Returns its first frame. A node's depth is at most RECORDED_DEPTH_MAX: that was checked. */
static const struct merge_frame *chain__set(struct chain *chain, const struct recorded *recorded,
					    uint32_t node)
{
	size_t n = node == RECORDED_NONE ? 0 : recorded->nodes.rows[node].depth;
	size_t i, known = RECORDED_DEPTH_MAX - min_of(chain->n, n);

	assert(n <= RECORDED_DEPTH_MAX);
	for (i = RECORDED_DEPTH_MAX - n; node != RECORDED_NONE; i++) {
		if (i >= known && chain->nodes[i] == node)
			break; /* so are all further out */
		chain->frames[i] = merge_frame(recorded, &recorded->nodes.rows[node]);
		chain->nodes[i] = node;
		node = recorded->nodes.rows[node].parent;
	}
	chain->n = n;
	return &chain->frames[RECORDED_DEPTH_MAX - n];
}

static int add_stack(struct build *build, const struct recorded_stack *stack)
{
	const struct merge_frame *native =
		chain__set(&build->native, build->recorded, stack->native);
	const struct merge_frame *runtime =
		chain__set(&build->runtime, build->recorded, stack->runtime);
	struct merge_report report = { 0 };
	size_t n_placed, n = 0, i;

	n_placed = merge__run(native, build->native.n, runtime, build->runtime.n,
			      build->filter->keep_vm, build->placed, &report);
	assert(n_placed <= build->native.n + build->runtime.n);
	build->report.by_address += report.by_address * stack->samples;
	build->report.by_order += report.by_order * stack->samples;
	build->report.appended += report.appended * stack->samples;
	build->report.apart += report.apart * stack->samples;
	build->report.loops += report.loops * stack->samples;
	for (i = n_placed; i-- > 0;) {
		const struct shown *shown;
		uint32_t level;

		if (show(build, build->placed[i].frame, &shown) ||
		    array__reserve(&build->stack, &build->cap_stack, n + shown->n,
				   sizeof(*build->stack)))
			return -ENOMEM;
		for (level = shown->n; level-- > 0;)
			build->stack[n++] = build->names[shown->first + level];
	}
	if (build->profile->n_nodes + n > PROFILE_NODES_MAX)
		return -ENOMEM;
	build->profile->samples += stack->samples;
	return profile__add(build->profile, build->stack, n, stack->value);
}

/* The samples of one pair of stacks, whatever their threads, are merged at once. */
static int sum_up(const struct recorded *recorded, const struct selection *selection,
		  struct recorded_stack **ret_stacks, size_t *ret_n)
{
	struct recorded_stack *stacks = malloc((recorded->stacks.n + 1) * sizeof(*stacks));
	struct intern index;
	size_t n = 0;
	int ret = stacks ? 0 : -ENOMEM;

	intern__init(&index, RECORDED_NONE);
	for (size_t i = 0; !ret && i < recorded->stacks.n; i++) {
		const struct recorded_stack *stack = &recorded->stacks.rows[i];
		uint32_t *place;

		if (!selection__has(selection, stack))
			continue;
		place = intern__at(&index, (uint64_t)stack->native << 32 | stack->runtime, 0);
		if (!place) {
			ret = -ENOMEM;
		} else if (!*place) {
			stacks[n++] = *stack;
			*place = n;
		} else {
			struct recorded_stack *sum = &stacks[*place - 1];

			sum->samples += stack->samples;
			if (__builtin_add_overflow(sum->value, stack->value, &sum->value))
				sum->value = UINT64_MAX;
		}
	}
	intern__done(&index);
	*ret_stacks = stacks;
	*ret_n = n;
	return ret;
}

static int add_stacks(struct build *build, const struct selection *selection)
{
	struct recorded_stack *stacks;
	size_t n;
	int ret = sum_up(build->recorded, selection, &stacks, &n);

	for (size_t i = 0; !ret && i < n; i++)
		ret = add_stack(build, &stacks[i]);
	free(stacks);
	return ret;
}

static int add_titles(struct build *build, const struct selection *selection)
{
	const struct recorded *recorded = build->recorded;
	struct profile *profile = build->profile;
	char others[300];
	size_t i;
	int ret = 0;

	if (selection->event != RECORDED_NONE) {
		const struct recorded_event *row = &recorded->events.rows[selection->event];

		if (profile__measures(profile, recorded__text(recorded, row->name),
				      recorded__text(recorded, row->unit)))
			return -ENOMEM;
	}
	profile->duration_s = recorded->duration_s;
	if (profile->unit == PROFILE_SAMPLES) /* what comes with others is no matter of a rate */
		profile->frequency_hz = recorded->frequency_hz;
	profile->target = strdup(recorded__text(recorded, recorded->target));
	selection__others(selection, recorded, others, sizeof(others));
	profile->other_events = strdup(others);
	if (!profile->target || !profile->other_events)
		return -ENOMEM;
	for (i = 0; !ret && i < recorded->counters.n; i++) {
		const struct recorded_counter *counter = &recorded->counters.rows[i];
		const char *name = recorded__text(recorded, counter->name);

		if (strcmp(name, COUNTER_TAKEN))
			ret = profile__add_loss(profile, name, counter->value);
	}
	return ret;
}

static void build_free(struct build *build)
{
	if (!build)
		return;
	profile__free(build->profile);
	free(build->shown);
	free(build->names);
	free(build->stack);
	free(build);
}

static int build_selected(const struct recorded *recorded, const struct profile_filter *filter,
			  const struct selection *selection, struct profile **ret,
			  struct merge_report *report)
{
	struct build *build = calloc(1, sizeof(*build));
	int code = -ENOMEM;

	if (!build)
		return code;
	build->recorded = recorded;
	build->filter = filter;
	build->profile = profile__new();
	build->shown = calloc(recorded->frames.n + 1, sizeof(*build->shown));
	if (!build->profile || !build->shown)
		goto out;
	map_kinds(build);
	code = add_titles(build, selection);
	if (!code)
		code = add_stacks(build, selection);
	if (code)
		goto out;
	*ret = build->profile;
	build->profile = NULL;
	if (report)
		*report = build->report;
out:
	build_free(build);
	return code;
}

int build__profile(const struct recorded *recorded, const char *what,
		   const struct profile_filter *filter, struct profile **ret,
		   struct merge_report *report, struct err *err)
{
	struct selection selection;
	int code = selection__init(&selection, recorded, what, filter, err);

	if (!code && build_selected(recorded, filter, &selection, ret, report))
		code = err__set(err, -ENOMEM, "out of memory for the stacks in %s", what);
	selection__done(&selection);
	return code;
}
