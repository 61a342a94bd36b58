// SPDX-License-Identifier: GPL-2.0-or-later
/* Code that maintains frame pointers, as a table's row or its runtime states. Tests which frames
 * are proven, which are inferred, and which stacks are cut nevertheless. */
#include "core/base/util.h"
#include "tests/tap.h"

#include "tests/unit/synthetic.h"

#define PC_AT	  64 /* offset of the interrupted instruction in the machine code */
#define CALLED_AT 160
#define SLOT	  8 /* word above which rbp points; the next word is the return address */
#define FP	  EVIDENCE_FRAME_POINTER

static const char nothing[] = "\x48\xff\xc0\x48\xff\xc0\x48\xff\xc0"; /* inc %rax */

static const struct frame_case {
	const char *name;
	unsigned int keeps;
	const char *code; /* machine code at the pc; 9 bytes */
	const char *call; /* machine code at CALLED_AT; ends at the address in `left_at` */
	size_t call_bytes;
	bool is_caller; /* the pc is behind a call */
	int left_at;	/* word of the frame with an address behind `call`; 0: no such word */
	int evidence;	/* evidence of the caller; -1: cut */
	int frame_at;	/* first word behind the frame */
	bool first;	/* true: the word at the stack pointer has that address */
	int more;	/* number of frames between this one and the outermost */
} cases[] = {
	{ "no word in the way: proven for any code", 0, nothing, .evidence = FP, .frame_at = 10 },
	{ "an unknown call in the way", 0, nothing, "\xff\xd0", 2, .left_at = 3, .evidence = -1 },
	{ "the same, where most code keeps them", KEEPS_POINTERS, nothing, "\xff\xd0", 2,
	  .left_at = 3, .evidence = EVIDENCE_INFERRED, .frame_at = 10 },
	{ "the same, where callers keep them", KEEPS_POINTERS | KEEPS_CALLERS, nothing, "\xff\xd0",
	  2, .left_at = 3, .evidence = EVIDENCE_INFERRED, .frame_at = 10 },
	{ "the same, where all code keeps them", KEEPS_POINTERS | KEEPS_CALLERS | KEEPS_LEAVES,
	  nothing, "\xff\xd0", 2, .left_at = 3, .evidence = FP, .frame_at = 10 },
	{ "a caller, where callers keep them", KEEPS_POINTERS | KEEPS_CALLERS, nothing, "\xff\xd0",
	  2, .is_caller = true, .left_at = 3, .evidence = FP, .frame_at = 10 },
	{ "a caller, where most code keeps them", KEEPS_POINTERS, nothing, "\xff\xd0", 2,
	  .is_caller = true, .left_at = 3, .evidence = EVIDENCE_INFERRED, .frame_at = 10 },
	{ "a call of other code", KEEPS_POINTERS, nothing, .is_caller = true,
	  .call = "\xe8\x00\x00\x10\x00", .call_bytes = 5, .left_at = 3, .evidence = FP,
	  .frame_at = 10 },
	{ "the same, where nothing is known", 0, nothing, "\xe8\x00\x00\x10\x00", 5, .left_at = 3,
	  .evidence = -1 },
	{ "a call by a register, of other code", KEEPS_POINTERS, nothing, .is_caller = true,
	  .call = "\x41\xbb\x00\x00\x00\x01\x41\xff\xd3", .call_bytes = 9, .left_at = 3,
	  .evidence = FP, .frame_at = 10 },
	/* from 165 to the pc's own stub at 48 */
	{ "a stub without a frame", KEEPS_POINTERS, nothing, "\xe8\x8b\xff\xff\xff", 5,
	  .left_at = 3, .evidence = EVIDENCE_INFERRED, .frame_at = 4, .more = 1 },
	{ "a function with a prologue, behind its epilogue", KEEPS_POINTERS | KEEPS_CALLERS,
	  nothing, "\xe8\x83\xff\xff\xff", 5, .left_at = 0, .first = true,
	  .evidence = EVIDENCE_INFERRED, .frame_at = 10 },
	{ "words of its earlier calls", KEEPS_POINTERS, nothing, "\xe8\x83\xff\xff\xff", 5,
	  .is_caller = true, .left_at = 3, .evidence = FP, .frame_at = 10 },
	{ "rbp is restored, and another function is next", KEEPS_POINTERS,
	  "\xe9\x00\x00\x00\x00\x90\x90\x90\x90", "\xff\xd0", 2, .left_at = 0, .evidence = FP,
	  .frame_at = 1 },
};

/* Tests a case. The rbp of a function that restored it is the caller's. */
static void test_case(const struct frame_case *one)
{
	struct mapping_rec *made = &sampler__mappings()->lists[0].mappings[1];
	bool is_tail = (unsigned char)one->code[0] == 0xe9, complete;
	int caller = one->is_caller;

	reset();
	made->callers.walkers = one->keeps << CALLERS_KEEPS_SHIFT;
	memset(jit_code, 0x90, sizeof(jit_code));
	memcpy(jit_code + PC_AT, one->code, 9);
	memcpy(jit_code + PC_AT - 5, is_tail ? "\x90\x90\x90\x90\x5d" : "\xe8\x00\x01\x00\x00", 5);
	jit_code[PC_AT + 9] =
		one - cases; /* each case has its own code, as proofs of other code are cached */
	if (one->call)
		memcpy(jit_code + CALLED_AT, one->call, one->call_bytes);
	if (one->left_at)
		stack[one->left_at + 2 * caller] = JIT + CALLED_AT + one->call_bytes;
	memcpy(jit_code + 40, "\x55\x48\x89\xe5", 4); /* function that the last two cases call */
	if (one->first)
		stack[0] = JIT + CALLED_AT + one->call_bytes;
	if (is_tail)
		stack[0] = PC(1);
	if (caller) { /* the innermost frame has a rule, and returns to the code */
		static const struct unwind_rule rules[CODE_PAGES] = { RSP(16), END, END, END,
								      END,     END, END, END };

		set_rules(rules);
		stack[1] = JIT + PC_AT;
	} else {
		regs[UNWIND_REG_PC] = JIT + PC_AT;
	}
	regs[UNWIND_REG_RBP] = AT(SLOT + 2 * caller);
	stack[SLOT + 2 * caller] = AT(20);
	stack[SLOT + 2 * caller + 1] = PC(1);
	sampler__run(regs);
	complete = host.sample.head.flags & SAMPLE_COMPLETE;
	if (one->evidence < 0) {
		is_int(host.sample.head.n_native, 1 + caller, "%s: cut", one->name);
		is_int(host.sample.head.stop, COUNT_UNPROVEN, "%s: why", one->name);
		return;
	}
	is_int(host.sample.head.n_native, 2 + caller + one->more, "%s: frames", one->name);
	is_int(sample__cfa(caller), AT(one->frame_at + 2 * caller), "%s: CFA", one->name);
	is_int(NATIVE_EVIDENCE(sample__ip(1 + caller)), one->evidence, "%s: evidence", one->name);
	is_int(complete, one->evidence != EVIDENCE_INFERRED, "%s: complete", one->name);
}

/* Tests a file's code whose row in the table states that it maintains frame pointers. Without flags
 * it has no rule. */
static void test_row(unsigned int flags, bool goes_on)
{
	const struct unwind_rule rules[CODE_PAGES] = {
		{ .kind = flags ? UNWIND_POINTER : UNWIND_NONE, .flags = flags }, END, END, END, END
	};

	reset();
	set_rules(rules);
	memcpy(code_bytes + (PC(0) - CODE), nothing, sizeof(nothing) - 1);
	stack[SLOT] = AT(20);
	stack[SLOT + 1] = PC(1);
	regs[UNWIND_REG_RBP] = AT(SLOT);
	sampler__run(regs);
	is_int(host.sample.head.n_native, 1 + goes_on, "row with flags %u: frames", flags);
	is_int(host.sample.head.stop, goes_on ? 0 : COUNT_NO_RULE, "row with flags %u: stop",
	       flags);
}

/* Tests a program's first function, behind its call of a function that never returns. */
static void test_start(bool is_hlt, unsigned int below)
{
	static const struct unwind_rule rules[CODE_PAGES] = {
		RSP(16), { .kind = UNWIND_POINTER, .flags = KEEPS_POINTERS }
	};
	bool ends = is_hlt && below <= 32;

	reset();
	set_rules(rules);
	code_bytes[PC(1) - CODE] = is_hlt ? '\xf4' : '\x90';
	stack[1] = PC(1);
	sampler__memory.start_stack = AT(2) + below;
	sampler__run(regs);
	sampler__memory.start_stack = 0;
	is_int(host.sample.head.n_native, 2, "hlt %d, %u bytes below: frames", is_hlt, below);
	is_int(!!(host.sample.head.flags & SAMPLE_COMPLETE), ends,
	       "hlt %d, %u bytes below: complete", is_hlt, below);
}

int main(void)
{
	sampler__open();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		test_case(&cases[i]);
	test_row(0, false);
	test_row(KEEPS_POINTERS, true);
	test_row(KEEPS_POINTERS | KEEPS_CALLERS | KEEPS_LEAVES, true);
	test_start(true, 16);
	test_start(true, 64);
	test_start(false, 16);
	sampler__close();
	return tap__done();
}
