// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/stack_cache.h"

#include <stdlib.h>

#include "core/base/util.h"

/* Direct-mapped: a thread evicts another one with the same index. */
struct stack_cache {
	struct cached_thread threads[STACK_CACHE_THREADS];
	struct cached_stack natives[STACK_CACHE_STACKS], runtimes[STACK_CACHE_STACKS];
};

struct stack_cache *stack_cache__new(void)
{
	return calloc(1, sizeof(struct stack_cache));
}

void stack_cache__free(struct stack_cache *cache)
{
	size_t i;

	if (!cache)
		return;
	for (i = 0; i < STACK_CACHE_STACKS; i++) {
		free(cache->natives[i].frames);
		free(cache->runtimes[i].frames);
	}
	free(cache);
}

void stack_cache__forget(struct stack_cache *cache)
{
	for (size_t i = 0; i < STACK_CACHE_STACKS; i++)
		cache->natives[i].n = cache->runtimes[i].n = 0;
}

struct cached_thread *stack_cache__thread(struct stack_cache *cache, uint32_t process, uint32_t tid)
{
	/* Threads that start together have consecutive numbers. */
	struct cached_thread *thread = &cache->threads[tid % STACK_CACHE_THREADS];

	if (thread->process != process || thread->tid != tid)
		*thread = (struct cached_thread) { .process = process, .tid = tid };
	return thread;
}

struct cached_thread *stack_cache__nth_thread(struct stack_cache *cache, size_t n)
{
	return &cache->threads[n];
}

struct cached_stack *stack_cache__native(struct stack_cache *cache, uint32_t tid)
{
	return &cache->natives[tid % STACK_CACHE_STACKS];
}

struct cached_stack *stack_cache__runtime(struct stack_cache *cache, uint32_t tid)
{
	return &cache->runtimes[tid % STACK_CACHE_STACKS];
}

static bool same_basis(const struct cached_stack *stack, const struct cached_basis *basis)
{
	const struct cached_basis *old = &stack->basis;

	return old->process == basis->process && old->runtimes == basis->runtimes &&
	       old->changed_ns == basis->changed_ns && old->span_ns == basis->span_ns &&
	       (!stack->moving || old->version == basis->version);
}

static bool same_frame(const struct cached_frame *frame, const struct cached_query *query, size_t i)
{
	return frame->first == query->pairs[i].first &&
	       frame->offset == cached_pair__offset(&query->pairs[i], query->base, query->apart) &&
	       (!query->runtimes ||
		(frame->runtime == query->runtimes[i] && frame->evidence == query->evidence[i]));
}

size_t cached_stack__common(const struct cached_stack *stack, const struct cached_basis *basis,
			    const struct cached_query *query, uint32_t *ret_node)
{
	size_t common = 0, most = min_of(query->n, stack->n);

	*ret_node = 0;
	if (!same_basis(stack, basis))
		return 0;
	while (common < most && same_frame(&stack->frames[common], query, query->n - 1 - common))
		common++;
	if (common)
		*ret_node = stack->frames[common - 1].node;
	return common;
}

void cached_stack__begin(struct cached_stack *stack, const struct cached_basis *basis, size_t n)
{
	if (!same_basis(stack, basis))
		stack->n = 0;
	stack->n = min_of(stack->n, n);
	stack->basis = *basis;
	if (!stack->n)
		stack->moving = false;
}

void cached_stack__add(struct cached_stack *stack, size_t depth, const struct cached_frame *frame)
{
	if (depth != stack->n ||
	    array__reserve(&stack->frames, &stack->cap, depth + 1, sizeof(*stack->frames)))
		return;
	stack->frames[depth] = *frame;
	stack->n++;
}
