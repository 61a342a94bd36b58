// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/stack_cache.h"

#include "core/base/intern.h"
#include "core/base/util.h"
#include "tests/tap.h"

#define DEPTH	40
#define APART	12345
#define SAMPLES 200000
#define THREADS 700 /* more than the cache has room for */

static uint64_t seed = 1;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % n;
}

/* The recorder's result without a cache. A node is its parent, its frame and its offset. Code
 * without a file (odd frames here) has another frame with each version. */
static struct intern nodes;
static uint32_t n_nodes;

static uint32_t node_of(uint32_t parent, const struct cached_pair *pair, uint64_t base,
			const struct cached_basis *basis)
{
	uint64_t version = pair->first & 1 ? basis->version : 0;
	uint64_t where = basis->process + 8 * (basis->changed_ns + 8 * basis->runtimes);
	uint32_t *id =
		intern__at(&nodes,
			   (uint64_t)parent << 32 | (where + 512 * version) << 12 | pair->first,
			   cached_pair__offset(pair, base, APART));

	if (!*id)
		*id = ++n_nodes;
	return *id;
}

static uint32_t by_cache(struct cached_stack *stack, const struct cached_basis *basis,
			 const struct cached_pair *pairs, size_t n, uint64_t base, size_t *n_cached)
{
	uint32_t node;
	struct cached_query query = { .pairs = pairs, .n = n, .base = base, .apart = APART };
	size_t common = cached_stack__common(stack, basis, &query, &node), i;

	*n_cached += common;
	if (common == n)
		return node;
	cached_stack__begin(stack, basis, common);
	for (i = n - common; i-- > 0;) {
		node = node_of(node, &pairs[i], base, basis);
		stack->moving |= pairs[i].first & 1;
		cached_stack__add(
			stack, n - 1 - i,
			&(struct cached_frame) { pairs[i].first,
						 cached_pair__offset(&pairs[i], base, APART), node,
						 0, 0 });
	}
	return node;
}

static uint32_t by_looking_up(const struct cached_basis *basis, const struct cached_pair *pairs,
			      size_t n, uint64_t base)
{
	uint32_t node = 0;

	while (n-- > 0)
		node = node_of(node, &pairs[n], base, basis);
	return node;
}

/* Stacks that change at any depth, on bases that change occasionally. */
static void test_random(void)
{
	static struct cached_pair stacks[THREADS][DEPTH]; /* outermost first */
	static size_t depths[THREADS];
	struct stack_cache *cache = stack_cache__new();
	struct cached_pair pairs[DEPTH];
	struct cached_basis basis = {};
	size_t n_cached = 0, frames = 0, wrong = 0, i, j;

	intern__init(&nodes, 1 << 24);
	for (i = 0; i < SAMPLES; i++) {
		uint32_t t = random_below(i % 2 ? THREADS : 3), from;
		struct cached_stack *stack = stack_cache__native(cache, t);
		uint64_t base = 1000 + 100 * random_below(3);

		if (!random_below(50))
			basis = (struct cached_basis) { .process = random_below(2),
							.runtimes = random_below(2),
							.changed_ns = random_below(2),
							.span_ns = random_below(2),
							.version = random_below(3) };
		depths[t] = random_below(DEPTH + 1);
		from = random_below(DEPTH);
		for (j = from; j < DEPTH; j++)
			stacks[t][j] = (struct cached_pair) { random_below(from < 20 ? 3 : 8) * 2 +
								      !random_below(40),
							      random_below(2) * APART };
		for (j = 0; j < depths[t]; j++)
			pairs[j] = stacks[t][depths[t] - 1 - j];
		for (j = 0; j < depths[t]; j++) /* stacks at different addresses are equal */
			if (!pairs[j].address && pairs[j].first % 4)
				pairs[j].address = base - 8 * pairs[j].first;
		frames += depths[t];
		wrong += by_cache(stack, &basis, pairs, depths[t], base, &n_cached) !=
			 by_looking_up(&basis, pairs, depths[t], base);
	}
	is_int(wrong, 0, "the nodes are those that looking up finds");
	ok(n_cached > frames / 10 && n_cached < frames, "some are remembered: %zu of %zu", n_cached,
	   frames);
	intern__done(&nodes);
	stack_cache__free(cache);
}

static size_t common_with(const struct cached_stack *stack, const struct cached_basis *basis,
			  const struct cached_pair *pair, const uint8_t *runtime, uint64_t base,
			  uint32_t *ret_node)
{
	static const uint8_t evidence[1] = { EVIDENCE_RULE };
	struct cached_query query = {
		.pairs = pair, .runtimes = runtime, .evidence = evidence, .n = 1, .base = base
	};

	return cached_stack__common(stack, basis, &query, ret_node);
}

static void test_threads(void)
{
	struct stack_cache *cache = stack_cache__new();
	struct cached_basis basis = { .process = 1 }, other = { .process = 2 };
	struct cached_pair pair = { 4, 92 }, moved = { 4, 192 };
	struct cached_stack *stack = stack_cache__runtime(cache, 7);
	uint8_t runtime = 2, another = 3;
	uint32_t node;

	stack_cache__thread(cache, 1, 7)->row = 9;
	is_int(stack_cache__thread(cache, 1, 7)->row, 9, "a thread is remembered");
	is_int(stack_cache__thread(cache, 2, 7)->row, 0, "another process's is another one");
	cached_stack__begin(stack, &basis, 0);
	cached_stack__add(stack, 0, &(struct cached_frame) { 4, 8, 3, 2, 0 });
	is_int(common_with(stack, &basis, &pair, &runtime, 100, &node), 1, "so is a stack");
	is_int(node, 3, "with its nodes");
	is_int(common_with(stack, &basis, &moved, &runtime, 200, &node), 1, "wherever it is");
	is_int(common_with(stack, &basis, &moved, &runtime, 100, &node), 0,
	       "but not with other offsets");
	is_int(node, 0, "of which there is no node");
	is_int(common_with(stack, &other, &pair, &runtime, 100, &node), 0,
	       "nor in another process");
	is_int(common_with(stack_cache__native(cache, 7), &basis, &pair, &runtime, 100, &node), 0,
	       "nor as another kind of stack");
	is_int(common_with(stack, &basis, &pair, &another, 100, &node), 0,
	       "nor where the same key is another runtime's");
	stack_cache__free(cache);
	stack_cache__free(NULL);
}

int main(void)
{
	test_threads();
	test_random();
	return tap__done();
}
