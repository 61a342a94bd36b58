// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/sent_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sent_stack {
	struct rec_sample *rec;	      /* owned; the words follow */
	size_t size, cap;	      /* bytes */
	struct cached_result *result; /* owned; valid if result->is_there */
};

struct sent_stacks {
	struct sent_stack list[SENT_STACKS_MAX];
};

struct sent_stacks *sent_stacks__new(void)
{
	return calloc(1, sizeof(struct sent_stacks));
}

void sent_stacks__free(struct sent_stacks *sent)
{
	if (!sent)
		return;
	for (size_t i = 0; i < SENT_STACKS_MAX; i++) {
		free(sent->list[i].rec);
		free(sent->list[i].result);
	}
	free(sent);
}

/* Makes room for @size bytes. Drops the previous stack also on failure. */
static int make_room(struct sent_stack *stack, size_t size)
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

int sent_stacks__store(struct sent_stacks *sent, const struct rec_sample *rec, size_t size)
{
	struct sent_stack *stack;

	if (!rec->generation || rec->slot >= SENT_STACKS_MAX)
		return 0;
	stack = &sent->list[rec->slot];
	if (make_room(stack, size))
		return -ENOMEM;
	memcpy(stack->rec, rec, size);
	stack->size = size;
	if (stack->result)
		stack->result->is_there = false;
	return 0;
}

/* Allocates the result at the first repetition, as many stacks occur only once. */
static struct cached_result *result_of(struct sent_stack *stack)
{
	if (!stack->result)
		stack->result = calloc(1, sizeof(*stack->result));
	return stack->result;
}

void sent_stacks__forget_results(struct sent_stacks *sent)
{
	for (size_t i = 0; i < SENT_STACKS_MAX; i++)
		if (sent->list[i].result)
			sent->list[i].result->is_there = false;
}

const struct rec_sample *sent_stacks__find(struct sent_stacks *sent, const struct rec_repeat *rec,
					   size_t size, size_t *ret_size,
					   struct cached_result **ret_result)
{
	const struct rec_repeat_about *about = (const struct rec_repeat_about *)rec;
	struct sent_stack *stack = &sent->list[rec->slot % SENT_STACKS_MAX];
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
