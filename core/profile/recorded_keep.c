// SPDX-License-Identifier: GPL-2.0-or-later
/* Copies the part of a recording that some of its stacks need. */
#include <errno.h>
#include <stdlib.h>

#include "core/profile/recorded.h"

/* Up to this number, all threads, processes and files are copied even if no stack needs them. They
 * take little memory, and a thread that sleeps for long may be sampled again. */
#define UNFILTERED_MAX 65536

/* the rows that are needed, by index */
struct marks {
	const struct recorded *from;
	bool *processes, *threads, *images, *functions, *frames, *nodes;
};

static void marks_done(struct marks *marks)
{
	free(marks->processes);
	free(marks->threads);
	free(marks->images);
	free(marks->functions);
	free(marks->frames);
	free(marks->nodes);
}

static int marks_init(struct marks *marks, const struct recorded *from)
{
	*marks = (struct marks) { .from = from };
	marks->processes = calloc(from->processes.n + 1, sizeof(bool));
	marks->threads = calloc(from->threads.n + 1, sizeof(bool));
	marks->images = calloc(from->images.n + 1, sizeof(bool));
	marks->functions = calloc(from->functions.n + 1, sizeof(bool));
	marks->frames = calloc(from->frames.n + 1, sizeof(bool));
	marks->nodes = calloc(from->nodes.n + 1, sizeof(bool));
	return marks->processes && marks->threads && marks->images && marks->functions &&
			       marks->frames && marks->nodes
		       ? 0
		       : -ENOMEM;
}

static void mark_frame(struct marks *marks, uint32_t index)
{
	const struct recorded_frame *frame = &marks->from->frames.rows[index];

	marks->frames[index] = true;
	if (frame->image != RECORDED_NONE)
		marks->images[frame->image] = true;
	for (uint32_t i = 0; i < frame->n_locations; i++) {
		uint32_t function = marks->from->locations.rows[frame->location + i].function;

		if (function != RECORDED_NONE)
			marks->functions[function] = true;
	}
}

/* Marks the nodes from @index outwards. */
static void mark_chain(struct marks *marks, uint32_t index)
{
	while (index != RECORDED_NONE && !marks->nodes[index]) {
		const struct recorded_node *node = &marks->from->nodes.rows[index];

		marks->nodes[index] = true;
		if (node->frame != RECORDED_NONE && !marks->frames[node->frame])
			mark_frame(marks, node->frame);
		index = node->parent;
	}
}

static void mark_all(struct marks *marks, const bool *stacks)
{
	const struct recorded *from = marks->from;
	bool all_threads = from->threads.n <= UNFILTERED_MAX;
	bool all_processes = from->processes.n <= UNFILTERED_MAX;

	for (size_t i = 0; i < from->stacks.n; i++) {
		const struct recorded_stack *stack = &from->stacks.rows[i];

		if (!stacks[i])
			continue;
		mark_chain(marks, stack->native);
		mark_chain(marks, stack->runtime);
		if (stack->thread != RECORDED_NONE)
			marks->threads[stack->thread] = true;
	}
	for (size_t i = 0; i < from->threads.n; i++) {
		marks->threads[i] |= all_threads;
		if (marks->threads[i] && from->threads.rows[i].process != RECORDED_NONE)
			marks->processes[from->threads.rows[i].process] = true;
	}
	for (size_t i = 0; i < from->processes.n; i++)
		marks->processes[i] |= all_processes;
	for (size_t i = 0; i < from->images.n; i++)
		marks->images[i] |= from->images.n <= UNFILTERED_MAX;
}

#define id_of(table, index) ((index) == RECORDED_NONE ? 0 : (table)->rows[index].id)
#define text_of(from, text) recorded__text((from), (text))

static int copy_tasks(const struct marks *marks, struct recorded *to)
{
	const struct recorded *from = marks->from;
	int ret = 0;

	for (size_t i = 0; !ret && i < from->events.n; i++) {
		const struct recorded_event *row = &from->events.rows[i];

		ret = recorded__add_event(to, row->id, text_of(from, row->name),
					  text_of(from, row->unit));
	}
	for (size_t i = 0; !ret && i < from->processes.n; i++) {
		const struct recorded_process *row = &from->processes.rows[i];

		if (marks->processes[i])
			ret = recorded__add_process(to, row->id, row->pid, text_of(from, row->name),
						    text_of(from, row->cgroup),
						    text_of(from, row->container))
				      ?: recorded__set_command(to, row->id,
							       text_of(from, row->command));
	}
	for (size_t i = 0; !ret && i < from->threads.n; i++) {
		const struct recorded_thread *row = &from->threads.rows[i];

		if (marks->threads[i])
			ret = recorded__add_thread(to, row->id,
						   id_of(&from->processes, row->process), row->tid,
						   text_of(from, row->name));
	}
	return ret;
}

static int copy_frame(const struct recorded *from, const struct recorded_frame *row,
		      struct recorded *to)
{
	const struct sink_frame frame = { .kind = row->kind,
					  .image = id_of(&from->images, row->image),
					  .address = row->address,
					  .loop = row->loop };
	int ret = recorded__add_frame(to, row->id, &frame, row->anonymous);

	for (uint32_t i = 0; !ret && i < row->n_locations; i++) {
		const struct recorded_location *at = &from->locations.rows[row->location + i];

		ret = recorded__add_location(to, to->frames.n - 1, at->kind,
					     id_of(&from->functions, at->function), at->line);
	}
	return ret;
}

static int copy_code(const struct marks *marks, struct recorded *to)
{
	const struct recorded *from = marks->from;
	int ret = 0;

	for (int i = 0; !ret && i < KINDS_MAX; i++)
		ret = recorded__add_kind(to, i, text_of(from, from->kind_names[i]),
					 text_of(from, from->kind_suffixes[i]));
	for (size_t i = 0; !ret && i < from->images.n; i++) {
		const struct recorded_image *row = &from->images.rows[i];

		if (marks->images[i])
			ret = recorded__add_image(to, row->id, text_of(from, row->path),
						  text_of(from, row->build_id));
	}
	for (size_t i = 0; !ret && i < from->functions.n; i++) {
		const struct recorded_function *row = &from->functions.rows[i];

		if (marks->functions[i])
			ret = recorded__add_function(to, row->id, text_of(from, row->name),
						     text_of(from, row->file));
	}
	for (size_t i = 0; !ret && i < from->frames.n; i++)
		if (marks->frames[i])
			ret = copy_frame(from, &from->frames.rows[i], to);
	return ret;
}

static int copy_stacks(const struct marks *marks, const bool *stacks, struct recorded *to)
{
	const struct recorded *from = marks->from;
	int ret = 0;

	to->keeps_tasks = from->keeps_tasks;
	for (size_t i = 0; !ret && i < from->nodes.n; i++) {
		const struct recorded_node *row = &from->nodes.rows[i];
		const struct sink_node node = { id_of(&from->nodes, row->parent),
						id_of(&from->frames, row->frame),
						recorded__offset(row), row->evidence };

		if (marks->nodes[i])
			ret = recorded__add_node(to, row->id, &node);
	}
	for (size_t i = 0; !ret && i < from->stacks.n; i++) {
		const struct recorded_stack *row = &from->stacks.rows[i];
		const struct sink_sample key = { .event = id_of(&from->events, row->event),
						 .thread = id_of(&from->threads, row->thread),
						 .native = id_of(&from->nodes, row->native),
						 .runtime = id_of(&from->nodes, row->runtime),
						 .condition = row->condition,
						 .flags = (row->complete ? SAMPLE_COMPLETE : 0) |
							  (row->rest ? SAMPLE_REST : 0),
						 .task = row->task,
						 .object = row->age ? recorded__least_age(row->age)
								    : 0 };
		struct recorded_stack *copy;

		if (!stacks[i])
			continue;
		ret = recorded__stack(to, &key, &copy);
		if (ret)
			break;
		copy->samples = row->samples;
		copy->occurrences = row->occurrences;
		copy->value = row->value;
		copy->last = row->last;
	}
	to->n_samples = from->n_samples;
	return ret;
}

int recorded__keep(const struct recorded *recorded, const bool *stacks, struct recorded *to)
{
	struct marks marks;
	int ret = marks_init(&marks, recorded);

	if (!ret) {
		mark_all(&marks, stacks);
		ret = copy_tasks(&marks, to);
	}
	if (!ret)
		ret = copy_code(&marks, to);
	if (!ret)
		ret = copy_stacks(&marks, stacks, to);
	marks_done(&marks);
	return ret;
}
