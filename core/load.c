// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/load_select.h"
#include "core/load_tables.h"
#include "core/util.h"

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
	struct merge_frame frames[LOAD_DEPTH_MAX];
	uint32_t nodes[LOAD_DEPTH_MAX];
	size_t n;
};

struct build {
	const struct load_tables *tables;
	const struct load_filter *filter;
	struct profile *profile;
	struct merge_report report;
	int kinds[KINDS_MAX + 1]; /* of the file -> of the profile */
	struct shown *shown;	  /* by frame; one more for frames that lead nowhere */
	uint32_t *names;	  /* profile frames */
	size_t n_names, cap_names;
	struct chain native, runtime;
	struct merge_placed placed[2 * LOAD_DEPTH_MAX];
	uint32_t *stack; /* profile frames, root first */
	size_t cap_stack;
};

/* The first kinds are what profile.h says; a file cannot rename them. Frames of a kind that the
 * file does not name are shown as native ones. */
static void map_kinds(struct build *build)
{
	const struct load_tables *tables = build->tables;
	int i;

	for (i = 0; i <= KINDS_MAX; i++)
		build->kinds[i] = i < KIND_RUNTIME ? i : KIND_NATIVE;
	for (i = KIND_RUNTIME; i < KINDS_MAX; i++) {
		const char *name = load_tables__text(tables, tables->kind_names[i]);
		const char *suffix = load_tables__text(tables, tables->kind_suffixes[i]);
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
static int add_unnamed(struct build *build, struct shown *shown, const struct load_frame *frame)
{
	const struct load_tables *tables = build->tables;
	const char *image = NULL;
	char name[300];

	if (frame->kind == KIND_KERNEL)
		image = "kernel";
	else if (frame->kind == KIND_NATIVE && frame->image != LOAD_NONE)
		image = load_tables__text(tables, tables->images.rows[frame->image].name);
	if (!image || !*image)
		return add_name(build, shown, frame->kind, UNKNOWN, NULL, 0);
	snprintf(name, sizeof(name), "[%.255s+0x%" PRIx64 "]", image, frame->address);
	return add_name(build, shown, frame->kind, name, NULL, 0);
}

static int add_location(struct build *build, struct shown *shown,
			const struct load_location *location)
{
	const struct load_tables *tables = build->tables;
	const char *name = "", *file = NULL;

	if (location->function != LOAD_NONE) {
		const struct load_function *function = &tables->functions.rows[location->function];

		name = load_tables__text(tables, function->name);
		file = load_tables__text(tables, function->file);
	}
	return add_name(build, shown, location->kind, *name ? name : UNKNOWN, file, location->line);
}

static int show(struct build *build, uint32_t frame, const struct shown **ret)
{
	const struct load_frame *from = NULL;
	struct shown *shown;
	int ret_code = 0;
	uint32_t i;

	if (frame == LOAD_NONE)
		frame = build->tables->frames.n;
	else
		from = &build->tables->frames.rows[frame];
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
					&build->tables->locations.rows[from->location + i]);
	return ret_code;
}

static struct merge_frame merge_frame(const struct load_tables *tables,
				      const struct load_node *node)
{
	static const struct load_frame none = { .kind = KINDS_MAX };
	const struct load_frame *frame =
		node->frame == LOAD_NONE ? &none : &tables->frames.rows[node->frame];
	bool kernel = frame->kind == KIND_KERNEL;

	return (struct merge_frame) { .frame = node->frame,
				      .kernel = kernel,
				      .loop = frame->loop,
				      .jit = frame->kind == KIND_NATIVE && frame->anonymous &&
					     !frame->loop,
				      .address = kernel ? MERGE_NO_ADDRESS : node->address };
}

/* Returns its first frame. A node's depth is at most LOAD_DEPTH_MAX: that was checked. */
static const struct merge_frame *chain__set(struct chain *chain, const struct load_tables *tables,
					    uint32_t node)
{
	size_t n = node == LOAD_NONE ? 0 : tables->nodes.rows[node].depth;
	size_t i, known = LOAD_DEPTH_MAX - min_of(chain->n, n);

	for (i = LOAD_DEPTH_MAX - n; node != LOAD_NONE; i++) {
		if (i >= known && chain->nodes[i] == node)
			break; /* so are all further out */
		chain->frames[i] = merge_frame(tables, &tables->nodes.rows[node]);
		chain->nodes[i] = node;
		node = tables->nodes.rows[node].parent;
	}
	chain->n = n;
	return &chain->frames[LOAD_DEPTH_MAX - n];
}

static int add_stack(struct build *build, const struct load_stack *stack)
{
	const struct merge_frame *native = chain__set(&build->native, build->tables, stack->native);
	const struct merge_frame *runtime =
		chain__set(&build->runtime, build->tables, stack->runtime);
	struct merge_report report = { 0 };
	size_t n_placed, n = 0, i;

	n_placed = merge__run(native, build->native.n, runtime, build->runtime.n,
			      build->filter->keep_vm, build->placed, &report);
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
	return profile__add(build->profile, build->stack, n, stack->weight);
}

static int add_stacks(struct build *build, uint32_t kinds)
{
	const struct load_tables *tables = build->tables;
	int ret = 0;
	size_t i;

	for (i = 0; !ret && i < tables->stacks.n; i++) {
		const struct load_stack *stack = &tables->stacks.rows[i];
		uint32_t has = 0;

		if (stack->native != LOAD_NONE)
			has |= tables->nodes.rows[stack->native].kinds;
		if (stack->runtime != LOAD_NONE)
			has |= tables->nodes.rows[stack->runtime].kinds;
		if (!kinds || has & kinds)
			ret = add_stack(build, stack);
	}
	return ret;
}

static int add_titles(struct build *build)
{
	const struct load_tables *tables = build->tables;
	struct profile *profile = build->profile;
	size_t i;
	int ret = 0;

	profile->duration_s = tables->duration_s;
	profile->frequency_hz = tables->frequency_hz;
	profile->target = strdup(load_tables__text(tables, tables->target));
	if (!profile->target)
		return -ENOMEM;
	for (i = 0; !ret && i < tables->counters.n; i++) {
		const struct load_counter *counter = &tables->counters.rows[i];
		const char *name = load_tables__text(tables, counter->name);

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

static int build_profile(const struct load_tables *tables, const struct load_filter *filter,
			 uint32_t kinds, struct profile **ret, struct merge_report *report)
{
	struct build *build = calloc(1, sizeof(*build));
	int code = -ENOMEM;

	if (!build)
		return code;
	build->tables = tables;
	build->filter = filter;
	build->profile = profile__new();
	build->shown = calloc(tables->frames.n + 1, sizeof(*build->shown));
	if (!build->profile || !build->shown)
		goto out;
	map_kinds(build);
	code = add_titles(build);
	if (!code)
		code = add_stacks(build, kinds);
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

int load__profile(const char *path, const struct load_filter *filter, struct profile **ret,
		  struct merge_report *report, struct err *err)
{
	struct load_tables tables;
	bool *wanted = NULL;
	uint32_t kinds;
	int code;

	code = load_tables__read(&tables, path, err);
	if (!code)
		code = load_select__threads(&tables, filter, &wanted, err);
	if (!code)
		code = load_select__kinds(&tables, filter, &kinds, err);
	if (!code)
		code = load_tables__samples(&tables, wanted, err);
	if (!code && build_profile(&tables, filter, kinds, ret, report))
		code = err__set(err, -ENOMEM, "out of memory for the stacks in %s", path);
	free(wanted);
	load_tables__done(&tables);
	return code;
}
