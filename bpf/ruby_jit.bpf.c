// SPDX-License-Identifier: GPL-2.0
#include "bpf/ruby_procs.bpf.h"
#include "bpf/tableless.bpf.h"

/* Code that CRuby's YJIT made (yjit/src/codegen.rs, gen_entry_prologue, at 3.1 to 3.4) pushes the
 * caller's r13, r12 and rbx and does not change rbp. With --yjit-perf the code pushes rbp twice
 * before these registers. All other words that the code pushes around calls are Ruby's values. So
 * the first word that is an address in the interpreter loop is the return address. */
#define JIT_FRAME_WORDS 24
#define JIT_SAVED_WORDS 3

/* Checks if word `i` of the block, counted from the one at u->lo, is the return address. */
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

#define JIT_PAGE 4096ULL

/* Adds the mapping of the pc, or its page if the mapping is not published, to the process's
 * compiled code. */
static __always_inline void jit__note(const struct unwind_state *u, struct ruby_proc_rec *proc)
{
	__u64 start = u->mapping.end ? u->mapping.start : u->pc & ~(JIT_PAGE - 1);
	__u64 end = u->mapping.end ? u->mapping.end : start + JIT_PAGE;

	if (!proc->jit_end || start < proc->jit_start)
		proc->jit_start = start;
	if (end > proc->jit_end)
		proc->jit_end = end;
}

/* Finds the rule for code of YJIT into u->rule. */
static __always_inline int yjit__rule(struct unwind_state *u, struct ruby_proc_rec *proc)
{
	__u32 words, saved = JIT_SAVED_WORDS;
	struct unwind_rule *rule;
	__u64 at;

	if (!code__has_callers(u, WALKER_RUBY))
		return 0;
	if (proc)
		jit__note(u, proc);
	if (stack__have(u, u->sp, 8 * JIT_FRAME_WORDS, &at))
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
		rule->fp_words = -2;
		saved += 2;
	}
	if (words > saved)
		rule->aux_words = -(saved + 1);
	return TABLELESS_RULE;
}

/* ZJIT's code has frame pointers (zjit/src/backend/x86_64, FrameSetup), and its control frame in
 * r13. From 4.1 on, compiled code publishes its frame pointer in that control frame, or an address
 * below it if it was inlined (ruby_zjit.bpf.h). So an interrupted instruction shows if rbp is its
 * own frame's: the published address lies in that frame. In the instructions before and after a
 * frame, and in trampolines, it lies elsewhere. */
#define REG_CFP UNWIND_REG_R13

static __always_inline int zjit__has_pointer(const struct unwind_state *u, __u32 jit_return)
{
	__u64 published;

	if (!u->leaf || !jit_return)
		return 1;
	if (bpf_probe_read_user(&published, sizeof(published),
				(void *)u->regs[REG_CFP] + jit_return))
		return 0;
	/* A published address beyond rbp is the caller's: the code has left its control frame, but
	 * not yet its native frame. */
	return !(published & 7) && published >= u->sp;
}

/* Returns true if the mapping of the pc holds ZJIT's code. */
static __always_inline int zjit__owns(const struct unwind_state *u, struct ruby_proc_rec *proc)
{
	const struct mapping_rec *m = &u->mapping;

	if (proc->zjit - m->start < m->end - m->start)
		jit__note(u, proc);
	return u->pc - proc->jit_start < proc->jit_end - proc->jit_start;
}

__noinline int ruby__tableless(struct unwind_state *u)
{
	const struct scratch *scratch = scratch__get();
	struct ruby_proc_rec *proc;
	__u32 space;

	if (!u || !scratch || u->mapping.n_pages)
		return 0;
	space = scratch->proc.space;
	proc = bpf_map_lookup_elem(&ruby_procs, &space);
	if (!proc || !ruby__zjit(proc))
		return yjit__rule(u, proc);
	if (!zjit__owns(u, proc))
		return 0;
	return TABLELESS_POINTER | TABLELESS_CALLED |
	       (zjit__has_pointer(u, proc->offsets.jit_return) ? 0 : TABLELESS_GUESS);
}
