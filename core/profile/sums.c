// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/sums.h"

#include <errno.h>
#include <stdlib.h>

static void add(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

static void add_stack(struct sum *sum, const struct recorded_stack *stack)
{
	sum->samples += stack->samples;
	add(&sum->occurrences, stack->occurrences);
	add(&sum->value, stack->value);
	if (stack->condition.state == STATE_BLOCKED || stack->condition.state == STATE_STOPPED) {
		add(&sum->waiting, stack->value);
		add(&sum->waits, stack->occurrences);
	}
	if (stack->condition.state == STATE_PARKED) { /* the number of waits is unknown */
		add(&sum->waiting, stack->value);
		add(&sum->parked, stack->value);
	}
	if (stack->condition.state == STATE_PREEMPTED) {
		add(&sum->preempted, stack->value);
		add(&sum->preemptions, stack->occurrences);
	}
}

#define OF_TASK (1ULL << 63)

/* Returns the same number for stacks that differ in nothing but their frames. A rule of idle waits
 * must not distinguish them, and their wakers and tasks must be equal. If threads matter, these
 * must be equal, too. */
static int number_wait(struct intern *waits, const struct profile_filter *filter,
		       const struct recorded_stack *stack, uint32_t *ret)
{
	bool ruled = filter->idle && (stack->condition.state == STATE_BLOCKED ||
				      stack->condition.state == STATE_PARKED);
	bool threads = ruled || filter->threads;
	uint64_t condition =
		(uint64_t)stack->condition.lock << 16 | (uint16_t)stack->condition.syscall;
	uint32_t *place;

	if (filter->split_states)
		condition |= (uint64_t)stack->condition.state << 24;
	*ret = 0;
	if (!threads && !filter->split_states && stack->waker == RECORDED_NONE && !stack->task &&
	    !stack->rest)
		return 0;
	place = intern__at(
		waits, (uint64_t)(stack->waker + 1) << 32 | (threads ? stack->thread : 0),
		(ruled || filter->split_states ? condition + 1 : 0) | (uint64_t)stack->rest << 32);
	if (!place)
		return -ENOMEM;
	if (!*place)
		*place = waits->n;
	if (stack->task) {
		place = intern__at(waits, stack->task, OF_TASK | *place);
		if (!place)
			return -ENOMEM;
		if (!*place)
			*place = waits->n;
	}
	*ret = *place;
	return 0;
}

int sums__init(struct sums *sums, const struct recorded *recorded,
	       const struct profile_filter *filter, const struct selection *selection)
{
	struct intern index, waits;
	int ret = 0;

	*sums = (struct sums) { .rows = calloc(recorded->stacks.n + 1, sizeof(*sums->rows)),
				.of = calloc(recorded->stacks.n + 1, sizeof(*sums->of)) };
	if (!sums->rows || !sums->of)
		return -ENOMEM;
	intern__init(&index, RECORDED_NONE);
	intern__init(&waits, RECORDED_NONE);
	for (size_t i = 0; !ret && i < recorded->stacks.n; i++) {
		const struct recorded_stack *stack = &recorded->stacks.rows[i];
		uint32_t wait, *place;

		/* A live profile may have stacks without samples in its window. */
		if ((!stack->samples && !stack->value && !stack->occurrences) ||
		    !selection__has(selection, stack))
			continue;
		ret = number_wait(&waits, filter, stack, &wait);
		if (ret)
			break;
		place = intern__at(&index, (uint64_t)stack->native << 32 | stack->runtime,
				   (uint64_t)group__key(filter->by, stack) << 32 | wait);
		if (!place) {
			ret = -ENOMEM;
			break;
		}
		if (!*place) {
			sums->rows[sums->n++].stack = stack;
			*place = sums->n;
		}
		add_stack(&sums->rows[*place - 1], stack);
		sums->of[i] = *place;
	}
	intern__done(&index);
	intern__done(&waits);
	return ret;
}

void sums__done(struct sums *sums)
{
	free(sums->rows);
	free(sums->of);
}
