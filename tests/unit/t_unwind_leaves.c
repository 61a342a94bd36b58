// SPDX-License-Identifier: GPL-2.0-or-later
/* The innermost function has no table. It is interrupted before each of its instructions, as a
 * machine would be. Its caller is found, or the stack is cut. The caller's caller, which rbp leads
 * to, is never shown as its caller. */
#include "core/base/util.h"
#include "tests/tap.h"

#include "tests/unit/synthetic.h"

#define CALLED_AT 20 /* word of the return address; the caller's frame is above */
#define OUTER_AT  40 /* word that the caller's rbp points to */

/* An instruction, and its effect on the stack pointer and rbp. */
struct instruction {
	const char *bytes;
	size_t n;
	enum { OTHER, PUSH_RBP_OP, SET_RBP, POP_RBP_OP, ADD_RSP, RETURN } does;
	int words; /* words of ADD_RSP; negative: sub */
	bool may_be_cut;
};

#define MAX 8

static const struct function {
	const char *name;
	struct instruction code[MAX];
} functions[] = {
	{ "with a frame pointer",
	  { { "\x55", 1, PUSH_RBP_OP, 0, false },
	    { "\x48\x89\xe5", 3, SET_RBP, 0, false },
	    { "\x48\xff\xc0", 3, OTHER, 0, false },
	    { "\x0f\x1f\x40\x00", 4, OTHER, 0, false },
	    { "\x5d", 1, POP_RBP_OP, 0, false },
	    { "\xc3", 1, RETURN, 0, false } } },
	{ "with a frame pointer, and endbr64",
	  { { "\xf3\x0f\x1e\xfa", 4, OTHER, 0, false },
	    { "\x55", 1, PUSH_RBP_OP, 0, false },
	    { "\x48\x8b\xec", 3, SET_RBP, 0, false },
	    { "\x48\xff\xc0", 3, OTHER, 0, false },
	    { "\x5d", 1, POP_RBP_OP, 0, false },
	    { "\xc3", 1, RETURN, 0, false } } },
	{ "without a frame pointer",
	  { { "\x48\x83\xec\x18", 4, ADD_RSP, -3, true },
	    { "\x48\xff\xc0", 3, OTHER, 0, true },
	    { "\x0f\x1f\x40\x00", 4, OTHER, 0, true },
	    { "\x48\x83\xc4\x18", 4, ADD_RSP, 3, false },
	    { "\xc3", 1, RETURN, 0, false } } },
	{ "with a result that it moves", /* the end of HotSpot's flush_icache_stub */
	  { { "\x48\xff\xc0", 3, OTHER, 0, true },
	    { "\x48\x8b\xc2", 3, OTHER, 0, false },
	    { "\x4c\x89\xc0", 3, OTHER, 0, false },
	    { "\xc3", 1, RETURN, 0, false } } },
	{ "with moves to other registers",
	  { { "\x4c\x8b\xc2", 3, OTHER, 0, true },
	    { "\x49\x89\xc0", 3, OTHER, 0, true },
	    { "\xc3", 1, RETURN, 0, false } } },
	{ "without a frame",
	  { { "\x48\xff\xc0", 3, OTHER, 0, true }, { "\xf3\xc3", 2, RETURN, 0, false } } },
};

static void put(const struct function *function)
{
	size_t at = 16;

	memset(jit_code, 0xcc, sizeof(jit_code));
	for (int i = 0; i < MAX && function->code[i].n; i++) {
		memcpy(jit_code + at, function->code[i].bytes, function->code[i].n);
		at += function->code[i].n;
	}
}

/* Executes @instruction. */
static void step(const struct instruction *instruction)
{
	uint64_t *sp = &regs[UNWIND_REG_RSP], *rbp = &regs[UNWIND_REG_RBP];

	regs[UNWIND_REG_PC] += instruction->n;
	switch (instruction->does) {
	case PUSH_RBP_OP:
		*sp -= 8;
		stack[(*sp - STACK) / 8] = *rbp;
		break;
	case SET_RBP:
		*rbp = *sp;
		break;
	case POP_RBP_OP:
		*rbp = stack[(*sp - STACK) / 8];
		*sp += 8;
		break;
	case ADD_RSP:
		*sp += 8LL * instruction->words;
		break;
	default:
		break;
	}
}

static void test_function(const struct function *function)
{
	reset();
	put(function);
	stack[CALLED_AT] = PC(1);
	stack[OUTER_AT] = AT(60);
	stack[OUTER_AT + 1] = PC(3);
	regs[UNWIND_REG_PC] = JIT + 16;
	regs[UNWIND_REG_RSP] = AT(CALLED_AT);
	regs[UNWIND_REG_RBP] = AT(OUTER_AT);
	for (int i = 0; i < MAX && function->code[i].n; i++) {
		const struct instruction *instruction = &function->code[i];
		bool cut, right;

		sampler__run(regs);
		cut = host.sample.head.n_native == 1 && host.sample.head.stop == COUNT_UNPROVEN &&
		      !(host.sample.head.flags & SAMPLE_COMPLETE);
		right = host.sample.head.n_native == 2 && NATIVE_ADDRESS(sample__ip(1)) == PC(1) &&
			sample__cfa(0) == AT(CALLED_AT + 1) &&
			host.sample.head.flags & SAMPLE_COMPLETE;
		if (!ok(right || (cut && instruction->may_be_cut), "%s: before instruction %d",
			function->name, i))
			tap__diag("%u frames, the second %#lx, stop %u", host.sample.head.n_native,
				  (long)sample__ip(1), host.sample.head.stop);
		step(instruction);
	}
}

int main(void)
{
	sampler__open();
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		test_function(&functions[i]);
	sampler__close();
	return tap__done();
}
