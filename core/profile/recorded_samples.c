// SPDX-License-Identifier: GPL-2.0-or-later
/* The sums of samples by stack; on request also by bucket, and by column of time. */
#include <errno.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/profile.h"
#include "core/profile/recorded.h"
#include "core/profile/recorded_row.h"
#include "core/profile/where_match.h"

/* Returns a number that is equal for stacks with equal event, waker, condition, task and group. */
static int number_measure(struct recorded *recorded, const struct recorded_stack *stack,
			  uint32_t *ret)
{
	uint64_t condition = (uint64_t)stack->condition.state << 24 |
			     (uint64_t)stack->condition.lock << 16 |
			     (uint16_t)stack->condition.syscall | (uint64_t)stack->age << 32 |
			     (uint64_t)stack->complete << 40 | (uint64_t)stack->rest << 41;
	uint64_t who = (uint64_t)(stack->waker + 1) << 32 | stack->event;
	uint32_t *place = intern__at(&recorded->measure_index, who, condition);

	if (!place)
		return -ENOMEM;
	if (!*place)
		*place = ++recorded->n_measures;
	if (stack->task) {
		place = intern__at(&recorded->task_index, stack->task, *place);
		if (!place)
			return -ENOMEM;
	}
	if (!*place)
		*place = ++recorded->n_measures;
	if (stack->group) {
		place = intern__at(&recorded->group_index, stack->group, *place);
		if (!place)
			return -ENOMEM;
	}
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

uint8_t recorded__age(uint64_t age_ns)
{
	uint8_t age = 0;

	while (age < RECORDED_AGES && age_ns >= recorded__least_age(age + 1))
		age++;
	return age;
}

int recorded__same_stack(struct recorded *recorded, const struct recorded_stack *stack,
			 struct recorded_stack **ret)
{
	struct recorded_stack *row;
	uint32_t measure, *place;

	if (number_measure(recorded, stack, &measure))
		return -ENOMEM;
	place = intern__at(&recorded->stack_index, (uint64_t)stack->native << 32 | stack->runtime,
			   (uint64_t)measure << 32 | stack->thread);
	if (!place)
		return -ENOMEM;
	if (!*place) {
		row = add_row(&recorded->stacks);
		if (!row)
			return -ENOMEM;
		*row = *stack;
		row->samples = row->occurrences = row->value = row->last = 0;
		*place = recorded->stacks.n;
	}
	*ret = &recorded->stacks.rows[*place - 1];
	return 0;
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
		.complete = sample->flags & SAMPLE_COMPLETE,
		.rest = sample->flags & SAMPLE_REST,
		.waker = RECORDED_NONE,
	};
	uint32_t *linked = NULL;
	int code;

	recorded->has_tasks |= sample->task != 0;
	if (recorded->keeps_tasks)
		stack.task = sample->task;
	recorded->has_contexts |= sample->context != 0;
	if (recorded->groups && sample->context &&
	    recorded__group(recorded, recorded__find(&recorded->contexts, sample->context),
			    &stack.group))
		return -ENOMEM;
	if (sample->object && recorded__is_outstanding(recorded, stack.event))
		stack.age = recorded__age(sample->object);
	if (recorded->keeps_wakers && sample->link) {
		linked = intern__at(&recorded->link_index, sample->link, 0);
		if (!linked)
			return -ENOMEM;
		recorded->has_links = true;
		if (*linked && !is_wakeup(recorded, stack.event))
			stack.waker = *linked - 1;
	}
	code = recorded__same_stack(recorded, &stack, ret);
	if (!code && linked && !*linked && is_wakeup(recorded, stack.event))
		*linked = *ret - recorded->stacks.rows + 1;
	return code;
}

static void add_saturated(uint64_t *to, uint64_t value)
{
	if (__builtin_add_overflow(*to, value, to))
		*to = UINT64_MAX;
}

int recorded__add_bucket(struct recorded *recorded, const struct recorded_bucket *bucket)
{
	uint32_t *place = intern__at(&recorded->bucket_index, bucket->stack, bucket->bits);
	struct recorded_bucket *row;

	if (!place)
		return -ENOMEM;
	if (!*place) {
		row = add_row(&recorded->buckets);
		if (!row)
			return -ENOMEM;
		row->stack = bucket->stack;
		row->bits = bucket->bits;
		*place = recorded->buckets.n;
	}
	row = &recorded->buckets.rows[*place - 1];
	add_saturated(&row->occurrences, bucket->occurrences);
	add_saturated(&row->value, bucket->value);
	return 0;
}

/* As count_value(), for the number in a label of the sample; other samples have none. */
static int count_label(struct recorded *recorded, uint32_t stack, const struct sink_sample *sample)
{
	uint32_t context = recorded__find(&recorded->contexts, sample->context);
	struct recorded_bucket bucket = { .stack = stack, .occurrences = sample->weight };
	struct recorded_number value;

	if (!recorded__number(recorded__word_text(recorded, recorded__label(recorded, context,
									    recorded->bucket_key)),
			      &value))
		return 0;
	if (value.is_negative) {
		bucket.bits = PROFILE_BUCKETS;
	} else {
		bucket.bits = value.number ? 64 - __builtin_clzll(value.number) : 0;
		if (__builtin_mul_overflow(value.number, sample->weight, &bucket.value))
			bucket.value = UINT64_MAX;
	}
	return recorded__add_bucket(recorded, &bucket);
}

static int count_value(struct recorded *recorded, uint32_t stack, const struct sink_sample *sample)
{
	const struct recorded_bucket bucket = {
		.stack = stack,
		.bits = sample->value ? 64 - __builtin_clzll(sample->value) : 0,
		.occurrences = sample->weight,
		.value = sample->total,
	};

	return recorded__add_bucket(recorded, &bucket);
}

int recorded__add_moment(struct recorded *recorded, const struct recorded_moment *moment)
{
	uint32_t *place = intern__at(&recorded->moment_index, moment->stack, moment->column);
	struct recorded_moment *row;

	if (!place)
		return -ENOMEM;
	if (!*place) {
		row = add_row(&recorded->moments);
		if (!row)
			return -ENOMEM;
		row->stack = moment->stack;
		row->column = moment->column;
		*place = recorded->moments.n;
	}
	add_saturated(&recorded->moments.rows[*place - 1].value, moment->value);
	return 0;
}

/* Adds a value to the column of its time. A time outside all columns counts for the nearest one, as
 * the sample is valid nevertheless. */
static int count_moment(struct recorded *recorded, uint32_t stack, uint64_t time_ns, uint64_t value)
{
	const struct recorded_columns *columns = &recorded->columns;
	uint64_t since = time_ns > columns->first_ns ? time_ns - columns->first_ns : 0;
	const struct recorded_moment moment = {
		.stack = stack,
		.column = min_of(since / columns->width_ns, columns->n - 1),
		.value = value,
	};

	return recorded__add_moment(recorded, &moment);
}

/* Returns true if the time is selected. */
static bool is_timely(const struct recorded *recorded, uint64_t time_ns)
{
	const struct recorded_times *times = &recorded->times;

	return (!times->from_ns && !times->to_ns) ||
	       (time_ns >= times->from_ns && time_ns < times->to_ns);
}

int recorded__add_sample(struct recorded *recorded, const struct sink_sample *sample)
{
	uint64_t time_ns = sample->time_ns + recorded->times.shift_ns;
	struct recorded_stack *row;

	if (!is_timely(recorded, time_ns))
		return 0;
	if (sample->object < recorded->min_age_ns &&
	    recorded__is_outstanding(recorded, recorded__find(&recorded->events, sample->event)))
		return 0;
	if (recorded->where && !where_match__has(recorded->where, recorded, sample))
		return 0;
	if (recorded__stack(recorded, sample, &row))
		return -ENOMEM;
	row->samples += !row->rest;
	add_saturated(&row->occurrences, sample->weight);
	row->last = ++recorded->n_samples;
	add_saturated(&row->value, sample->total);
	/* A rest without a total has unknown values. */
	if (recorded->bucket_key && count_label(recorded, row - recorded->stacks.rows, sample))
		return -ENOMEM;
	if (recorded->keeps_buckets && !recorded->bucket_key && (sample->total || !row->rest) &&
	    count_value(recorded, row - recorded->stacks.rows, sample))
		return -ENOMEM;
	if (!recorded->columns.width_ns)
		return 0;
	return count_moment(recorded, row - recorded->stacks.rows, time_ns, sample->total);
}
