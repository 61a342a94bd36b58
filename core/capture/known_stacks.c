// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/known_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct known_stack {
	struct rec_sample *rec;	     /* owned; the words follow */
	size_t size, cap;	     /* bytes */
	struct known_result *result; /* owned; valid if result->is_there */
};

struct known_stacks {
	struct known_stack list[KNOWN_MAX];
};

struct known_stacks *known_stacks__new(void)
{
	return calloc(1, sizeof(struct known_stacks));
}

void known_stacks__free(struct known_stacks *known)
{
	if (!known)
		return;
	for (size_t i = 0; i < KNOWN_MAX; i++) {
		free(known->list[i].rec);
		free(known->list[i].result);
	}
	free(known);
}

/* Makes room for @size bytes. Drops the previous stack also on failure. */
static int make_room(struct known_stack *stack, size_t size)
{
	stack->size = 0;
	if (size <= stack->cap && stack->cap / 2 <= size)
		return 0;
	free(stack->rec);
	stack->cap = 0;
	stack->rec = malloc(size);
	if (!stack->rec)
		return -ENOMEM;
	stack->cap = size;
	return 0;
}

int known_stacks__keep(struct known_stacks *known, const struct rec_sample *rec, size_t size)
{
	struct known_stack *stack;

	if (!rec->generation || rec->slot >= KNOWN_MAX)
		return 0;
	stack = &known->list[rec->slot];
	if (make_room(stack, size))
		return -ENOMEM;
	memcpy(stack->rec, rec, size);
	stack->size = size;
	if (stack->result)
		stack->result->is_there = false;
	return 0;
}

/* Allocates the result at the first repetition, as many stacks occur only once. */
static struct known_result *result_of(struct known_stack *stack)
{
	if (!stack->result)
		stack->result = calloc(1, sizeof(*stack->result));
	return stack->result;
}

void known_stacks__forget_results(struct known_stacks *known)
{
	for (size_t i = 0; i < KNOWN_MAX; i++)
		if (known->list[i].result)
			known->list[i].result->is_there = false;
}

const struct rec_sample *known_stacks__take(struct known_stacks *known, const struct rec_known *rec,
					    size_t size, size_t *ret_size,
					    struct known_result **ret_result)
{
	const struct rec_known_about *about = (const struct rec_known_about *)rec;
	struct known_stack *stack = &known->list[rec->slot % KNOWN_MAX];
	struct rec_sample *sample = stack->rec;

	if (!stack->size || sample->slot != rec->slot || sample->generation != rec->generation)
		return NULL;
	sample->time_ns = rec->time_ns;
	sample->value = rec->value;
	sample->weight = rec->weight;
	sample->total = rec->total;
	sample->tid = rec->tid;
	sample->event = rec->event;
	sample->cpu = rec->cpu;
	sample->condition = rec->condition;
	sample->object = sample->link = sample->task = sample->peer = sample->context = 0;
	if (size >= sizeof(*about)) {
		sample->object = about->object;
		sample->link = about->link;
		sample->task = about->task;
		sample->peer = about->peer;
		sample->context = about->context;
	}
	*ret_size = stack->size;
	if (ret_result)
		*ret_result = result_of(stack);
	return sample;
}
