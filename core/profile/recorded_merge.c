// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/recorded_merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text_ids.h"
#include "core/base/util.h"

/* Maps from indexes of the added recording to indexes of the sum, or RECORDED_NONE. */
struct maps {
	uint32_t *events, *processes, *threads, *images, *functions, *frames, *nodes, *stacks;
	uint8_t kinds[KINDS_MAX + 1];
};

struct recorded_merge {
	struct recorded *to;
	/* Each assigns ids from 1, which are those of the rows. */
	struct text_ids events, processes, threads, images, functions, counters;
	struct intern names, lists, looks; /* for frames: see frame_place() */
	uint32_t n_names, n_lists, n_looks;
	struct intern frames, nodes;
	struct maps maps;
};

int recorded_merge__new(struct recorded *to, struct recorded_merge **ret)
{
	struct recorded_merge *merge = calloc(1, sizeof(*merge));

	if (!merge)
		return -ENOMEM;
	merge->to = to;
	intern__init(&merge->names, RECORDED_NONE);
	intern__init(&merge->lists, RECORDED_NONE);
	intern__init(&merge->looks, RECORDED_NONE);
	intern__init(&merge->frames, RECORDED_NONE);
	intern__init(&merge->nodes, RECORDED_NONE);
	*ret = merge;
	return 0;
}

static void maps_done(struct maps *maps)
{
	free(maps->events);
	free(maps->processes);
	free(maps->threads);
	free(maps->images);
	free(maps->functions);
	free(maps->frames);
	free(maps->nodes);
	free(maps->stacks);
	*maps = (struct maps) {};
}

void recorded_merge__free(struct recorded_merge *merge)
{
	if (!merge)
		return;
	text_ids__done(&merge->events);
	text_ids__done(&merge->processes);
	text_ids__done(&merge->threads);
	text_ids__done(&merge->images);
	text_ids__done(&merge->functions);
	text_ids__done(&merge->counters);
	intern__done(&merge->names);
	intern__done(&merge->lists);
	intern__done(&merge->looks);
	intern__done(&merge->frames);
	intern__done(&merge->nodes);
	maps_done(&merge->maps);
	free(merge);
}

static int maps_init(struct maps *maps, const struct recorded *from)
{
	*maps = (struct maps) {};
	maps->events = calloc(from->events.n + 1, sizeof(uint32_t));
	maps->processes = calloc(from->processes.n + 1, sizeof(uint32_t));
	maps->threads = calloc(from->threads.n + 1, sizeof(uint32_t));
	maps->images = calloc(from->images.n + 1, sizeof(uint32_t));
	maps->functions = calloc(from->functions.n + 1, sizeof(uint32_t));
	maps->frames = calloc(from->frames.n + 1, sizeof(uint32_t));
	maps->nodes = calloc(from->nodes.n + 1, sizeof(uint32_t));
	maps->stacks = calloc(from->stacks.n + 1, sizeof(uint32_t));
	return maps->events && maps->processes && maps->threads && maps->images &&
			       maps->functions && maps->frames && maps->nodes && maps->stacks
		       ? 0
		       : -ENOMEM;
}

static uint32_t mapped(const uint32_t *map, uint32_t index)
{
	return index == RECORDED_NONE ? RECORDED_NONE : map[index];
}

/* Returns the id of a mapped row, as a reference; 0: none. */
static uint32_t id_of(const uint32_t *map, uint32_t index)
{
	return index == RECORDED_NONE ? 0 : map[index] + 1;
}

/* --- kinds: by name, as numbers of runtimes may differ --- */

static uint8_t find_kind(const struct recorded *to, uint8_t sought, const char *name)
{
	uint8_t free_one = KINDS_MAX;

	if (sought < KIND_RUNTIME)
		return sought;
	for (uint8_t i = KINDS_MAX; i-- > KIND_RUNTIME;) {
		const char *there = recorded__text(to, to->kind_names[i]);

		if (!strcmp(there, name))
			return i;
		if (!*there && (free_one == KINDS_MAX || free_one != sought))
			free_one = i;
	}
	return free_one;
}

static int add_kinds(struct recorded_merge *merge, const struct recorded *from)
{
	struct recorded *to = merge->to;
	int ret = 0;

	for (uint8_t i = 0; !ret && i < KINDS_MAX; i++) {
		const char *name = recorded__text(from, from->kind_names[i]);
		uint8_t kind = *name ? find_kind(to, i, name) : i;

		merge->maps.kinds[i] = kind;
		if (*name && kind < KINDS_MAX && !*recorded__text(to, to->kind_names[kind]))
			ret = recorded__add_kind(to, kind, name,
						 recorded__text(from, from->kind_suffixes[i]));
	}
	merge->maps.kinds[KINDS_MAX] = KINDS_MAX;
	return ret;
}

/* --- rows with names --- */

static int add_events(struct recorded_merge *merge, const struct recorded *from)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < from->events.n; i++) {
		const char *name = recorded__text(from, from->events.rows[i].name);
		const char *unit = recorded__text(from, from->events.rows[i].unit);
		uint32_t id;
		bool is_new;

		ret = text_ids__at(&merge->events, 0, 0, name, unit, &id, &is_new);
		if (!ret && is_new)
			ret = recorded__add_event(merge->to, id, name, unit);
		merge->maps.events[i] = id - 1;
	}
	return ret;
}

static int add_processes(struct recorded_merge *merge, const struct recorded *from)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < from->processes.n; i++) {
		const struct recorded_process *row = &from->processes.rows[i];
		const char *name = recorded__text(from, row->name);
		const char *cgroup = recorded__text(from, row->cgroup);
		uint32_t id;
		bool is_new;

		ret = text_ids__at(&merge->processes, row->pid, 0, name, cgroup, &id, &is_new);
		if (!ret && is_new)
			ret = recorded__add_process(merge->to, id, row->pid, name, cgroup,
						    recorded__text(from, row->container));
		if (!ret && is_new)
			ret = recorded__set_command(merge->to, id,
						    recorded__text(from, row->command));
		if (!ret && is_new && row->service)
			ret = recorded__add_attribute(merge->to, id, RECORDED_SERVICE,
						      recorded__text(from, row->service));
		merge->maps.processes[i] = id - 1;
	}
	return ret;
}

static int add_threads(struct recorded_merge *merge, const struct recorded *from)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < from->threads.n; i++) {
		const struct recorded_thread *row = &from->threads.rows[i];
		uint32_t id, process = id_of(merge->maps.processes, row->process);
		const char *name = recorded__text(from, row->name);
		bool is_new;

		ret = text_ids__at(&merge->threads, process, row->tid, name, "", &id, &is_new);
		if (!ret && is_new)
			ret = recorded__add_thread(merge->to, id, process, row->tid, name);
		merge->maps.threads[i] = id - 1;
	}
	return ret;
}

static int add_images(struct recorded_merge *merge, const struct recorded *from)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < from->images.n; i++) {
		const struct recorded_image *row = &from->images.rows[i];
		const char *path = recorded__text(from, row->path);
		const char *build_id = recorded__text(from, row->build_id);
		uint32_t id;
		bool is_new;

		ret = text_ids__at(&merge->images, 0, 0, path, build_id, &id, &is_new);
		if (!ret && is_new)
			ret = recorded__add_image(merge->to, id, path, build_id);
		merge->maps.images[i] = id - 1;
	}
	return ret;
}

static int add_functions(struct recorded_merge *merge, const struct recorded *from)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < from->functions.n; i++) {
		const char *name = recorded__text(from, from->functions.rows[i].name);
		const char *file = recorded__text(from, from->functions.rows[i].file);
		uint32_t id;
		bool is_new;

		ret = text_ids__at(&merge->functions, 0, 0, name, file, &id, &is_new);
		if (!ret && is_new)
			ret = recorded__add_function(merge->to, id, name, file);
		merge->maps.functions[i] = id - 1;
	}
	return ret;
}

/* --- frames and stacks --- */

/* Returns the number of a pair, from 1, in *@ret. Returns 0 or -ENOMEM. */
static int number(struct intern *intern, uint32_t *count, uint64_t a, uint64_t b, uint32_t *ret)
{
	uint32_t *place = intern__at(intern, a, b);

	if (!place)
		return -ENOMEM;
	if (!*place)
		*place = ++*count;
	*ret = *place;
	return 0;
}

/* Returns the place of the frame's number, or NULL if out of memory. The key is the address and a
 * second number, which stands for the names, innermost first, and all other fields. */
static uint32_t *frame_place(struct recorded_merge *merge, const struct recorded *from,
			     const struct recorded_frame *frame)
{
	const struct maps *maps = &merge->maps;
	uint32_t names = 0, name, look;
	uint64_t flags =
		(uint64_t)maps->kinds[frame->kind] << 2 | frame->loop << 1 | frame->anonymous;

	for (uint32_t i = 0; i < frame->n_locations; i++) {
		const struct recorded_location *location =
			&from->locations.rows[frame->location + i];
		uint64_t function = id_of(maps->functions, location->function);

		if (number(&merge->names, &merge->n_names, function << 32 | location->line,
			   maps->kinds[location->kind], &name) ||
		    number(&merge->lists, &merge->n_lists, names, name, &names))
			return NULL;
	}
	if (number(&merge->looks, &merge->n_looks,
		   (uint64_t)id_of(maps->images, frame->image) << 32 | names, flags, &look))
		return NULL;
	return intern__at(&merge->frames, frame->address, look);
}

static int add_frame(struct recorded_merge *merge, const struct recorded *from,
		     const struct recorded_frame *frame)
{
	const struct maps *maps = &merge->maps;
	struct recorded *to = merge->to;
	const struct sink_frame row = { .kind = maps->kinds[frame->kind],
					.image = id_of(maps->images, frame->image),
					.address = frame->address,
					.loop = frame->loop };
	int ret = recorded__add_frame(to, to->frames.n + 1, &row, frame->anonymous);

	for (uint32_t i = 0; !ret && i < frame->n_locations; i++) {
		const struct recorded_location *location =
			&from->locations.rows[frame->location + i];

		ret = recorded__add_location(to, to->frames.n - 1, maps->kinds[location->kind],
					     id_of(maps->functions, location->function),
					     location->line);
	}
	return ret;
}

static int add_frames(struct recorded_merge *merge, const struct recorded *from)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < from->frames.n; i++) {
		const struct recorded_frame *frame = &from->frames.rows[i];
		uint32_t *place = frame_place(merge, from, frame);

		if (!place)
			return -ENOMEM;
		if (!*place) {
			ret = add_frame(merge, from, frame);
			*place = merge->to->frames.n;
		}
		merge->maps.frames[i] = *place - 1;
	}
	return ret;
}

/* Adds the nodes. A node's parent precedes it. */
static int add_nodes(struct recorded_merge *merge, const struct recorded *from)
{
	struct recorded *to = merge->to;
	int ret = 0;

	for (size_t i = 0; !ret && i < from->nodes.n; i++) {
		const struct recorded_node *node = &from->nodes.rows[i];
		const struct sink_node row = { .parent = id_of(merge->maps.nodes, node->parent),
					       .frame = id_of(merge->maps.frames, node->frame),
					       .offset = recorded__offset(node),
					       .evidence = node->evidence };
		uint32_t *place =
			row.frame >> SINK_FRAME_BITS
				? NULL
				: intern__at(&merge->nodes, sink_node__key(&row), node->address);

		if (!place)
			return -ENOMEM;
		if (!*place) {
			ret = recorded__add_node(to, to->nodes.n + 1, &row);
			*place = to->nodes.n;
		}
		merge->maps.nodes[i] = *place - 1;
	}
	return ret;
}

static int add_stack(struct recorded_merge *merge, const struct recorded *from, size_t i)
{
	const struct recorded_stack *row = &from->stacks.rows[i];
	struct recorded_stack stack = *row, *sum;
	const struct maps *maps = &merge->maps;

	stack.event = mapped(maps->events, row->event);
	stack.thread = mapped(maps->threads, row->thread);
	stack.native = mapped(maps->nodes, row->native);
	stack.runtime = mapped(maps->nodes, row->runtime);
	stack.waker = mapped(maps->stacks, row->waker);
	if ((row->group &&
	     recorded__word(merge->to, recorded__word_text(from, row->group), &stack.group)) ||
	    recorded__same_stack(merge->to, &stack, &sum))
		return -ENOMEM;
	sum->samples += row->samples;
	if (__builtin_add_overflow(sum->occurrences, row->occurrences, &sum->occurrences))
		sum->occurrences = UINT64_MAX;
	sum->last = max_of(sum->last, merge->to->n_samples + row->last);
	if (__builtin_add_overflow(sum->value, row->value, &sum->value))
		sum->value = UINT64_MAX;
	maps->stacks[i] = sum - merge->to->stacks.rows;
	return 0;
}

/* Adds the stacks. Those that others refer to are added first. */
static int add_stacks(struct recorded_merge *merge, const struct recorded *from)
{
	int ret = 0;

	for (int woken = 0; woken < 2; woken++)
		for (size_t i = 0; !ret && i < from->stacks.n; i++)
			if ((from->stacks.rows[i].waker != RECORDED_NONE) == woken)
				ret = add_stack(merge, from, i);
	for (size_t i = 0; !ret && i < from->buckets.n; i++) {
		struct recorded_bucket bucket = from->buckets.rows[i];

		bucket.stack = merge->maps.stacks[bucket.stack];
		ret = recorded__add_bucket(merge->to, &bucket);
	}
	for (size_t i = 0; !ret && i < from->moments.n; i++) {
		struct recorded_moment moment = from->moments.rows[i];

		moment.stack = merge->maps.stacks[moment.stack];
		ret = recorded__add_moment(merge->to, &moment);
	}
	merge->to->n_samples += from->n_samples;
	merge->to->has_links |= from->has_links;
	merge->to->has_contexts |= from->has_contexts;
	return ret;
}

/* --- titles --- */

static int add_counters(struct recorded_merge *merge, const struct recorded *from)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < from->counters.n; i++) {
		const struct recorded_counter *row = &from->counters.rows[i];
		const char *name = recorded__text(from, row->name);
		struct recorded_counter *sum;
		uint32_t id;
		bool is_new;

		ret = text_ids__at(&merge->counters, 0, 0, name, "", &id, &is_new);
		if (!ret && is_new)
			ret = recorded__add_counter(merge->to, name, 0);
		if (ret)
			return ret;
		sum = &merge->to->counters.rows[id - 1];
		if (__builtin_add_overflow(sum->value, row->value, &sum->value))
			sum->value = UINT64_MAX;
	}
	return ret;
}

static int add_title(struct recorded *to, recorded_text *title, const struct recorded *from,
		     recorded_text text)
{
	return *title ? 0 : recorded__add_text(to, recorded__text(from, text), title);
}

static int add_titles(struct recorded_merge *merge, const struct recorded *from)
{
	struct recorded *to = merge->to;
	int ret = add_title(to, &to->target, from, from->target);

	if (!ret)
		ret = add_title(to, &to->task_name, from, from->task_name);
	to->symbols_queried |= from->symbols_queried;
	to->has_tasks |= from->has_tasks;
	to->duration_s += from->duration_s;
	if (to->frequency_hz <= 0)
		to->frequency_hz = from->frequency_hz;
	return ret ? ret : add_counters(merge, from);
}

int recorded_merge__add(struct recorded_merge *merge, const struct recorded *from)
{
	static int (*const steps[])(struct recorded_merge *, const struct recorded *) = {
		add_kinds,  add_titles,	   add_events, add_processes, add_threads,
		add_images, add_functions, add_frames, add_nodes,     add_stacks
	};
	int ret = maps_init(&merge->maps, from);

	for (size_t i = 0; !ret && i < ARRAY_SIZE(steps); i++)
		ret = steps[i](merge, from);
	maps_done(&merge->maps);
	return ret;
}
