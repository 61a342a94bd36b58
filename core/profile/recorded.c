// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/recorded.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/merge.h"
#include "core/profile/recorded_row.h"

/* Stack addresses come as offsets from the base of their stack. Any base works that is high enough
 * for all addresses to be above 0. */
#define STACK_BASE	 (1ULL << 62)
#define STACK_OFFSET_MAX (1LL << 61)

/* Adds a row with an id, which must be greater than all earlier ones, as rows are found by binary
 * search. */
#define add_row_of(table, number)                                             \
	({                                                                    \
		__typeof__((table)->rows) added = add_row(table);             \
                                                                              \
		assert(!added || (table)->n == 1 || added[-1].id < (number)); \
		if (added)                                                    \
			added->id = (number);                                 \
		added;                                                        \
	})

/* Empties the indexes, also zeroed ones. */
static void reset_indexes(struct recorded *recorded)
{
	struct intern *const indexes[] = { &recorded->stack_index,  &recorded->measure_index,
					   &recorded->link_index,   &recorded->bucket_index,
					   &recorded->moment_index, &recorded->task_index,
					   &recorded->group_index };

	for (size_t i = 0; i < ARRAY_SIZE(indexes); i++) {
		intern__done(indexes[i]);
		intern__init(indexes[i], RECORDED_NONE);
	}
}

int recorded__init(struct recorded *recorded)
{
	*recorded = (struct recorded) {};
	reset_indexes(recorded);
	if (array__reserve(&recorded->texts, &recorded->cap_texts, 1, 1))
		return -ENOMEM;
	recorded->texts[recorded->n_texts++] = '\0';
	return 0;
}

void recorded__done(struct recorded *recorded)
{
	free(recorded->events.rows);
	free(recorded->processes.rows);
	free(recorded->threads.rows);
	free(recorded->images.rows);
	free(recorded->functions.rows);
	free(recorded->frames.rows);
	free(recorded->locations.rows);
	free(recorded->nodes.rows);
	free(recorded->stacks.rows);
	free(recorded->buckets.rows);
	free(recorded->moments.rows);
	free(recorded->counters.rows);
	free(recorded->contexts.rows);
	free(recorded->labels.rows);
	free(recorded->attributes.rows);
	strtab__free(recorded->words);
	free(recorded->texts);
	reset_indexes(recorded);
	*recorded = (struct recorded) {};
}

void recorded__clear_samples(struct recorded *recorded)
{
	reset_indexes(recorded);
	recorded->stacks.n = 0;
	recorded->buckets.n = 0;
	recorded->moments.n = 0;
	recorded->n_measures = 0;
	recorded->n_samples = 0;
}

#define table_bytes(table) ((table).n * sizeof(*(table).rows))

size_t recorded__bytes(const struct recorded *recorded)
{
	enum { INDEX_BYTES = 48 }; /* per row: core/base/intern.c at its usual load */

	return recorded->n_texts + table_bytes(recorded->events) +
	       table_bytes(recorded->processes) + table_bytes(recorded->threads) +
	       table_bytes(recorded->images) + table_bytes(recorded->functions) +
	       table_bytes(recorded->frames) + table_bytes(recorded->locations) +
	       table_bytes(recorded->nodes) + table_bytes(recorded->stacks) +
	       (recorded->stacks.n + recorded->buckets.n) * INDEX_BYTES +
	       table_bytes(recorded->buckets) + table_bytes(recorded->counters);
}

static int compare_id(const void *key, const void *row)
{
	uint32_t a = *(const uint32_t *)key, b;

	memcpy(&b, row, sizeof(b));
	return a < b ? -1 : a > b;
}

/* Files that braid wrote have all ids from 1 on, so that the first comparison usually succeeds. */
uint32_t recorded__find_id(const void *rows, size_t n, size_t size, uint32_t id)
{
	const char *at = rows, *found;

	if (!id || !n)
		return RECORDED_NONE;
	if (id <= n && !compare_id(&id, at + (id - 1) * size))
		return id - 1;
	found = bsearch(&id, rows, n, size, compare_id);
	return found ? (found - at) / size : RECORDED_NONE;
}

int recorded__add_text(struct recorded *recorded, const char *text, recorded_text *ret)
{
	size_t size = strlen(text) + 1;

	if (size == 1) {
		*ret = 0;
		return 0;
	}
	if (array__reserve(&recorded->texts, &recorded->cap_texts, recorded->n_texts + size, 1))
		return -ENOMEM;
	memcpy(recorded->texts + recorded->n_texts, text, size);
	*ret = recorded->n_texts;
	recorded->n_texts += size;
	return 0;
}

int recorded__add_event(struct recorded *recorded, uint32_t id, const char *name, const char *unit)
{
	struct recorded_event *row = add_row_of(&recorded->events, id);

	if (!row || recorded__add_text(recorded, name, &row->name))
		return -ENOMEM;
	return recorded__add_text(recorded, unit, &row->unit);
}

int recorded__add_kind(struct recorded *recorded, uint8_t kind, const char *name,
		       const char *suffix)
{
	if (kind >= KINDS_MAX)
		return 0;
	if (recorded__add_text(recorded, name, &recorded->kind_names[kind]))
		return -ENOMEM;
	return recorded__add_text(recorded, suffix, &recorded->kind_suffixes[kind]);
}

int recorded__add_process(struct recorded *recorded, uint32_t id, uint32_t pid, const char *name,
			  const char *cgroup, const char *container)
{
	struct recorded_process *row = add_row_of(&recorded->processes, id);

	if (!row || recorded__add_text(recorded, cgroup ? cgroup : "", &row->cgroup) ||
	    recorded__add_text(recorded, container ? container : "", &row->container))
		return -ENOMEM;
	row->pid = pid;
	return recorded__add_text(recorded, name, &row->name);
}

/* Does nothing if there is no such process. */
int recorded__name_process(struct recorded *recorded, uint32_t id, const char *name)
{
	uint32_t index = recorded__find(&recorded->processes, id);

	return index == RECORDED_NONE
		       ? 0
		       : recorded__add_text(recorded, name, &recorded->processes.rows[index].name);
}

/* As recorded__name_process(). */
int recorded__set_command(struct recorded *recorded, uint32_t id, const char *command)
{
	uint32_t index = recorded__find(&recorded->processes, id);

	return index == RECORDED_NONE
		       ? 0
		       : recorded__add_text(recorded, command,
					    &recorded->processes.rows[index].command);
}

/* As recorded__name_process(). */
int recorded__set_start(struct recorded *recorded, uint32_t id, uint64_t start_ticks)
{
	uint32_t index = recorded__find(&recorded->processes, id);

	if (index != RECORDED_NONE)
		recorded->processes.rows[index].start_ticks = start_ticks;
	return 0;
}

int recorded__add_thread(struct recorded *recorded, uint32_t id, uint32_t process, uint32_t tid,
			 const char *name)
{
	struct recorded_thread *row = add_row_of(&recorded->threads, id);

	if (!row)
		return -ENOMEM;
	row->process = recorded__find(&recorded->processes, process);
	row->tid = tid;
	return recorded__add_text(recorded, name, &row->name);
}

/* Does nothing if there is no such thread. */
int recorded__name_thread(struct recorded *recorded, uint32_t id, const char *name)
{
	uint32_t index = recorded__find(&recorded->threads, id);

	return index == RECORDED_NONE
		       ? 0
		       : recorded__add_text(recorded, name, &recorded->threads.rows[index].name);
}

int recorded__add_image(struct recorded *recorded, uint32_t id, const char *path,
			const char *build_id)
{
	struct recorded_image *row = add_row_of(&recorded->images, id);
	const char *slash = strrchr(path, '/');

	if (!row)
		return -ENOMEM;
	if (recorded__add_text(recorded, path, &row->path) ||
	    recorded__add_text(recorded, build_id, &row->build_id))
		return -ENOMEM;
	row->name = row->path + (slash ? slash + 1 - path : 0);
	return 0;
}

int recorded__add_function(struct recorded *recorded, uint32_t id, const char *name,
			   const char *file)
{
	struct recorded_function *row = add_row_of(&recorded->functions, id);

	if (!row)
		return -ENOMEM;
	if (recorded__add_text(recorded, name, &row->name))
		return -ENOMEM;
	return recorded__add_text(recorded, file, &row->file);
}

int recorded__add_counter(struct recorded *recorded, const char *name, uint64_t value)
{
	struct recorded_counter *row = add_row(&recorded->counters);

	if (!row)
		return -ENOMEM;
	row->value = value;
	return recorded__add_text(recorded, name, &row->name);
}

int recorded__add_frame(struct recorded *recorded, uint32_t id, const struct sink_frame *frame,
			bool anonymous)
{
	struct recorded_frame *row = add_row_of(&recorded->frames, id);

	if (!row)
		return -ENOMEM;
	row->kind = frame->kind < 0 || frame->kind > KINDS_MAX ? KINDS_MAX : frame->kind;
	row->image = recorded__find(&recorded->images, frame->image);
	row->address = frame->address;
	row->loop = frame->loop;
	row->anonymous = anonymous;
	return 0;
}

int recorded__add_location(struct recorded *recorded, uint32_t frame, uint8_t kind,
			   uint32_t function, uint32_t line)
{
	struct recorded_frame *owner;
	struct recorded_location *row;

	if (frame == RECORDED_NONE)
		return 0;
	owner = &recorded->frames.rows[frame];
	if (owner->n_locations == RECORDED_LEVEL_MAX)
		return 0;
	row = add_row(&recorded->locations);
	if (!row)
		return -ENOMEM;
	if (!owner->n_locations++)
		owner->location = row - recorded->locations.rows;
	row->kind = min_of(kind, (uint8_t)KINDS_MAX);
	row->function = recorded__find(&recorded->functions, function);
	row->line = line;
	return 0;
}

int recorded__add_node(struct recorded *recorded, uint32_t id, const struct sink_node *node)
{
	struct recorded_node *row;

	if (node->parent >= id)
		return -EBADMSG; /* may be a cycle */
	row = add_row_of(&recorded->nodes, id);
	if (!row)
		return -ENOMEM;
	row->frame = recorded__find(&recorded->frames, node->frame);
	if (node->offset > -STACK_OFFSET_MAX && node->offset < STACK_OFFSET_MAX)
		row->address = STACK_BASE - node->offset;
	else if (node->offset == SINK_APART)
		row->address = MERGE_APART;
	row->evidence = min_of(node->evidence, (uint32_t)EVIDENCE_INFERRED);
	row->depth = 1;
	row->parent = recorded__find(&recorded->nodes, node->parent);
	if (row->parent != RECORDED_NONE)
		row->depth += recorded->nodes.rows[row->parent].depth;
	return row->depth > RECORDED_DEPTH_MAX ? -EBADMSG : 0;
}

int64_t recorded__offset(const struct recorded_node *node)
{
	if (node->address == MERGE_NO_ADDRESS)
		return SINK_NO_OFFSET;
	return node->address == MERGE_APART ? SINK_APART : (int64_t)(STACK_BASE - node->address);
}
