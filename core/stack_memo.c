// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/stack_memo.h"

#include <stdlib.h>

#include "core/util.h"

/* Direct-mapped: a thread takes the place of another one that has the same. */
struct stack_memo {
	struct memo_thread threads[STACK_MEMO_THREADS];
	struct memo_stack natives[STACK_MEMO_STACKS], runtimes[STACK_MEMO_STACKS];
};

struct stack_memo *stack_memo__new(void)
{
	return calloc(1, sizeof(struct stack_memo));
}

void stack_memo__free(struct stack_memo *memo)
{
	size_t i;

	if (!memo)
		return;
	for (i = 0; i < STACK_MEMO_STACKS; i++) {
		free(memo->natives[i].frames);
		free(memo->runtimes[i].frames);
	}
	free(memo);
}

struct memo_thread *stack_memo__thread(struct stack_memo *memo, uint32_t process, uint32_t tid)
{
	/* Threads that began together have numbers in a row. */
	struct memo_thread *thread = &memo->threads[tid % STACK_MEMO_THREADS];

	if (thread->process != process || thread->tid != tid)
		*thread = (struct memo_thread) { .process = process, .tid = tid };
	return thread;
}

struct memo_stack *stack_memo__native(struct stack_memo *memo, uint32_t tid)
{
	return &memo->natives[tid % STACK_MEMO_STACKS];
}

struct memo_stack *stack_memo__runtime(struct stack_memo *memo, uint32_t tid)
{
	return &memo->runtimes[tid % STACK_MEMO_STACKS];
}

static bool same_basis(const struct memo_stack *stack, const struct memo_basis *basis)
{
	const struct memo_basis *old = &stack->basis;

	return old->process == basis->process && old->runtimes == basis->runtimes &&
	       old->changed_ns == basis->changed_ns &&
	       (!stack->moving || old->version == basis->version);
}

size_t memo_stack__common(const struct memo_stack *stack, const struct memo_basis *basis,
			  const struct memo_pair *pairs, size_t n, uint64_t base, uint64_t apart,
			  uint32_t *ret_node)
{
	size_t common = 0, most = min_of(n, stack->n);

	*ret_node = 0;
	if (!same_basis(stack, basis))
		return 0;
	for (; common < most; common++) {
		const struct memo_pair *pair = &pairs[n - 1 - common];
		const struct memo_frame *frame = &stack->frames[common];

		if (frame->first != pair->first ||
		    frame->offset != memo_pair__offset(pair, base, apart))
			break;
	}
	if (common)
		*ret_node = stack->frames[common - 1].node;
	return common;
}

void memo_stack__begin(struct memo_stack *stack, const struct memo_basis *basis, size_t n)
{
	if (!same_basis(stack, basis))
		stack->n = 0;
	stack->n = min_of(stack->n, n);
	stack->basis = *basis;
	if (!stack->n)
		stack->moving = false;
}

void memo_stack__add(struct memo_stack *stack, size_t depth, const struct memo_frame *frame)
{
	if (depth != stack->n ||
	    array__reserve(&stack->frames, &stack->cap, depth + 1, sizeof(*stack->frames)))
		return;
	stack->frames[depth] = *frame;
	stack->n++;
}
