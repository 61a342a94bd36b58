// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/recorded.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/merge.h"

/* Stack addresses come as offsets from the base of their stack: any base does, if it is so high
 * that none gets below 0. */
#define STACK_BASE	 (1ULL << 62)
#define STACK_OFFSET_MAX (1LL << 61)

/* A new row at the end, zeroed; NULL: out of memory. RECORDED_NONE is no index, so there are fewer
 * rows than that. */
#define add_row(table)                                                                         \
	((table)->n >= RECORDED_NONE || array__reserve(&(table)->rows, &(table)->cap,          \
						       (table)->n + 1, sizeof(*(table)->rows)) \
		 ? NULL                                                                        \
		 : memset(&(table)->rows[(table)->n++], 0, sizeof(*(table)->rows)))

/* The same with that id, greater than those before it, as it is searched for by halves. */
#define add_row_of(table, number)                                             \
	({                                                                    \
		__typeof__((table)->rows) added = add_row(table);             \
                                                                              \
		assert(!added || (table)->n == 1 || added[-1].id < (number)); \
		if (added)                                                    \
			added->id = (number);                                 \
		added;                                                        \
	})

int recorded__init(struct recorded *recorded)
{
	*recorded = (struct recorded) {};
	intern__init(&recorded->stack_index, RECORDED_NONE);
	intern__init(&recorded->measure_index, RECORDED_NONE);
	intern__init(&recorded->link_index, RECORDED_NONE);
	intern__init(&recorded->bucket_index, RECORDED_NONE);
	intern__init(&recorded->moment_index, RECORDED_NONE);
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
	free(recorded->texts);
	intern__done(&recorded->stack_index);
	intern__done(&recorded->measure_index);
	intern__done(&recorded->link_index);
	intern__done(&recorded->bucket_index);
	intern__done(&recorded->moment_index);
	*recorded = (struct recorded) {};
}

#define table_bytes(table) ((table).n * sizeof(*(table).rows))

size_t recorded__bytes(const struct recorded *recorded)
{
	enum { INDEX_BYTES = 48 }; /* of a stack: core/base/intern.c at its usual load */

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

/* braid's own files have all ids from 1 on. */
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

int recorded__add_process(struct recorded *recorded, uint32_t id, uint32_t pid, const char *name)
{
	struct recorded_process *row = add_row_of(&recorded->processes, id);

	if (!row)
		return -ENOMEM;
	row->pid = pid;
	return recorded__add_text(recorded, name, &row->name);
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

/* Of one that there is. */
int recorded__name_thread(struct recorded *recorded, uint32_t id, const char *name)
{
	uint32_t index = recorded__find(&recorded->threads, id);

	return index == RECORDED_NONE
		       ? 0
		       : recorded__add_text(recorded, name, &recorded->threads.rows[index].name);
}

int recorded__add_image(struct recorded *recorded, uint32_t id, const char *path)
{
	struct recorded_image *row = add_row_of(&recorded->images, id);
	const char *slash = strrchr(path, '/');

	if (!row)
		return -ENOMEM;
	return recorded__add_text(recorded, slash ? slash + 1 : path, &row->name);
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
		return -EBADMSG; /* a cycle, maybe */
	row = add_row_of(&recorded->nodes, id);
	if (!row)
		return -ENOMEM;
	row->frame = recorded__find(&recorded->frames, node->frame);
	if (node->offset > -STACK_OFFSET_MAX && node->offset < STACK_OFFSET_MAX)
		row->address = STACK_BASE - node->offset;
	else if (node->offset == SINK_APART)
		row->address = MERGE_APART;
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

/* The same number for stacks of the same event, waker and condition. */
static int number_measure(struct recorded *recorded, const struct recorded_stack *stack,
			  uint32_t *ret)
{
	uint64_t condition = (uint64_t)stack->condition.state << 24 |
			     (uint64_t)stack->condition.lock << 16 |
			     (uint16_t)stack->condition.syscall | (uint64_t)stack->age << 32;
	uint64_t who = (uint64_t)(stack->waker + 1) << 32 | stack->event;
	uint32_t *place = intern__at(&recorded->measure_index, who, condition);

	if (!place)
		return -ENOMEM;
	if (!*place)
		*place = ++recorded->n_measures;
	*ret = *place;
	return 0;
}

static bool is_wakeup(const struct recorded *recorded, uint32_t event)
{
	return event != RECORDED_NONE &&
	       !strcmp(recorded__text(recorded, recorded->events.rows[event].name),
		       SINK_EVENT_WAKEUP);
}

bool recorded__is_outstanding(const struct recorded *recorded, uint32_t event)
{
	static const char name[] = SINK_EVENT_OUTSTANDING;
	const char *text;

	if (event == RECORDED_NONE)
		return false;
	text = recorded__text(recorded, recorded->events.rows[event].name);
	return !strncmp(text, name, sizeof(name) - 1) &&
	       (!text[sizeof(name) - 1] || text[sizeof(name) - 1] == ':');
}

uint64_t recorded__least_age(unsigned age)
{
	static const uint64_t seconds[RECORDED_AGES] = { 0, 1, 10, 60, 600, 3600 };

	if (age > RECORDED_AGES)
		return UINT64_MAX;
	return age > 1 ? seconds[age - 1] * NSEC_PER_SEC : 1;
}

static uint8_t age_class(uint64_t age_ns)
{
	uint8_t age = 0;

	while (age < RECORDED_AGES && age_ns >= recorded__least_age(age + 1))
		age++;
	return age;
}

int recorded__stack(struct recorded *recorded, const struct sink_sample *sample,
		    struct recorded_stack **ret)
{
	struct recorded_stack stack = {
		.event = recorded__find(&recorded->events, sample->event),
		.thread = recorded__find(&recorded->threads, sample->thread),
		.native = recorded__find(&recorded->nodes, sample->native),
		.runtime = recorded__find(&recorded->nodes, sample->runtime),
		.condition = sample->condition,
		.waker = RECORDED_NONE,
	};
	uint32_t measure, *place, *linked = NULL;
	struct recorded_stack *row;

	if (sample->object && recorded__is_outstanding(recorded, stack.event))
		stack.age = age_class(sample->object);
	if (recorded->keeps_wakers && sample->link) {
		linked = intern__at(&recorded->link_index, sample->link, 0);
		if (!linked)
			return -ENOMEM;
		if (*linked && !is_wakeup(recorded, stack.event))
			stack.waker = *linked - 1;
	}
	if (number_measure(recorded, &stack, &measure))
		return -ENOMEM;
	place = intern__at(&recorded->stack_index, (uint64_t)stack.native << 32 | stack.runtime,
			   (uint64_t)measure << 32 | stack.thread);
	if (!place)
		return -ENOMEM;
	if (!*place) {
		row = add_row(&recorded->stacks);
		if (!row)
			return -ENOMEM;
		*row = stack;
		*place = recorded->stacks.n;
	}
	if (linked && !*linked && is_wakeup(recorded, stack.event))
		*linked = *place;
	*ret = &recorded->stacks.rows[*place - 1];
	return 0;
}

static int count_value(struct recorded *recorded, uint32_t stack, uint64_t value)
{
	uint8_t bits = value ? 64 - __builtin_clzll(value) : 0;
	uint32_t *place = intern__at(&recorded->bucket_index, stack, bits);
	struct recorded_bucket *row;

	if (!place)
		return -ENOMEM;
	if (!*place) {
		row = add_row(&recorded->buckets);
		if (!row)
			return -ENOMEM;
		*row = (struct recorded_bucket) { .stack = stack, .bits = bits };
		*place = recorded->buckets.n;
	}
	row = &recorded->buckets.rows[*place - 1];
	row->samples++;
	if (__builtin_add_overflow(row->value, value, &row->value))
		row->value = UINT64_MAX;
	return 0;
}

/* A time that lies outside is that of the nearest column: it is not the stack's fault. */
static int count_moment(struct recorded *recorded, uint32_t stack, uint64_t time_ns, uint64_t value)
{
	const struct recorded_columns *columns = &recorded->columns;
	uint64_t since = time_ns > columns->first_ns ? time_ns - columns->first_ns : 0;
	uint32_t column = min_of(since / columns->width_ns, (uint64_t)columns->n - 1);
	uint32_t *place = intern__at(&recorded->moment_index, stack, column);
	struct recorded_moment *row;

	if (!place)
		return -ENOMEM;
	if (!*place) {
		row = add_row(&recorded->moments);
		if (!row)
			return -ENOMEM;
		*row = (struct recorded_moment) { .stack = stack, .column = column };
		*place = recorded->moments.n;
	}
	row = &recorded->moments.rows[*place - 1];
	if (__builtin_add_overflow(row->value, value, &row->value))
		row->value = UINT64_MAX;
	return 0;
}

int recorded__add_sample(struct recorded *recorded, const struct sink_sample *sample)
{
	struct recorded_stack *row;

	if (sample->object < recorded->min_age_ns &&
	    recorded__is_outstanding(recorded, recorded__find(&recorded->events, sample->event)))
		return 0;
	if (recorded__stack(recorded, sample, &row))
		return -ENOMEM;
	row->samples++;
	row->last = ++recorded->n_samples;
	if (__builtin_add_overflow(row->value, sample->value, &row->value))
		row->value = UINT64_MAX;
	if (recorded->keeps_buckets &&
	    count_value(recorded, row - recorded->stacks.rows, sample->value))
		return -ENOMEM;
	if (!recorded->columns.width_ns)
		return 0;
	return count_moment(recorded, row - recorded->stacks.rows, sample->time_ns, sample->value);
}
