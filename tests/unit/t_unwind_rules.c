// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel half's unwinder on made-up stacks and tables: each kind of rule, each reason to stop,
 * and its surroundings in the sampler. */
#include "core/base/util.h"
#include "tests/tap.h"

#include "tests/unit/synthetic.h"

#define X  NATIVE_EXACT
#define FP ((uint64_t)EVIDENCE_FRAME_POINTER << NATIVE_EVIDENCE_SHIFT)

/* Words of each hop, and of the frame on the other stack. */
#define HOPS(a, b, c, frame) ((a) | (b) << 8 | (c) << 16 | (frame) << 24)

/* --- expected output for each input --- */

static const struct unwinding {
	const char *name;
	struct unwind_rule rules[CODE_PAGES];
	uint64_t pc, rbp, rbx, r10; /* pc 0: PC(0) */
	uint64_t stack[40];
	uint64_t frames[6][2]; /* ip, CFA; ended by ip 0 */
	enum counter stop;
} unwindings[] = {
	{ .name = "return address above the stack pointer",
	  .rules = { RSP(24), RSP(16), END },
	  .stack = { [2] = PC(1), [4] = PC(2) },
	  .frames = { { PC(0) | X, AT(3) }, { PC(1), AT(5) }, { PC(2), AT(5) } } },
	{ .name = "a call is the last instruction of its function",
	  .rules = { RSP(8), RSP(16), END, RSP(800) },
	  .stack = { [0] = CODE + 512, [2] = PC(2) },
	  .frames = { { PC(0) | X, AT(1) }, { CODE + 512, AT(3) }, { PC(2), AT(3) } } },
	{ .name = "rbp saved, lost, and saved again",
	  .rules = { RSP(16, .fp_words = -2), RSP(16, .fp_words = UNWIND_WORDS_LOST),
		     RSP(16, .fp_words = -2), RBP(16, .fp_words = -2), END },
	  .stack = { [0] = 1, PC(1), 2, PC(2), AT(8), PC(3), [8] = 0, PC(4) },
	  .frames = { { PC(0) | X, AT(2) },
		      { PC(1), AT(4) },
		      { PC(2), AT(6) },
		      { PC(3), AT(10) },
		      { PC(4), AT(10) } } },
	{ .name = "rbp needed after it was lost",
	  .rules = { RSP(16, .fp_words = UNWIND_WORDS_LOST), RBP(16) },
	  .rbp = AT(4),
	  .stack = { [1] = PC(1), [5] = PC(2) },
	  .frames = { { PC(0) | X, AT(2) }, { PC(1), 0 } },
	  .stop = COUNT_LOST_REG },
	{ .name = "rbx through two frames, then lost",
	  .rules = { RSP(16, .aux_words = -2), RBX(8, .aux_words = UNWIND_WORDS_LOST), RBX(0) },
	  .stack = { AT(6), PC(1), [6] = PC(2) },
	  .frames = { { PC(0) | X, AT(2) }, { PC(1), AT(7) }, { PC(2), 0 } },
	  .stop = COUNT_LOST_REG },
	{ .name = "registers saved relative to rbp, even at it",
	  .rules = { RSP(32, .flags = UNWIND_FP_AT_FP | UNWIND_AUX_AT_FP, .aux_words = -1),
		     RBP(16, .fp_words = UNWIND_WORDS_LOST, .flags = UNWIND_FP_AT_FP), RBX(0),
		     END },
	  .rbp = AT(10),
	  .stack = { [3] = PC(1), [9] = AT(20), [10] = AT(12), [13] = PC(2), [19] = PC(3) },
	  .frames = { { PC(0) | X, AT(4) },
		      { PC(1), AT(14) },
		      { PC(2), AT(20) },
		      { PC(3), AT(20) } } },
	{ .name = "any register in the innermost frame, and in no other",
	  .rules = { RULE(REG, REG_R10, 8), RULE(REG, REG_R10, 16) },
	  .r10 = AT(5),
	  .stack = { [5] = PC(1) },
	  .frames = { { PC(0) | X, AT(6) }, { PC(1), 0 } },
	  .stop = COUNT_LOST_REG },
	{ .name = "the return address is in a register",
	  .rules = { RULE(LINK, UNWIND_REG_RSP, 0, .cfa_add = REG_R10), RSP(8), END },
	  .r10 = PC(1),
	  .stack = { PC(2) },
	  .frames = { { PC(0) | X, AT(0) }, { PC(1), AT(1) }, { PC(2), AT(1) } } },
	{ .name = "... which is not known but in the innermost frame",
	  .rules = { RSP(8), RULE(LINK, UNWIND_REG_RSP, 0, .cfa_add = REG_R10) },
	  .r10 = PC(2),
	  .stack = { PC(1) },
	  .frames = { { PC(0) | X, AT(1) }, { PC(1), AT(1) } },
	  .stop = COUNT_LOST_REG },
	{ .name = "... nor is rbp there, which has another value",
	  .rules = { RSP(8), RULE(LINK, UNWIND_REG_RSP, 0, .cfa_add = UNWIND_REG_RBP) },
	  .rbp = PC(2),
	  .stack = { PC(1) },
	  .frames = { { PC(0) | X, AT(1) }, { PC(1), AT(1) } },
	  .stop = COUNT_LOST_REG },
	{ .name = "the CFA is in memory",
	  .rules = { RULE(DEREF, UNWIND_REG_RBP, -8, .cfa_add = 16), END },
	  .rbp = AT(3),
	  .stack = { [2] = AT(30), [31] = PC(1) },
	  .frames = { { PC(0) | X, AT(32) }, { PC(1), AT(32) } } },
	{ .name = "the CFA is in memory that cannot be read",
	  .rules = { RULE(DEREF, UNWIND_REG_RBP, 0) },
	  .rbp = STACK - 0x10000,
	  .frames = { { PC(0) | X, 0 } },
	  .stop = COUNT_STACK_READ },
	{ .name = "a PLT entry before its push",
	  .rules = { RULE(PLT, UNWIND_REG_RSP, 8, .cfa_add = 11), END },
	  .pc = CODE + 10,
	  .stack = { PC(1), PC(2) },
	  .frames = { { (CODE + 10) | X, AT(1) }, { PC(1), AT(1) } } },
	{ .name = "a PLT entry behind its push",
	  .rules = { RULE(PLT, UNWIND_REG_RSP, 8, .cfa_add = 11), END, END },
	  .pc = CODE + 11,
	  .stack = { 3, PC(2) },
	  .frames = { { (CODE + 11) | X, AT(2) }, { PC(2), AT(2) } } },
	{ .name = "the CFA does not grow",
	  .rules = { RSP(8), RSP(0) },
	  .stack = { PC(1) },
	  .frames = { { PC(0) | X, AT(1) }, { PC(1), AT(1) } },
	  .stop = COUNT_NOT_GROWING },
	{ .name = "the CFA is on a lower stack, which is not there",
	  .rules = { RBP(0) },
	  .rbp = STACK - 8,
	  .frames = { { PC(0) | X, STACK - 8 } },
	  .stop = COUNT_STACK_READ },
	{ .name = "the caller is on a lower stack, as another register has it",
	  .rules = { RSP(160), RBP(16), RSP(8), END },
	  .rbp = AT(4),
	  .stack = { [5] = PC(2), [6] = PC(3), [19] = PC(1) },
	  .frames = { { PC(0) | X, AT(20) },
		      { PC(1), AT(6) },
		      { PC(2), AT(7) },
		      { PC(3), AT(7) } } },
	{ .name = "... and so on for ever",
	  .rules = { RSP(160), RULE(DEREF, UNWIND_REG_RBP, 0, .cfa_add = -160), RSP(320) },
	  .rbp = AT(1),
	  .stack = { [1] = AT(24), [3] = PC(1), [19] = PC(1) },
	  .frames = { { PC(0) | X, AT(20) }, { PC(1), AT(4) }, { PC(1), AT(4) } },
	  .stop = COUNT_NOT_GROWING },
	{ .name = "the CFA is not aligned",
	  .rules = { RSP(12) },
	  .frames = { { PC(0) | X, STACK + 12 } },
	  .stop = COUNT_STACK_READ },
	{ .name = "a rule too complex for the table",
	  .rules = { RSP(8), RULE(UNSUPPORTED, UNWIND_REG_RSP, 0) },
	  .stack = { PC(1) },
	  .frames = { { PC(0) | X, AT(1) }, { PC(1), 0 } },
	  .stop = COUNT_UNSUPPORTED },
	{ .name = "the caller is on another stack, which the thread's data leads to",
	  .rules = { RSP(8), RULE(SWITCH, 3, AT(20), .cfa_add = HOPS(1, 2, 3, 2)), END },
	  .stack = { PC(1), [20] = AT(21), [22] = AT(24), [26] = AT(28), [31] = AT(35),
		     [36] = PC(2) },
	  .frames = { { PC(0) | X, AT(1) }, { PC(1), AT(37) }, { PC(2), AT(37) } } },
	{ .name = "... and so is where it goes on",
	  .rules = { RSP(8),
		     RULE(SWITCH, 1, AT(20), .cfa_add = HOPS(2, 0, 0, 0),
			  .flags = UNWIND_PC_FOLLOWS),
		     END },
	  .stack = { PC(1), [20] = AT(21), [23] = AT(35), PC(2) },
	  .frames = { { PC(0) | X, AT(1) }, { PC(1), AT(35) }, { PC(2), AT(35) } } },
	{ .name = "... and below this one",
	  .rules = { RSP(160), RULE(SWITCH, 0, AT(30), .cfa_add = HOPS(0, 0, 0, 1)), END },
	  .stack = { [2] = PC(2), [19] = PC(1), [30] = AT(2) },
	  .frames = { { PC(0) | X, AT(20) }, { PC(1), AT(3) }, { PC(2), AT(3) } } },
	{ .name = "no other stack: the end",
	  .rules = { RSP(8), RULE(SWITCH, 2, AT(20), .cfa_add = HOPS(1, 2, 0, 0)) },
	  .stack = { PC(1), [20] = AT(21), [22] = 0 },
	  .frames = { { PC(0) | X, AT(1) }, { PC(1), AT(2) } } },
	{ .name = "what leads to another stack cannot be read",
	  .rules = { RSP(8), RULE(SWITCH, 1, AT(20)) },
	  .stack = { PC(1), [20] = 0x1234 },
	  .frames = { { PC(0) | X, AT(1) }, { PC(1), 0 } },
	  .stop = COUNT_STACK_READ },
	{ .name = "switches that nest: each stack has the pointer of the one before",
	  .rules = { RSP(8),
		     RULE(SWITCH, 1, AT(20), .cfa_add = HOPS(0, 0, 0, 2), .flags = UNWIND_CHAINED),
		     END },
	  .stack = { PC(1), [10] = AT(30), [11] = PC(1), [20] = AT(21), [21] = AT(10),
		     [31] = PC(2) },
	  .frames = { { PC(0) | X, AT(1) },
		      { PC(1), AT(12) },
		      { PC(1), AT(32) },
		      { PC(2), AT(32) } } },
	{ .name = "... and one that is published before its switch is not followed",
	  .rules = { RSP(16, .flags = UNWIND_CHAINED),
		     RULE(SWITCH, 1, AT(20), .cfa_add = HOPS(0, 0, 0, 2), .flags = UNWIND_CHAINED),
		     END },
	  .stack = { AT(10), PC(1), [11] = PC(2), [20] = AT(21), [21] = STACK },
	  .frames = { { PC(0) | X, AT(2) }, { PC(1), AT(12) }, { PC(2), AT(12) } } },
	{ .name = "... and one below the frame that has left that stack is of another call",
	  .rules = { RSP(24), RULE(RESUME, 0, 16, .cfa_add = HOPS(0, 0, 0, 1)),
		     RULE(SWITCH, 1, AT(20), .cfa_add = HOPS(0, 0, 0, 2),
			  .flags = UNWIND_CHAINED) },
	  .stack = { [2] = PC(1),
		     [4] = 24,
		     AT(22),
		     [20] = AT(21),
		     [21] = AT(1),
		     [23] = AT(38),
		     [35] = PC(2) },
	  .frames = { { PC(0) | X, AT(3) }, { PC(1), AT(36) }, { PC(2), 0 } },
	  .stop = COUNT_NOT_GROWING },
	{ .name = "the frame has how deep the other stack was",
	  .rules = { RSP(8), RULE(RESUME, 0, 16, .cfa_add = HOPS(0, 0, 0, 1)), END },
	  .stack = { PC(1), [2] = 24, AT(20), [21] = AT(38), [35] = PC(2) },
	  .frames = { { PC(0) | X, AT(1) }, { PC(1), AT(36) }, { PC(2), AT(36) } } },
	{ .name = "... or its pointer",
	  .rules = { RSP(8), RULE(RESUME, 0, 16, .cfa_add = HOPS(0, 0, 0, 1)), END },
	  .stack = { PC(1), [2] = AT(35), 0, [35] = PC(2) },
	  .frames = { { PC(0) | X, AT(1) }, { PC(1), AT(36) }, { PC(2), AT(36) } } },
	{ .name = "the return address is 0",
	  .rules = { RSP(8) },
	  .frames = { { PC(0) | X, AT(1) } },
	  .stop = COUNT_ZERO_RETURN },
	{ .name = "the return address is nowhere",
	  .rules = { RSP(8) },
	  .stack = { 0x1234 },
	  .frames = { { PC(0) | X, AT(1) } },
	  .stop = COUNT_UNMAPPED_PC },
	{ .name = "no table: frame pointers",
	  .pc = JIT + 1,
	  .rbp = AT(2),
	  .stack = { [2] = AT(6), JIT + 8, [6] = 0, PC(1) },
	  .rules = { END, END },
	  .frames = { { (JIT + 1) | X, AT(4) },
		      { (JIT + 8) | FP, AT(8) },
		      { PC(1) | FP, AT(8) } } },
	{ .name = "no table: a return address below rbp, which is that of a caller",
	  .pc = JIT + 1,
	  .rbp = AT(2),
	  .stack = { [1] = JIT + 9, [2] = AT(6), JIT + 8, [6] = 0, PC(1) },
	  .rules = { END, END },
	  .frames = { { (JIT + 1) | X, 0 } },
	  .stop = COUNT_UNPROVEN },
	{ .name = "no table: rbp 0 proves no end",
	  .pc = JIT + 1,
	  .rbp = AT(2),
	  .stack = { [2] = 0, JIT + 8 },
	  .frames = { { (JIT + 1) | X, AT(4) }, { (JIT + 8) | FP, 0 } },
	  .stop = COUNT_ZERO_POINTER },
	{ .name = "no table: rbp 0 in the innermost frame means nothing",
	  .pc = JIT + 1,
	  .frames = { { (JIT + 1) | X, 0 } },
	  .stop = COUNT_NO_RULE },
	{ .name = "no table: rbp not aligned",
	  .pc = JIT + 1,
	  .rbp = AT(2) + 1,
	  .frames = { { (JIT + 1) | X, 0 } },
	  .stop = COUNT_NO_RULE },
	{ .name = "no table, and rbp is lost",
	  .rules = { RSP(16, .fp_words = UNWIND_WORDS_LOST) },
	  .rbp = AT(8),
	  .stack = { [1] = JIT + 8 },
	  .frames = { { PC(0) | X, AT(2) }, { JIT + 8, 0 } },
	  .stop = COUNT_NO_RULE },
};

static bool check_frames(const uint64_t frames[][2], int max, enum counter stop)
{
	int n = 0, bad = 0;

	for (; n < max && frames[n][0]; n++) {
		if (n >= host.sample.head.n_native ||
		    (sample__ip(n) == frames[n][0] && sample__cfa(n) == frames[n][1]))
			continue;
		bad++;
		tap__diag("frame %d: %#llx %#llx, want %#llx %#llx", n,
			  (unsigned long long)sample__ip(n), (unsigned long long)sample__cfa(n),
			  (unsigned long long)frames[n][0], (unsigned long long)frames[n][1]);
	}
	if (host.sample.head.n_native == n && host.sample.head.stop == stop && !bad)
		return true;
	tap__diag("%d frames, want %d; stop %d, want %d", host.sample.head.n_native, n,
		  host.sample.head.stop, stop);
	return false;
}

static void test_unwinding(const struct unwinding *test)
{
	uint64_t before;
	bool complete;

	reset();
	set_rules(test->rules);
	memset(jit_code, CALL_CODE, sizeof(jit_code));
	memcpy(stack, test->stack, sizeof(test->stack));
	regs[UNWIND_REG_PC] = test->pc ? test->pc : PC(0);
	regs[UNWIND_REG_RBP] = test->rbp;
	regs[UNWIND_REG_RBX] = test->rbx;
	regs[10] = test->r10;
	before = counted(test->stop);
	sampler__run(regs);
	complete = host.sample.head.flags & SAMPLE_COMPLETE;
	ok(check_frames(test->frames, ARRAY_SIZE(test->frames), test->stop) &&
		   complete == !test->stop && (!test->stop || counted(test->stop) == before + 1),
	   "%s", test->name);
}

/* --- signals: the handler's frame returns to the trampoline, on a stack of its own --- */

#define SIGRETURN 0x0f0000000fc0c748ULL /* mov $15,%rax; syscall */
#define CS	  0x002b000000000033ULL /* ss, fs, gs, cs */

static void put_ucontext(int at, uint64_t pc, uint64_t rsp, uint64_t rbp, uint64_t r10)
{
	stack[at + 5 + 2] = r10;
	stack[at + 5 + 10] = rbp;
	stack[at + 5 + 15] = rsp;
	stack[at + 5 + 16] = pc;
	stack[at + 5 + 18] = CS;
}

static void test_signals(void)
{
	static const struct unwind_rule rules[CODE_PAGES] = { RSP(8),
							      RULE(SIGNAL, UNWIND_REG_RSP, 0),
							      RULE(REG, REG_R10, 8), END };
	static const uint64_t by_table[][2] = { { PC(0) | X, AT(101) },
						{ PC(1) | X, AT(10) },
						{ PC(2) | X, AT(13) },
						{ PC(3), AT(13) } };
	static const uint64_t by_code[][2] = { { PC(0) | X, AT(101) },
					       { JIT | X, AT(10) },
					       { PC(2) | X, AT(13) },
					       { PC(3), AT(13) } };

	for (int from_code = 0; from_code < 2; from_code++) {
		reset();
		set_rules(rules);
		memcpy(jit_code, &(uint64_t) { SIGRETURN }, 8);
		regs[UNWIND_REG_RSP] = AT(100); /* above the interrupted stack */
		regs[UNWIND_REG_RBP] = AT(200); /* valid as a frame pointer */
		stack[100] = from_code ? JIT : PC(1);
		put_ucontext(101, PC(2), AT(10), 0, AT(12));
		stack[12] = PC(3);
		sampler__run(regs);
		ok(check_frames(from_code ? by_code : by_table, 4, COUNT_NONE),
		   "signal frame known by its %s", from_code ? "code" : "rule");
	}
	stack[101 + 5 + 18] = 0; /* no kernel writes this value */
	sampler__run(regs);
	ok(host.sample.head.n_native == 1 && host.sample.head.stop == COUNT_NO_CALL,
	   "a trampoline's code alone");
	regs[UNWIND_REG_RSP] = AT(0); /* the interrupted stack follows at once */
	stack[0] = PC(1);
	put_ucontext(1, PC(2), AT(30), 0, AT(32));
	stack[32] = PC(3);
	sampler__run(regs);
	ok(host.sample.head.n_native == 4 && sample__ip(3) == PC(3), "signal on the same stack");
	regs[UNWIND_REG_RSP] = AT(100);
	host.ranges[0].size = 8 * 110; /* the ucontext is incomplete */
	sampler__run(regs);
	is_int(host.sample.head.stop, COUNT_STACK_READ, "cut signal frame");
}

/* Each register of the interrupted frame has its own value: the CFA uses one after the other. */
static void test_signal_registers(void)
{
	/* DWARF's numbers, in the order of the ucontext */
	static const unsigned char saved[] = { 8, 9, 10, 11, 12, 13, 14, 15,
					       5, 4, 6,	 3,  1,	 0,  2,	 UNWIND_REG_RSP };
	struct unwind_rule rules[CODE_PAGES] = { RSP(8), RULE(SIGNAL, UNWIND_REG_RSP, 0), RSP(8),
						 END };
	int n = ARRAY_SIZE(saved), good = 0;

	for (int i = 0; i < n; i++) {
		uint64_t cfa = i == n - 1 ? AT(11) : AT(13 + 2 * i);
		uint64_t frames[][2] = { { PC(0) | X, AT(101) },
					 { PC(1) | X, AT(10) },
					 { PC(2) | X, cfa },
					 { PC(3), cfa } };

		rules[2].reg = saved[i];
		reset();
		set_rules(rules);
		regs[UNWIND_REG_RSP] = AT(100);
		stack[100] = PC(1);
		for (int slot = 0; slot < n; slot++)
			stack[106 + slot] = AT(12 + 2 * slot);
		stack[106 + n - 1] = AT(10);
		stack[106 + n] = PC(2);
		stack[(cfa - AT(0)) / 8 - 1] = PC(3);
		sampler__run(regs);
		good += check_frames(frames, ARRAY_SIZE(frames), COUNT_NONE);
	}
	is_int(good, n, "registers that a signal's frame has saved");
}

/* The program's first frame: code without a table, on the stack that the kernel made. Functions
 * that it called may have overwritten rbp. */
static void test_first_frame(void)
{
	static const struct unwind_rule lost[CODE_PAGES] = { { .kind = UNWIND_REG,
							       .reg = UNWIND_REG_RSP,
							       .cfa_off = 16,
							       .fp_words = UNWIND_WORDS_LOST,
							       .aux_words = UNWIND_WORDS_SAME } };
	uint64_t frames[][2] = { { JIT | X, AT(7) } };
	uint64_t below[][2] = { { PC(0) | X, AT(7) }, { JIT + 8, AT(7) } };

	reset();
	regs[UNWIND_REG_PC] = JIT;
	regs[UNWIND_REG_RSP] = AT(7);
	sampler__memory.start_stack = AT(7);
	sampler__run(regs);
	ok(check_frames(frames, 1, COUNT_NONE), "a program's first frame");
	regs[UNWIND_REG_RSP] = AT(6);
	sampler__run(regs);
	is_int(host.sample.head.stop, COUNT_NO_RULE, "not so with anything on the stack");
	set_rules(lost);
	regs[UNWIND_REG_PC] = PC(0);
	regs[UNWIND_REG_RSP] = AT(5);
	stack[6] = JIT + 8;
	memset(jit_code, CALL_CODE, 8);
	sampler__run(regs);
	ok(check_frames(below, 2, COUNT_NONE), "a program's first frame has called another");
	sampler__memory.start_stack = AT(8);
	sampler__run(regs);
	is_int(host.sample.head.stop, COUNT_NO_RULE, "not so from another stack pointer");
	sampler__memory.start_stack = 0;
}

/* --- many frames --- */

static void test_depth(int n, bool complete)
{
	static const struct unwind_rule rules[CODE_PAGES] = { RSP(16), END };

	reset();
	set_rules(rules);
	for (int i = 0; i < n - 1; i++)
		stack[2 * i + 1] = i == n - 2 ? PC(1) : PC(0);
	sampler__run(regs);
	is_int(host.sample.head.n_native, NATIVE_FRAMES_MAX, "stack of %d frames: so many", n);
	is_int(host.sample.head.flags, complete ? SAMPLE_COMPLETE : SAMPLE_NATIVE_TRUNCATED,
	       "stack of %d frames: flags", n);
	is_int(host.sample.head.stop, complete ? COUNT_NONE : COUNT_TRUNCATED,
	       "stack of %d frames: reason", n);
	is_int(sample__cfa(NATIVE_FRAMES_MAX - 1), AT(2 * NATIVE_FRAMES_MAX - (complete ? 2 : 0)),
	       "stack of %d frames: last CFA", n);
}

/* --- missing memory --- */

/* Writes a stack of frames of different sizes. Each one saves both registers; the words are
 * numbered. */
static void put_long_stack(int n)
{
	static const struct unwind_rule rules[CODE_PAGES] = {
		RSP(24, .fp_words = -2, .aux_words = -3),
		RSP(600, .fp_words = -2, .aux_words = -3),
		RSP(32, .fp_words = -4, .aux_words = -2),
		[5] = END,
	};
	static const int words[] = { 3, 75, 4 };
	int at = 0;

	set_rules(rules);
	for (int i = 0; i < n; i++) {
		at += words[i % 3];
		stack[at - 1] = i == n - 1 ? PC(5) : PC((i + 1) % 3);
	}
}

/* Checks that the sample has all frames whose words are readable, and the first one beyond. @shift
 * is the distance between the whole stack and this one. */
static bool check_prefix(const struct host_sample *whole, uint64_t shift, uint64_t end)
{
	const struct rec_sample *got = &host.sample.head;
	int n = 0;

	while (n < whole->head.n_native && whole->words[2 * n + 1] + shift <= end) {
		if (n >= got->n_native || sample__ip(n) != whole->words[2 * n] ||
		    sample__cfa(n) != whole->words[2 * n + 1] + shift)
			return false;
		n++;
	}
	if (n == whole->head.n_native)
		return !got->stop && got->n_native == n;
	return got->stop == COUNT_STACK_READ && got->n_native == n + 1;
}

static void test_ends(void)
{
	static struct host_sample whole;
	int bad = 0;

	reset();
	put_long_stack(30);
	sampler__run(regs);
	whole = host.sample;
	is_int(whole.head.n_native, 31, "long stack: all frames");
	for (int words = 0; words < 900; words++) { /* memory always ends at the end of a page */
		uint64_t start = STACK + 4 * PAGE_BYTES - words * 8;

		host.ranges[0] = (struct host_range) { start, words * 8, stack };
		regs[UNWIND_REG_RSP] = start;
		sampler__run(regs);
		bad += !check_prefix(&whole, start - STACK, start + words * 8);
	}
	is_int(bad, 0, "long stack that ends at any word: all frames up to there");
}

/* A stack that ends with a page, and one that begins with a page; then every place in a page. */
static void test_page_ends(void)
{
	static const struct unwind_rule rules[CODE_PAGES] = { RSP(16, .fp_words = -2),
							      RBP(16, .fp_words = -2), END };
	static const uint64_t want[][2] = { { PC(0) | X, AT(2) },
					    { PC(1), AT(5) },
					    { PC(2), AT(5) } };
	int bad = 0;

	for (uint64_t at = STACK; at < STACK + PAGE_BYTES; at += 8) {
		uint64_t shifted[3][2];

		reset();
		set_rules(rules);
		memcpy(stack, (uint64_t[]) { at + 24, PC(1), 0, 7, PC(2) }, 40);
		memcpy(shifted, want, sizeof(want));
		for (int i = 0; i < 3; i++)
			shifted[i][1] += at - STACK;
		regs[UNWIND_REG_RSP] = at;
		host.ranges[0].start = at; /* no memory below */
		host.ranges[0].size = 40;
		if (at + 40 < STACK + PAGE_BYTES)
			host.ranges[0].size = STACK + PAGE_BYTES - at;
		sampler__run(regs);
		bad += !check_frames(shifted, 3, COUNT_NONE);
	}
	is_int(bad, 0, "short stack in the last words of a page, wherever it begins");
}

/* A fiber's stack may begin with the address of code that ends the program and has no caller. This
 * code has no table, or lies behind a function that ends the stack. */
static void test_never_returns(void)
{
	static const struct unwind_rule rules[CODE_PAGES] = { RSP(8), END, {} };
	static const struct {
		const char *name;
		char bytes[16];
		bool ends;
	} codes[] = {
		{ "call, hlt", "\xe8\1\0\0\0\xf4", true },
		{ "xor %edi,%edi; call; hlt", "\x31\xff\xe8\1\0\0\0\xf4", true },
		{ "xor %rdi,%rdi; call; hlt", "\x48\x31\xff\xe8\1\0\0\0\xf4", true },
		{ "endbr64; call; hlt", "\xf3\x0f\x1e\xfa\xe8\1\0\0\0\xf4", true },
		{ "endbr64; xor %rdi,%rdi; call; hlt",
		  "\xf3\x0f\x1e\xfa\x48\x31\xff\xe8\1\0\0\0\xf4", true },
		{ "endbr64; xor %edi,%edi; call *x(%rip); hlt",
		  "\xf3\x0f\x1e\xfa\x31\xff\xff\x15\1\0\0\0\xf4", true },
		{ "endbr64; call; ret", "\xf3\x0f\x1e\xfa\xe8\1\0\0\0\xc3", false },
		{ "endbr64; endbr64; call; hlt", "\xf3\x0f\x1e\xfa\xf3\x0f\x1e\xfa\xe8\1\0\0\0\xf4",
		  false },
		{ "endbr64; hlt", "\xf3\x0f\x1e\xfa\xf4", false },
	};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(codes); i++) {
		bool in_jit = i % 2, ends = codes[i / 2].ends;
		char *code = in_jit ? jit_code + 16 : code_bytes + 2 * UNWIND_PAGE_BYTES;
		uint64_t pc = in_jit ? JIT + 16 : CODE + 2 * UNWIND_PAGE_BYTES;

		reset();
		set_rules(rules);
		memset(code_bytes, 0x90, sizeof(code_bytes));
		memset(jit_code, 0x90, sizeof(jit_code));
		memcpy(code, codes[i / 2].bytes, sizeof(codes[0].bytes));
		stack[0] = pc;
		sampler__run(regs);
		ok(host.sample.head.n_native == 1 + ends &&
			   host.sample.head.stop == (ends ? COUNT_NONE : COUNT_NO_CALL) &&
			   !(host.sample.head.flags & SAMPLE_COMPLETE) == !ends &&
			   (!ends || sample__ip(1) == pc),
		   "%s, %s", codes[i / 2].name, in_jit ? "without a table" : "behind a function");
	}
}

int main(void)
{
	sampler__open();
	for (size_t i = 0; i < ARRAY_SIZE(unwindings); i++)
		test_unwinding(&unwindings[i]);
	test_signals();
	test_never_returns();
	test_signal_registers();
	test_first_frame();
	test_depth(NATIVE_FRAMES_MAX, true);
	test_depth(NATIVE_FRAMES_MAX + 1, false);
	test_ends();
	test_page_ends();
	sampler__close();
	return tap__done();
}
