// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel half's unwinder in code of CRuby's ZJIT, which maintains frame pointers, at each
 * interrupted place. */
#include "core/base/util.h"
#include "tests/tap.h"

#include "tests/unit/synthetic.h"

#include "bpf/ruby_procs.bpf.h"

#define X	   NATIVE_EXACT
#define BY_POINTER ((__u64)EVIDENCE_FRAME_POINTER << NATIVE_EVIDENCE_SHIFT)
#define GUESSED	   ((__u64)EVIDENCE_INFERRED << NATIVE_EVIDENCE_SHIFT)
#define REG_CFP	   13
#define JIT_RETURN 48
#define LOOP	   PC(1) /* address in the interpreter, which calls compiled code */
#define ENTRY_AT   2000	 /* words of the stack with rb_zjit_entry, and with a control frame */
#define CFP	   2010
#define FRAME	   20 /* rbp of the innermost compiled function */
#define CALLER	   40 /* rbp of its caller */
#define IN_LOOP	   60

static const struct unwind_rule rules[CODE_PAGES] = { END, RSP(16), RSP(16), END };

static void set_process(uint64_t entry, uint32_t jit_return)
{
	struct ruby_proc_rec rec = { .offsets.jit_return = jit_return, .zjit_at = AT(ENTRY_AT) };
	uint32_t space = SPACE;

	stack[ENTRY_AT] = entry;
	bpf_map_update_elem(&ruby_procs, &space, &rec, 0);
}

/* Resets to a stack in which the loop called compiled code, and that called other compiled code.
 * Leftover addresses of earlier calls are below. */
static void reset_zjit(void)
{
	struct mapping_rec *jit;

	reset();
	set_rules(rules);
	set_process(JIT + 0x20, JIT_RETURN);
	jit_code[0x7c] = (char)CALL_CODE;
	jit = &sampler__mappings()->lists[0].mappings[1];
	jit->callers.start = CODE + 0x100;
	jit->callers.bytes = 0x100;
	jit->callers.walkers = 1U << WALKER_RUBY;
	for (int i = 0; i < FRAME; i++)
		stack[i] = i & 1 ? LOOP : JIT + 0x90;
	stack[FRAME] = AT(CALLER);
	stack[FRAME + 1] = JIT + 0x81;
	stack[CALLER] = AT(IN_LOOP);
	stack[CALLER + 1] = LOOP;
	stack[CALLER + 3] = PC(3);
	regs[UNWIND_REG_PC] = JIT + 0x40;
	regs[UNWIND_REG_RBP] = AT(FRAME);
	regs[REG_CFP] = AT(CFP);
	stack[CFP + JIT_RETURN / 8] = AT(FRAME);
}

/* Returns true if the caller, found with @evidence, and the interpreter follow. */
static bool has_callers(int n, uint64_t evidence)
{
	return has_frame(n, (JIT + 0x81) | evidence, AT(CALLER + 2)) &&
	       has_frame(n + 1, LOOP | BY_POINTER, AT(CALLER + 4)) &&
	       has_frame(n + 2, PC(3), AT(CALLER + 4)) && host.sample.head.n_native == n + 3 &&
	       !host.sample.head.stop;
}

static void test_frames(void)
{
	reset_zjit();
	sampler__run(regs);
	ok(has_frame(0, (JIT + 0x40) | X, AT(FRAME + 2)) && has_callers(1, BY_POINTER),
	   "by frame pointers, whatever earlier calls have left");
	stack[CFP + JIT_RETURN / 8] = AT(FRAME - 3);
	sampler__run(regs);
	ok(has_callers(1, BY_POINTER), "in an inlined function");
	stack[CFP + JIT_RETURN / 8] = AT(CALLER);
	sampler__run(regs);
	ok(has_callers(1, BY_POINTER), "the control frame is left, the native one not yet");
}

/* Trampolines have no frame: rbp is their caller's, without evidence. */
static void test_no_frame(void)
{
	reset_zjit();
	regs[UNWIND_REG_RSP] = AT(FRAME + 1);
	regs[UNWIND_REG_RBP] = AT(CALLER);
	stack[CFP + JIT_RETURN / 8] = AT(FRAME);
	sampler__run(regs);
	ok(has_frame(0, (JIT + 0x40) | X, AT(CALLER + 2)) &&
		   has_frame(1, LOOP | GUESSED, AT(CALLER + 4)),
	   "a frame pointer that may be the caller's is inferred");
	memcpy(jit_code + 0x40, "\x55\x48\x89\xe5", 4);
	sampler__run(regs);
	ok(has_frame(0, (JIT + 0x40) | X, AT(FRAME + 2)) && has_callers(1, BY_POINTER),
	   "before `push %%rbp` the return address is at the stack pointer");
	memcpy(jit_code + 0x40, "\x48\xc7\xc0\x24\0\0\0\xc3", 8);
	sampler__run(regs);
	ok(has_frame(0, (JIT + 0x40) | X, AT(FRAME + 2)) && has_callers(1, 0),
	   "behind `pop %%rbp` the result is set, then follows `ret`");
	memcpy(jit_code + 0x40, "\xb8\x24\0\0\0\xc3", 6);
	sampler__run(regs);
	ok(has_frame(0, (JIT + 0x40) | X, AT(FRAME + 2)) && has_callers(1, 0),
	   "the same with a short result");
}

static void test_others(void)
{
	reset_zjit();
	set_process(JIT + 0x100000, JIT_RETURN);
	stack[FRAME + 1] = JIT + 0x81;
	sampler__run(regs);
	ok(host.sample.head.stop == COUNT_UNPROVEN && host.sample.head.n_native == 1,
	   "code that is not ZJIT's needs proof");
	reset_zjit();
	set_process(JIT + 0x20, 0);
	stack[CFP + JIT_RETURN / 8] = 0;
	sampler__run(regs);
	ok(has_callers(1, BY_POINTER), "4.0 publishes no frame pointer, and keeps it");
	reset_zjit();
	set_process(0, JIT_RETURN);
	sampler__run(regs);
	ok(has_frame(1, LOOP, AT(4)), "without ZJIT it is YJIT's code, up to the loop");
	set_process(JIT + 0x20, JIT_RETURN);
	sampler__run(regs);
	ok(has_callers(1, BY_POINTER), "ZJIT is switched on");
}

int main(void)
{
	sampler__open();
	HOST_HASH(ruby_procs, 4);
	test_frames();
	test_no_frame();
	test_others();
	sampler__close();
	return tap__done();
}
