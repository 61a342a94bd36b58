// SPDX-License-Identifier: GPL-2.0
#include "bpf/tableless.bpf.h"

/* Code that CRuby's YJIT made (yjit/src/codegen.rs, gen_entry_prologue, at 3.1 to 3.4) pushes the
 * caller's r13, r12 and rbx and leaves rbp alone; with --yjit-perf it pushes rbp twice before. What
 * else it pushes around calls are Ruby's values. So the first word that is an address in the
 * interpreter loop is the return address. */
#define JIT_FRAME_WORDS 24
#define JIT_SAVED_WORDS 3

/* Is word `i` of the block, from that at u->lo on, the return address? */
static long jit__look(__u32 i, void *unused)
{
	struct scratch *scratch = scratch__get();
	struct unwind_state *u;

	(void)unused;
	if (!scratch)
		return 1;
	u = &scratch->unwind;
	if (!code__is_caller(u, BLOCK_AT(u, u->lo + i)))
		return 0;
	u->hi = i + 1;
	return 1;
}

__noinline int ruby__tableless(struct unwind_state *u)
{
	__u32 words, saved = JIT_SAVED_WORDS;
	struct unwind_rule *rule;
	__u64 at;

	if (!u || !code__has_callers(u, WALKER_RUBY) ||
	    stack__have(u, u->sp, 8 * JIT_FRAME_WORDS, &at))
		return 0;
	u->lo = at;
	u->hi = 0;
	bpf_loop(JIT_FRAME_WORDS, jit__look, NULL, 0);
	words = u->hi;
	if (!words)
		return 0;
	rule = &u->rule;
	rule->kind = UNWIND_REG;
	rule->reg = UNWIND_REG_RSP;
	rule->cfa_off = 8 * words;
	if (u->rbp == u->sp + 8 * words - 16) { /* with frame pointers */
		rule->rbp_words = -2;
		saved += 2;
	}
	if (words > saved)
		rule->rbx_words = -(saved + 1);
	return TABLELESS_RULE;
}
