// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel half's unwinder in code of opcache's JIT where execute_ex calls it, in a PHP that
 * clang built. */
#include "core/base/util.h"
#include "tests/tap.h"

#include "tests/unit/synthetic.h"

#include "bpf/php_unwind.bpf.c"

/* execute_ex: page 1 of the code. */
#define LOOP_START (CODE + 0x100)
#define LOOP_BYTES 0x40
#define RETURNS	   (LOOP_START + 0x28)

#define FRAME_WORDS 6 /* NR_SPAD and the return address */
#define X	    NATIVE_EXACT

static const struct unwind_rule rules[CODE_PAGES] = { RSP(16), RSP(32), END, END, END };

static void reset_php(uint64_t returns)
{
	struct php_proc_rec rec = { .returns = returns };
	struct mapping_rec *jit;
	uint32_t space = SPACE;

	reset();
	set_rules(rules);
	bpf_map_update_elem(&php_procs, &space, &rec, 0);
	jit = &sampler__mappings()->lists[0].mappings[1];
	jit->callers.start = LOOP_START;
	jit->callers.bytes = LOOP_BYTES;
	regs[UNWIND_REG_PC] = JIT + 8;
	regs[UNWIND_REG_RBP] = 0x130000; /* a value of the code */
}

/* Returns true if frame @n is execute_ex, whose frame has four words, and its callers follow. The
 * compiled frame inside ends at word @end. */
static bool has_callers(int n, int end)
{
	return has_frame(n, RETURNS, AT(end + 4)) && has_frame(n + 1, PC(3), AT(end + 4)) &&
	       host.sample.head.n_native == n + 2 && !host.sample.head.stop;
}

static void call_from(int end)
{
	stack[end - 1] = RETURNS;
	stack[end + 3] = PC(3);
}

static void test_own(void)
{
	static const int more[] = { 0, 1, 3, 33 };

	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		int end = FRAME_WORDS + more[i];

		reset_php(RETURNS);
		call_from(end);
		stack[1] = LOOP_START + 8; /* an address in the loop, not that of the call */
		sampler__run(regs);
		ok(has_frame(0, (JIT + 8) | X, AT(end)) && has_callers(1, end),
		   "compiled code with %d words more", more[i]);
	}
}

static void test_called(void)
{
	reset_php(RETURNS);
	regs[UNWIND_REG_PC] = PC(0);
	stack[1] = JIT + 9;
	call_from(2 + FRAME_WORDS);
	sampler__run(regs);
	ok(has_frame(0, PC(0) | X, AT(2)) && has_frame(1, JIT + 9, AT(2 + FRAME_WORDS)) &&
		   has_callers(2, 2 + FRAME_WORDS),
	   "compiled code that has called something");
}

static void test_none(void)
{
	reset_php(RETURNS);
	call_from(CALLED_WORDS_MAX + 1);
	sampler__run(regs);
	is_int(host.sample.head.stop, COUNT_NO_RULE, "too far up the stack");
	reset_php(0);
	call_from(FRAME_WORDS);
	sampler__run(regs);
	is_int(host.sample.head.stop, COUNT_NO_RULE, "a build of which no such call is known");
}

int main(void)
{
	sampler__open();
	HOST_HASH(php_procs, 4);
	host__set(&cfg_tableless, 1U << WALKER_PHP);
	test_own();
	test_called();
	test_none();
	sampler__close();
	return tap__done();
}
