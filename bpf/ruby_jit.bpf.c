// SPDX-License-Identifier: GPL-2.0
#include "bpf/tableless.bpf.h"

/* Code that CRuby's YJIT made (yjit/src/codegen.rs, gen_entry_prologue, at 3.1 to 3.4) pushes the
 * caller's r13, r12 and rbx and leaves rbp alone; with --yjit-perf it pushes rbp twice before. What
 * else it pushes around calls are Ruby's values. So the first word that is an address in the
 * interpreter loop is the return address. */
#define JIT_FRAME_WORDS 24
#define JIT_SAVED_WORDS 3

__noinline int ruby__tableless(struct unwind_state *u)
{
	__u32 i, at = JIT_FRAME_WORDS, saved = JIT_SAVED_WORDS;
	__u64 words[JIT_FRAME_WORDS], from, size;
	struct unwind_rule *rule;

	if (!u)
		return 0;
	from = u->mapping.callers.start;
	size = u->mapping.callers.bytes;
	rule = &u->rule;
	if (u->mapping.n_pages || !from || bpf_probe_read_user(words, sizeof(words), (void *)u->sp))
		return 0;
	for (i = 0; i < JIT_FRAME_WORDS; i++)
		if (at == JIT_FRAME_WORDS && words[i] - from < size)
			at = i;
	if (at == JIT_FRAME_WORDS)
		return 0;
	rule->kind = UNWIND_REG;
	rule->reg = UNWIND_REG_RSP;
	rule->cfa_off = 8 * (at + 1);
	if (u->rbp == u->sp + 8 * at - 8) { /* with frame pointers */
		rule->rbp_words = -2;
		saved += 2;
	}
	if (at >= saved)
		rule->rbx_words = -(saved + 1);
	return TABLELESS_RULE;
}
