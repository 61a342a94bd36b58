// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel half's unwinder in code from a runtime's compiler. Tests stacks of CRuby's YJIT, with
 * and without frame pointers, and of CPython's JIT, at each interrupted place of its code. */
#include "core/base/util.h"
#include "tests/tap.h"

#include "tests/unit/synthetic.h"

#include "bpf/ruby_procs.bpf.h"

/* Caller of the compiled code: pages 1 and 2 of the code. */
#define LOOP	   PC(1)
#define LOOP_START (CODE + 0x100)
#define LOOP_BYTES 0x200

#define X     NATIVE_EXACT
#define RBP_0 AT(200) /* the caller's registers */
#define RBX_0 AT(100)
#define VALUE 0x7f1234567008ULL /* a value of Ruby's */

/* The loop needs rbx for its CFA, and the loop's caller needs rbp. */
static const struct unwind_rule rules[CODE_PAGES] = { END, RBX(16), RBX(16), RBP(16), END };

static void reset_jit(void)
{
	struct mapping_rec *jit;

	reset();
	set_rules(rules);
	jit = &sampler__mappings()->lists[0].mappings[1];
	jit->callers.start = LOOP_START;
	jit->callers.bytes = LOOP_BYTES;
	jit->callers.walkers = 1U << WALKER_RUBY;
	regs[UNWIND_REG_PC] = JIT + 8;
	regs[UNWIND_REG_RBP] = RBP_0;
	regs[UNWIND_REG_RBX] = RBX_0;
	stack[101] = PC(3);
	stack[201] = PC(4);
}

/* Enters compiled code that has done the first @n pushes of its entry, then @more around a call.
 * @pointers: the code has frame pointers. Returns the index of the word behind the return address.
 */
static int enter(int n, int more, bool pointers)
{
	static const uint64_t plain[] = { VALUE, VALUE, RBX_0 };
	static const uint64_t framed[] = { RBP_0, RBP_0, VALUE, VALUE, RBX_0 };
	int at = n + more;

	stack[at] = LOOP + 1;
	for (int i = 0; i < n; i++)
		stack[at - 1 - i] = pointers ? framed[i] : plain[i];
	for (int i = 0; i < more; i++)
		stack[i] = VALUE + i;
	if (n == (pointers ? 5 : 3))
		regs[UNWIND_REG_RBX] = VALUE;
	if (pointers && n)
		regs[UNWIND_REG_RBP] = AT(at - 1);
	return at + 1;
}

/* Returns true if the callers of the compiled frame, which is frame @n, are right. */
static bool has_callers(int n)
{
	return has_frame(n, LOOP + 1, AT(102)) && has_frame(n + 1, PC(3), AT(202)) &&
	       has_frame(n + 2, PC(4), AT(202)) && host.sample.head.n_native == n + 3 &&
	       !host.sample.head.stop;
}

static void test_prologue(bool pointers)
{
	int pushes = pointers ? 5 : 3, end;

	for (int n = 0; n <= pushes; n++) {
		reset_jit();
		end = enter(n, 0, pointers);
		sampler__run(regs);
		ok(has_frame(0, (JIT + 8) | X, AT(end)) && has_callers(1),
		   "%s frame pointers, after %d pushes", pointers ? "with" : "without", n);
	}
}

static void test_calls(bool pointers)
{
	static const int more[] = { 0, 1, 7, 18 };
	int pushes = pointers ? 5 : 3, end;

	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		reset_jit();
		end = enter(pushes, more[i], pointers);
		sampler__run(regs);
		ok(has_frame(0, (JIT + 8) | X, AT(end)) && has_callers(1),
		   "%s frame pointers, with %d words more", pointers ? "with" : "without", more[i]);
	}
}

/* Called code without a table of its own: only the stack pointer remains. */
static void test_called(void)
{
	static const struct unwind_rule lost[] = { RSP(16, .fp_words = UNWIND_WORDS_LOST,
						       .aux_words = UNWIND_WORDS_LOST) };
	struct unwind_rule all[CODE_PAGES];

	reset_jit();
	memcpy(all, rules, sizeof(all));
	all[0] = lost[0];
	all[2] = all[1] = (struct unwind_rule)END;
	set_rules(all);
	regs[UNWIND_REG_PC] = PC(0);
	stack[1] = JIT + 9;
	stack[5] = LOOP + 1;
	sampler__run(regs);
	ok(has_frame(0, PC(0) | X, AT(2)) && has_frame(1, JIT + 9, AT(6)) &&
		   has_frame(2, LOOP + 1, AT(6)) && host.sample.head.n_native == 3,
	   "compiled code that called something");
}

/* Where the words do not prove the caller, the frame pointer may. */
static void test_no_caller(void)
{
	reset_jit();
	enter(3, 24 - 3, false);
	regs[UNWIND_REG_RBP] = AT(50);
	stack[50] = 0;
	stack[51] = PC(1);
	sampler__run(regs);
	is_int(host.sample.head.stop, COUNT_UNPROVEN, "too far up the stack");
	reset_jit();
	stack[3] = LOOP_START - 1;
	stack[4] = LOOP_START + LOOP_BYTES;
	regs[UNWIND_REG_RBP] = 0;
	sampler__run(regs);
	is_int(host.sample.head.stop, COUNT_NO_RULE, "other code next to the loop does not count");
	reset_jit();
	stack[3] = LOOP_START;
	stack[4] = LOOP_START + LOOP_BYTES - 1;
	sampler__run(regs);
	ok(has_frame(0, (JIT + 8) | X, AT(4)), "the first that does is taken");
	reset_jit();
	enter(3, 0, false);
	host.ranges[0].size = 8 * 23;
	regs[UNWIND_REG_RBP] = 0;
	sampler__run(regs);
	is_int(host.sample.head.stop, COUNT_NO_RULE, "a stack that cannot be read");
	reset_jit();
	enter(3, 0, false);
	sampler__mappings()->lists[0].mappings[1].callers.walkers = 0;
	regs[UNWIND_REG_RBP] = AT(50);
	stack[51] = 0;
	sampler__run(regs);
	is_int(host.sample.head.stop, COUNT_UNPROVEN, "a process whose runtime has no compiler");
}

/* --- CPython's JIT --- */

/* Tools/jit/shim.c of CPython 3.14.7 as clang 19 compiles it, by its instructions. */
static const struct {
	const char *bytes;
	int n, saved; /* words on the stack before it */
} shim[] = {
	{ "\x41\x57", 2, 0 },	  { "\x41\x56", 2, 1 },	    { "\x41\x55", 2, 2 },
	{ "\x41\x54", 2, 3 },	  { "\x53", 1, 4 },	    { "\x49\x89\xfc", 3, 5 },
	{ "\x49\x89\xf5", 3, 5 }, { "\x49\x89\xd6", 3, 5 }, { "\xe8\x0a\0\0\0", 5, 5 },
	{ "\x5b", 1, 5 },	  { "\x41\x5c", 2, 4 },	    { "\x41\x5d", 2, 3 },
	{ "\x41\x5e", 2, 2 },	  { "\x41\x5f", 2, 1 },	    { "\xc3", 1, 0 },
};
#define SHIM_BACK (JIT + 0x17) /* return address of its call */
#define PIECE	  (JIT + 0x21)

static void reset_shim(void)
{
	size_t at = 0;

	reset_jit();
	sampler__mappings()->lists[0].mappings[1].callers.walkers = 1U << WALKER_PYTHON;
	for (size_t i = 0; i < ARRAY_SIZE(shim); at += shim[i++].n)
		memcpy(jit_code + at, shim[i].bytes, shim[i].n);
}

/* Makes the loop call the shim: its return address, and @saved words that the shim saves below, up
 * to word @at (exclusive). */
static void put_shim(int at, int saved)
{
	static const uint64_t words[] = { VALUE, VALUE, SHIM_BACK, VALUE, RBX_0 };

	stack[at - 1] = LOOP + 1;
	for (int i = 0; i < saved; i++)
		stack[at - 2 - i] = words[i];
}

static void test_shim(void)
{
	uint64_t pc = JIT;

	for (size_t i = 0; i < ARRAY_SIZE(shim); pc += shim[i++].n) {
		reset_shim();
		put_shim(1 + shim[i].saved, shim[i].saved);
		regs[UNWIND_REG_PC] = pc;
		if (shim[i].saved == 5)
			regs[UNWIND_REG_RBX] = VALUE;
		sampler__run(regs);
		ok(has_frame(0, pc | X, AT(1 + shim[i].saved)) && has_callers(1),
		   "CPython: the shim, instruction %zu", i);
	}
}

/* Tests a piece with @own words on the stack, which uses rbp or not. */
static void test_piece(int own, bool rbp)
{
	int end = own + 7;

	reset_shim();
	put_shim(end, 5);
	stack[own] = SHIM_BACK;
	for (int i = 0; i < own; i++) /* leftovers of other calls */
		stack[i] = i % 3 == 0 ? LOOP + 1 : i % 3 == 1 ? SHIM_BACK : VALUE;
	if (rbp) {
		stack[own - 1] = RBP_0;
		regs[UNWIND_REG_RBP] = VALUE;
	}
	/* page 1, the loop, has its CFA relative to rbp; its callers are unchanged */
	regs[UNWIND_REG_PC] = PIECE;
	regs[UNWIND_REG_RBX] = VALUE;
	sampler__run(regs);
	ok(has_frame(0, PIECE | X, AT(end)) && has_callers(1), "CPython: %d words, rbp is %s", own,
	   rbp ? "saved" : "left alone");
}

/* The block of stack memory read for the inner frame ends within the piece's frame. */
static void test_called_piece(void)
{
	struct unwind_rule all[CODE_PAGES];

	reset_shim();
	memcpy(all, rules, sizeof(all));
	all[0] = (struct unwind_rule)RSP(16);
	all[5] = (struct unwind_rule)RSP(8 * 39);
	set_rules(all);
	stack[1] = PC(5);
	stack[40] = PIECE + 1;
	put_shim(41 + 27, 5);
	stack[41 + 20] = SHIM_BACK;
	regs[UNWIND_REG_PC] = PC(0);
	sampler__run(regs);
	ok(has_frame(1, PC(5), AT(41)) && has_frame(2, PIECE + 1, AT(68)) && has_callers(3),
	   "CPython: a piece that called something");
}

static void test_no_shim(void)
{
	reset_shim();
	put_shim(7, 5);
	stack[0] = SHIM_BACK + 1;
	regs[UNWIND_REG_PC] = PIECE;
	regs[UNWIND_REG_RBP] = 0;
	sampler__run(regs);
	is_int(host.sample.head.stop, COUNT_NO_RULE, "CPython: a return to elsewhere is none");
	reset_shim();
	put_shim(7, 5);
	stack[0] = SHIM_BACK;
	sampler__mappings()->lists[0].mappings[1].callers.walkers = 0;
	regs[UNWIND_REG_PC] = PIECE;
	regs[UNWIND_REG_RBP] = 0;
	sampler__run(regs);
	ok(has_frame(0, PIECE | X, AT(1)) && NATIVE_ADDRESS(sample__ip(1)) == SHIM_BACK &&
		   sample__cfa(1) == AT(7) && sample__ip(2) == LOOP + 1,
	   "CPython: a build without a compiler, but the code says how it is left");
}

/* The walker must distinguish compiled code from other code. */
static void test_runtime_frames(void)
{
	struct ruby_proc_rec rec = { .zjit_at = 0 }, *proc;
	uint32_t key = SPACE;

	bpf_map_update_elem(&ruby_procs, &key, &rec, 0);
	proc = bpf_map_lookup_elem(&ruby_procs, &key);
	reset_jit();
	enter(3, 0, false);
	regs[UNWIND_REG_PC] = PC(3);
	sampler__run(regs);
	ok(!proc->jit_end, "no compiled code so far");
	regs[UNWIND_REG_PC] = JIT + 8;
	sampler__run(regs);
	ok(proc->jit_start <= JIT + 8 && proc->jit_end > JIT + 8 &&
		   (LOOP < proc->jit_start || LOOP >= proc->jit_end),
	   "the compiled code is noted");
}

int main(void)
{
	sampler__open();
	HOST_HASH(ruby_procs, 4);
	test_runtime_frames();
	for (int pointers = 0; pointers < 2; pointers++) {
		test_prologue(pointers);
		test_calls(pointers);
	}
	test_called();
	test_no_caller();
	test_shim();
	for (int own = 0; own < 22; own += 3)
		for (int rbp = 0; rbp <= (own > 0); rbp++)
			test_piece(own, rbp);
	test_called_piece();
	test_no_shim();
	sampler__close();
	return tap__done();
}
