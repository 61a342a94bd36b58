// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/stack_memo.h"

#include "core/intern.h"
#include "core/util.h"
#include "tests/tap.h"

#define DEPTH	40
#define APART	12345
#define SAMPLES 200000
#define THREADS 700 /* more than there is room for */

static uint64_t seed = 1;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % n;
}

/* What the recorder does without a memo: a node is its parent, its frame and its offset; code that
 * no file backs (odd frames here) has another frame with each version. */
static struct intern nodes;
static uint32_t n_nodes;

static uint32_t node_of(uint32_t parent, const struct memo_pair *pair, uint64_t base,
			const struct memo_basis *basis)
{
	uint64_t version = pair->first & 1 ? basis->version : 0;
	uint64_t where = basis->process + 8 * (basis->changed_ns + 8 * basis->runtimes);
	uint32_t *id =
		intern__at(&nodes,
			   (uint64_t)parent << 32 | (where + 512 * version) << 12 | pair->first,
			   memo_pair__offset(pair, base, APART));

	if (!*id)
		*id = ++n_nodes;
	return *id;
}

static uint32_t by_memo(struct memo_stack *stack, const struct memo_basis *basis,
			const struct memo_pair *pairs, size_t n, uint64_t base, size_t *known)
{
	uint32_t node;
	size_t common = memo_stack__common(stack, basis, pairs, n, base, APART, &node), i;

	*known += common;
	if (common == n)
		return node;
	memo_stack__begin(stack, basis, common);
	for (i = n - common; i-- > 0;) {
		node = node_of(node, &pairs[i], base, basis);
		stack->moving |= pairs[i].first & 1;
		memo_stack__add(stack, n - 1 - i,
				&(struct memo_frame) { pairs[i].first,
						       memo_pair__offset(&pairs[i], base, APART),
						       node });
	}
	return node;
}

static uint32_t by_looking_up(const struct memo_basis *basis, const struct memo_pair *pairs,
			      size_t n, uint64_t base)
{
	uint32_t node = 0;

	while (n-- > 0)
		node = node_of(node, &pairs[n], base, basis);
	return node;
}

/* Stacks that change at any depth, on bases that change now and then. */
static void test_random(void)
{
	static struct memo_pair stacks[THREADS][DEPTH]; /* outermost first */
	static size_t depths[THREADS];
	struct stack_memo *memo = stack_memo__new();
	struct memo_pair pairs[DEPTH];
	struct memo_basis basis = {};
	size_t known = 0, frames = 0, wrong = 0, i, j;

	intern__init(&nodes, 1 << 24);
	for (i = 0; i < SAMPLES; i++) {
		uint32_t t = random_below(i % 2 ? THREADS : 3), from;
		struct memo_stack *stack = stack_memo__native(memo, t);
		uint64_t base = 1000 + 100 * random_below(3);

		if (!random_below(50))
			basis = (struct memo_basis) { random_below(2), random_below(2),
						      random_below(2), random_below(3) };
		depths[t] = random_below(DEPTH + 1);
		from = random_below(DEPTH);
		for (j = from; j < DEPTH; j++)
			stacks[t][j] = (struct memo_pair) { random_below(from < 20 ? 3 : 8) * 2 +
								    !random_below(40),
							    random_below(2) * APART };
		for (j = 0; j < depths[t]; j++)
			pairs[j] = stacks[t][depths[t] - 1 - j];
		for (j = 0; j < depths[t]; j++) /* stacks at other addresses are equal */
			if (!pairs[j].address && pairs[j].first % 4)
				pairs[j].address = base - 8 * pairs[j].first;
		frames += depths[t];
		wrong += by_memo(stack, &basis, pairs, depths[t], base, &known) !=
			 by_looking_up(&basis, pairs, depths[t], base);
	}
	is_int(wrong, 0, "the nodes are those that looking up finds");
	ok(known > frames / 10 && known < frames, "some are remembered: %zu of %zu", known, frames);
	intern__done(&nodes);
	stack_memo__free(memo);
}

static void test_threads(void)
{
	struct stack_memo *memo = stack_memo__new();
	struct memo_basis basis = { .process = 1 }, other = { .process = 2 };
	struct memo_pair pair = { 4, 92 }, moved = { 4, 192 };
	struct memo_stack *stack = stack_memo__runtime(memo, 7);
	uint32_t node;

	stack_memo__thread(memo, 1, 7)->row = 9;
	is_int(stack_memo__thread(memo, 1, 7)->row, 9, "a thread is remembered");
	is_int(stack_memo__thread(memo, 2, 7)->row, 0, "another process's is another one");
	memo_stack__begin(stack, &basis, 0);
	memo_stack__add(stack, 0, &(struct memo_frame) { 4, 8, 3 });
	is_int(memo_stack__common(stack, &basis, &pair, 1, 100, 0, &node), 1, "so is a stack");
	is_int(node, 3, "with its nodes");
	is_int(memo_stack__common(stack, &basis, &moved, 1, 200, 0, &node), 1, "wherever it is");
	is_int(memo_stack__common(stack, &basis, &moved, 1, 100, 0, &node), 0,
	       "but not with other offsets");
	is_int(node, 0, "of which there is no node");
	is_int(memo_stack__common(stack, &other, &pair, 1, 100, 0, &node), 0,
	       "nor in another process");
	is_int(memo_stack__common(stack_memo__native(memo, 7), &basis, &pair, 1, 100, 0, &node), 0,
	       "nor as another kind of stack");
	stack_memo__free(memo);
	stack_memo__free(NULL);
}

int main(void)
{
	test_threads();
	test_random();
	return tap__done();
}
