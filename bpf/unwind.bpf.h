/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_UNWIND_BPF_H
#define BRAID_UNWIND_BPF_H

/* Native unwinding: one call of unwind__step() per frame, driven by bpf_loop. All state is in the
 * scratch memory, so that the verifier sees each step once. The searches are global functions (not
 * static): the verifier then checks each by itself, once, instead of on every path to it. */

#include "bpf/cached_unwind.bpf.h"
#include "bpf/frame_pointer.bpf.h"
#include "bpf/mappings.bpf.h"
#include "bpf/runtime_frames.bpf.h"
#include "bpf/scratch.bpf.h"
#include "bpf/switch.bpf.h"
#include "bpf/tableless.bpf.h"
#include "bpf/unwind_probes.bpf.h"
#include "bpf/unwind_tableless.bpf.h"
#include "bpf/vma.bpf.h"

extern const volatile __u32 cfg_unwind;

struct chunk_inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct chunk));
	__uint(map_flags, BPF_F_MMAPABLE);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, CHUNKS_MAX);
	__type(key, __u32);
	__array(values, struct chunk_inner);
} chunks __weak SEC(".maps");

static __always_inline struct chunk *chunk__get(__u32 key)
{
	void *inner = bpf_map_lookup_elem(&chunks, &key);
	__u32 zero = 0;

	return inner ? bpf_map_lookup_elem(inner, &zero) : NULL;
}

#define CHUNK_OF(index)	       ((index) >> CHUNK_WORDS_BITS)
#define CHUNK_AT(chunk, index) (&(chunk)->words[(index) & (CHUNK_WORDS - 1)])

static __always_inline __u32 *word__get(__u32 index)
{
	struct chunk *chunk = chunk__get(CHUNK_OF(index));

	return chunk ? CHUNK_AT(chunk, index) : NULL;
}

static __always_inline const struct unwind_rule *rule__get(__u32 index)
{
	return (const struct unwind_rule *)word__get(index & ~(UNWIND_RULE_WORDS - 1));
}

/* Searches @list for the last mapping that starts at or below @address: u->lo - 1 is its index. */
static __always_inline void mapping__search(struct unwind_state *u, const struct mapping_list *list,
					    __u64 address)
{
	__u32 mid, i;

	u->lo = 0;
	u->hi = list->n;
	for (i = 0; i <= MAPPINGS_MAX_LOG2 && u->lo < u->hi; i++) {
		mid = (u->lo + u->hi) / 2;
		if (list->mappings[mid & (MAPPINGS_MAX - 1)].start <= address)
			u->lo = mid + 1;
		else
			u->hi = mid;
	}
}

/* Copies the last mapping that starts at or below u->pc to u->mapping. Returns 0 if it contains
 * u->pc, else a counter; COUNT_UNMAPPED_PC, COUNT_MAPPINGS_FULL and COUNT_ENDED_MAPPING also set
 * u->mapping.callers, for new anonymous code. */
__noinline int mapping__find(struct unwind_state *u, __u32 space)
{
	void *inner = bpf_map_lookup_elem(&mappings, &space);
	struct mapping_list *list;
	struct mappings_rec *rec;
	struct mapping_rec *found;
	__u32 zero = 0, changes;
	int ret = 0;

	if (!u || !inner)
		return COUNT_NO_MAPPINGS;
	rec = bpf_map_lookup_elem(inner, &zero);
	if (!rec)
		return COUNT_NO_MAPPINGS;
	list = rec->active ? &rec->lists[1] : &rec->lists[0];
	changes = *(volatile __u32 *)&list->changes;
	barrier();
	mapping__search(u, list, u->pc);
	found = &list->mappings[(u->lo - 1) & (MAPPINGS_MAX - 1)];
	if (!u->lo || u->pc >= found->end) {
		u->mapping.start = u->mapping.end = 0;
		u->mapping.callers = list->generated_callers;
		ret = list->n_left_out ? COUNT_MAPPINGS_FULL : COUNT_UNMAPPED_PC;
	} else if (mappings__are_over(rec)) {
		u->mapping.start = u->mapping.end = 0;
		u->mapping.callers = list->generated_callers;
		u->over = 1;
		ret = COUNT_ENDED_MAPPING;
	} else {
		u->mapping = *found;
		u->unpublished = 0;
	}
	barrier();
	if (!(changes & 1) && *(volatile __u32 *)&list->changes == changes)
		return ret;
	u->mapping.start = u->mapping.end = 0;
	return COUNT_TORN_MAPPINGS;
}

/* Returns 1 if u->seek is a return address. A call instruction ends at such an address. The address
 * lies in executable memory, by the published mappings or by the kernel's own list of mappings,
 * unless the kernel's list is unreadable. */
__noinline int word__is_return_address(struct unwind_state *u, __u32 space)
{
	const struct mapping_list *list;
	const struct mapping_rec *found;
	const struct mappings_rec *rec;
	__u32 zero = 0;
	void *inner;

	if (!u || recent__facts(u, u->seek) & RECENT_CALLED)
		return 1;
	if (!insn__follows_call(u, u->seek))
		return 0;
	if (u->seek >= u->mapping.start && u->seek < u->mapping.end) {
		recent__add(u, u->seek, &u->mapping, RECENT_CALLED);
		return 1;
	}
	inner = bpf_map_lookup_elem(&mappings, &space);
	rec = inner ? bpf_map_lookup_elem(inner, &zero) : NULL;
	if (rec && !mappings__are_over(rec)) {
		list = rec->active ? &rec->lists[1] : &rec->lists[0];
		mapping__search(u, list, u->seek);
		found = &list->mappings[(u->lo - 1) & (MAPPINGS_MAX - 1)];
		if (u->lo && u->seek < found->end) {
			recent__add(u, u->seek, found, RECENT_CALLED);
			return 1;
		}
	}
	return !vma__check(u) || !u->searched;
}

__noinline __u32 mappings__version(__u32 space)
{
	void *inner = bpf_map_lookup_elem(&mappings, &space);
	const struct mappings_rec *rec;
	__u32 zero = 0, changes;

	if (!inner)
		return CACHED_NO_VERSION;
	rec = bpf_map_lookup_elem(inner, &zero);
	if (!rec || mappings__are_over(rec))
		return CACHED_NO_VERSION;
	changes = rec->active ? rec->lists[1].changes : rec->lists[0].changes;
	return changes & 1 ? CACHED_NO_VERSION : changes | !!rec->active;
}

/* Sets u->row_begins to 1 if the row after the one in force, @next, begins directly after @in_page.
 * At the end of a page, @next is the first row of a later page. */
static __always_inline void row__check_previous(struct unwind_state *u, __u32 in_page,
						int is_same_page, __u32 next)
{
	__u32 place = in_page + 1;

	u->row_begins = is_same_page ? UNWIND_ROW_AT(next) == place
				     : place == UNWIND_PAGE_BYTES && !UNWIND_ROW_AT(next);
}

/* Continues rule__find() from @rows on, if the rows u->lo to u->hi lie in more than one chunk. */
__noinline int rule__find_apart(struct unwind_state *u, __u32 rows, __u32 in_page)
{
	__u32 mid, i, *row, last;

	if (!u)
		return -1;
	last = u->hi;
	for (i = 0; i <= UNWIND_PAGE_BITS && u->lo < u->hi; i++) {
		mid = (u->lo + u->hi) / 2;
		row = word__get(rows + mid);
		if (!row)
			return -1;
		if (UNWIND_ROW_AT(*row) <= in_page)
			u->lo = mid + 1;
		else
			u->hi = mid;
	}
	row = word__get(rows + u->lo);
	if (row)
		row__check_previous(u, in_page, u->lo < last, *row);
	if (!u->lo)
		return 0;
	row = word__get(rows + u->lo - 1); /* may be one of an earlier page */
	return row ? (int)UNWIND_ROW_RULE(*row) : -1;
}

/* Returns the number of the rule in force at @at, an address from that of the table's page 0. 0:
 * there is no rule; -1: the table is inconsistent. @rows is the index of the table's first row.
 * Most often all rows to read lie in one chunk, which is then looked up once. */
__noinline int rule__find(struct unwind_state *u, __u32 base, __u32 rows, __u64 at)
{
	__u32 page = at >> UNWIND_PAGE_BITS, in_page = at & (UNWIND_PAGE_BYTES - 1);
	__u32 *first = word__get(base + page), *last = word__get(base + page + 1);
	__u32 mid, i, end;
	struct chunk *chunk;

	if (!u || !first || !last)
		return -1;
	u->row_begins = 0;
	u->lo = *first;
	u->hi = end = *last;
	mid = rows + u->lo - !!u->lo;
	if (CHUNK_OF(mid) != CHUNK_OF(rows + end))
		return rule__find_apart(u, rows, in_page);
	chunk = chunk__get(CHUNK_OF(mid));
	if (!chunk)
		return -1;
	for (i = 0; i <= UNWIND_PAGE_BITS && u->lo < u->hi; i++) {
		mid = (u->lo + u->hi) / 2;
		if (UNWIND_ROW_AT(*CHUNK_AT(chunk, rows + mid)) <= in_page)
			u->lo = mid + 1;
		else
			u->hi = mid;
	}
	row__check_previous(u, in_page, u->lo < end, *CHUNK_AT(chunk, rows + u->lo));
	return u->lo ? (int)UNWIND_ROW_RULE(*CHUNK_AT(chunk, rows + u->lo - 1)) : 0;
}

/* Reads the block that holds @address, preferably from a little below, where the registers that
 * belong to a return address are saved. It never reads from below the stack pointer. */
__noinline int block__fill(struct unwind_state *u, __u64 address)
{
	__u32 to_page_end;
	__u64 start, sp;

	if (!u)
		return -1;
	start = address - BLOCK_BEFORE;
	sp = u->sp & ~7ULL;
	if (start < sp && address >= sp)
		start = sp;
	if (!bpf_probe_read_user(u->block, BLOCK_BYTES, (void *)start)) {
		u->block_start = start;
		u->block_bytes = BLOCK_BYTES;
		return 0;
	}
	u->block_start = 0;
	start = address;
	to_page_end = PAGE_BYTES - (start & (PAGE_BYTES - 1));
	if (to_page_end > BLOCK_BYTES)
		to_page_end = 8; /* this page is missing; the read fails then */
	if (bpf_probe_read_user(u->block, to_page_end, (void *)start))
		return -1;
	u->block_start = start;
	u->block_bytes = to_page_end;
	return 0;
}

/* Reads one word of stack memory into u->value. */
__noinline int stack__read(struct unwind_state *u, __u64 address)
{
	__u64 at;

	if (!u || address & 7)
		return -1;
	at = address - u->block_start;
	if (!u->block_start || at >= u->block_bytes) {
		if (block__fill(u, address))
			return -1;
		at = address - u->block_start;
	}
	u->value = u->block[(at >> 3) & (BLOCK_WORDS - 1)];
	return 0;
}

/* Reads a register of the current frame into u->value. Returns -1 if it is lost. */
__noinline int unwind__reg(struct unwind_state *u, __u32 reg)
{
	if (!u)
		return -1;
	if (reg == UNWIND_REG_RSP) {
		u->value = u->sp;
	} else if (reg == UNWIND_REG_RBP && !u->rbp_lost) {
		u->value = u->rbp;
	} else if (reg == UNWIND_REG_RBX && !u->rbx_lost) {
		u->value = u->rbx;
	} else if (u->leaf && reg != UNWIND_REG_RBP && reg != UNWIND_REG_RBX) {
		u->value = u->regs[reg & 15];
	} else {
		return -1;
	}
	return 0;
}

/* Restores the registers of a signal frame; bpf/unwind_tableless.bpf.h has its layout. */
__noinline int unwind__signal(struct unwind_state *u)
{
	const __u64 *saved;
	int i;

	if (!u)
		return -1;
	saved = u->block;
	u->block_start = 0; /* overwritten, and the frames may continue on another stack */
	if (bpf_probe_read_user(u->block, UCONTEXT_REGS * 8, (void *)(u->sp + UCONTEXT_REGS_AT)))
		return -1;
	for (i = 0; i < 8; i++)
		u->regs[8 + i] = saved[i];
	u->regs[5] = saved[8];
	u->regs[4] = saved[9];
	u->regs[1] = saved[12];
	u->regs[0] = saved[13];
	u->regs[2] = saved[14];
	u->rbp = saved[10];
	u->rbx = saved[11];
	u->rbp_lost = u->rbx_lost = 0;
	u->sp = saved[15];
	u->pc = saved[16];
	u->exact = u->leaf = 1;
	return 0;
}

/* Returns 1 if the current frame is that of a caller, and not of an interrupted instruction. */
static __always_inline int unwind__is_caller(const struct unwind_state *u)
{
	return u->n && !u->exact;
}

/* A hand-made stack may begin with the address of code that nothing has called: the first byte of a
 * function, or code after a jump. The code before it is unrelated. Returns the number of the rule
 * at this very address, if it ends the stack. Otherwise returns 0, or @number if that is a
 * failure. */
static __always_inline int unwind__bottom(struct unwind_state *u, int number, __u64 at)
{
	const struct mapping_rec *m = &u->mapping;
	const struct unwind_rule *rule;

	if (number < 0 || at >> UNWIND_PAGE_BITS >= m->n_pages)
		return number;
	number = rule__find(u, m->base, m->base + m->rows_at, at);
	if (number < 0)
		return number;
	rule = rule__get(m->base + m->rules_at + number * UNWIND_RULE_WORDS);
	if (!number || !rule || rule->kind != UNWIND_END)
		return 0;
	u->exact = 1;
	return number;
}

/* Finds the rule for the current pc, and copies it to u->rule (all zero: none). Returns a counter
 * on failure. */
__noinline int unwind__find(struct unwind_state *u, __u32 space)
{
	const struct unwind_rule *found;
	struct mapping_rec *m;
	int err, number;
	__u64 at;

	if (!u)
		return COUNT_TABLE;
	m = &u->mapping;
	u->later = 0;
	if (u->pc < m->start || u->pc >= m->end) {
		err = mapping__find(u, space);
		if (err)
			err = vma__find(u, err);
		if (err)
			return err;
	}
	/* If rbp is usable, UNWIND_MODE_FP does not use the rule (unwind__without_table). */
	if (cfg_unwind == UNWIND_MODE_FP && u->rbp && !u->rbp_lost)
		return 0;
	/* A call can be the last instruction of a function: the rule is that of the call, not of
	 * the next byte. */
	at = u->pc - !u->exact - m->bias - m->vaddr_start;
	if (m->n_pages == PAGES_UNPLACED)
		return COUNT_NO_RULE;
	if (!m->n_pages)
		u->keeps = CALLERS_KEEPS(&m->callers);
	if (!m->n_pages || at >> UNWIND_PAGE_BITS >= m->n_pages)
		return 0;
	number = rule__find(u, m->base, m->base + m->rows_at, at);
	if (u->row_begins && unwind__is_caller(u) && !insn__follows_call(u, u->pc)) {
		number = unwind__bottom(u, number, at + 1);
		if (!number) /* unwind__without_rule() then ends the stack */
			return pc__never_returns(u) ? 0 : COUNT_NO_CALL;
	}
	if (number <= 0)
		return number ? COUNT_TABLE : 0;
	found = rule__get(m->base + m->rules_at + number * UNWIND_RULE_WORDS);
	if (!found)
		return COUNT_TABLE;
	if (found->kind == UNWIND_LATER) {
		u->later = 1;
		return 0;
	}
	if (found->kind == UNWIND_POINTER) {
		u->keeps = found->flags;
		return 0;
	}
	u->rule = *found;
	u->tabled = found->kind != UNWIND_NONE;
	return 0;
}

/* Sets u->cfa to the CFA of the current frame. Returns a counter on failure. */
__noinline int unwind__cfa(struct unwind_state *u)
{
	const struct unwind_rule *rule;

	if (!u)
		return COUNT_TABLE;
	rule = &u->rule;
	if (rule->kind == UNWIND_PLT) {
		u->cfa = u->sp + rule->cfa_off +
			 ((__u32)(u->pc & 15) >= (__u32)rule->cfa_add ? 8 : 0);
		return 0;
	}
	if (unwind__reg(u, rule->reg))
		return COUNT_LOST_REG;
	if (rule->kind == UNWIND_DEREF) {
		if (stack__read(u, u->value + rule->cfa_off))
			return COUNT_STACK_READ;
		u->cfa = u->value + rule->cfa_add;
	} else {
		u->cfa = u->value + rule->cfa_off;
	}
	return 0;
}

/* Reads the caller's value of a callee-saved register into u->value and returns 1; 0: unchanged. */
static __always_inline int unwind__saved(struct unwind_state *u, __u64 rbp, __s16 words, int at_rbp)
{
	if (words == UNWIND_WORDS_SAME && !at_rbp)
		return 0;
	return stack__read(u, (at_rbp ? rbp : u->cfa) + (__s64)words * 8) ? -1 : 1;
}

/* Marks rbp as lost. The value of a lost register is not part of the state. */
static __always_inline void unwind__lose_rbp(struct unwind_state *u)
{
	u->rbp_lost = 1;
	u->rbp = 0;
}

static __always_inline void unwind__lose_rbx(struct unwind_state *u)
{
	u->rbx_lost = 1;
	u->rbx = 0;
}

#define LOWERED_MAX 16 /* maximum number of steps to a lower stack */

/* Checks a CFA that is not above the frame's stack pointer. It may be below only by a table's rule
 * with another register than the stack pointer: the function has switched to a stack at a higher
 * address. Returns a counter on failure. */
static __always_inline int unwind__lower(struct unwind_state *u)
{
	const struct unwind_rule *rule = &u->rule;

	if (u->cfa == u->sp || !u->tabled || rule->reg == UNWIND_REG_RSP ||
	    (rule->kind != UNWIND_REG && rule->kind != UNWIND_DEREF))
		return COUNT_NOT_GROWING;
	if (u->lowered >= LOWERED_MAX)
		return COUNT_STACKS;
	u->lowered++;
	return 0;
}

/* Sets u->pc to the return address. Returns a counter on failure. */
static __always_inline int unwind__return_address(struct unwind_state *u)
{
	const struct unwind_rule *rule = &u->rule;
	int err;

	if (rule->kind == UNWIND_LINK) {
		if (u->cfa < u->sp)
			return COUNT_NOT_GROWING;
		if (unwind__reg(u, rule->cfa_add & 15) || !u->leaf)
			return COUNT_LOST_REG;
		u->pc = u->value;
		return 0;
	}
	err = u->cfa <= u->sp ? unwind__lower(u) : 0;
	if (err)
		return err;
	if (stack__read(u, u->cfa - 8))
		return COUNT_STACK_READ;
	u->pc = u->value;
	return 0;
}

/* Steps to the caller, by a rule. Returns a counter on failure. */
__noinline int unwind__to_caller(struct unwind_state *u)
{
	const struct unwind_rule *rule;
	int rbp_saved = 0, rbx_saved = 0, err;
	__u64 rbp;

	if (!u)
		return COUNT_TABLE;
	rule = &u->rule;
	rbp = u->rbp;
	err = unwind__return_address(u);
	if (err)
		return err;
	if (u->trampoline && u->pc == u->trampoline) {
		u->pc = unwind__unhide(u, u->cfa - 8);
		if (!u->pc)
			return COUNT_HIDDEN_PC;
	}
	u->exact = u->leaf = 0;
	if (rule->fp_words == UNWIND_WORDS_LOST)
		unwind__lose_rbp(u);
	else
		rbp_saved = unwind__saved(u, rbp, rule->fp_words, rule->flags & UNWIND_FP_AT_FP);
	if (rbp_saved > 0) {
		u->rbp = u->value;
		u->rbp_lost = 0;
	}
	if (rule->aux_words == UNWIND_WORDS_LOST)
		unwind__lose_rbx(u);
	else
		rbx_saved = unwind__saved(u, rbp, rule->aux_words, rule->flags & UNWIND_AUX_AT_FP);
	if (rbx_saved > 0) {
		u->rbx = u->value;
		u->rbx_lost = 0;
	}
	u->sp = u->caller_sp ? u->caller_sp : u->cfa;
	return rbp_saved < 0 || rbx_saved < 0 ? COUNT_STACK_READ : 0;
}

/* Steps to the caller on another stack. Returns a counter on failure. */
__noinline int unwind__to_other_stack(struct unwind_state *u)
{
	int err;

	if (!u)
		return COUNT_TABLE;
	err = switch__find(u);
	if (err || u->rule.kind == UNWIND_END)
		return err;
	u->block_start = 0;
	unwind__lose_rbp(u);
	unwind__lose_rbx(u);
	if (u->rule.flags & UNWIND_PC_FOLLOWS) {
		u->pc = u->value;
		u->exact = u->leaf = 0;
		u->sp = u->cfa;
		return 0;
	}
	u->sp = u->cfa - 16; /* words below are irrelevant */
	return unwind__to_caller(u);
}

/* Leaves the current frame by u->rule. Returns a counter on failure. */
__noinline int unwind__apply(struct unwind_state *u)
{
	int err;

	if (!u)
		return COUNT_TABLE;
	switch (u->rule.kind) {
	case UNWIND_UNSUPPORTED:
		return COUNT_UNSUPPORTED;
	case UNWIND_SIGNAL:
		if (unwind__signal(u))
			return COUNT_STACK_READ;
		u->cfa = u->sp;
		return 0;
	case UNWIND_SWITCH:
	case UNWIND_RESUME:
		return unwind__to_other_stack(u);
	case UNWIND_END:
		unwind__cfa(u); /* optional: the stack ends here in any case */
		return 0;
	default:
		if (u->rule.flags & UNWIND_CHAINED)
			u->chained = u->sp;
		err = unwind__cfa(u);
		return err ? err : unwind__to_caller(u);
	}
}

/* Finds the rule for code that no table covers, and copies it to u->rule. Returns a counter on
 * failure. *ret_called: such code always has a caller. */
static __always_inline int unwind__tableless(struct unwind_state *u, __u32 space, int *ret_called)
{
	int outcome = 0, err;

	__builtin_memset(&u->note, 0, sizeof(u->note));

#define X(slot, hook)                                 \
	if (!outcome && cfg_tableless & 1U << (slot)) \
		outcome = hook(u);
	TABLELESS_HOOKS(X)
#undef X
	*ret_called = outcome & TABLELESS_CALLED;
	if (outcome & TABLELESS_CUT)
		return COUNT_NO_RULE;
	err = outcome & TABLELESS_RULE
		      ? 0
		      : unwind__without_rule(u, space,
					     outcome & (TABLELESS_POINTER | TABLELESS_GUESS));
	if (outcome & TABLELESS_INFERRED)
		u->next_evidence = EVIDENCE_INFERRED;
	return err;
}

/* Drops the rule in UNWIND_MODE_FP, which uses tables only to prove the end of the stack. The
 * mapping matters only if it proves that the pc is not code. */
static __always_inline int unwind__without_table(struct unwind_state *u, int err)
{
	if (!err && u->rule.kind == UNWIND_END)
		return 0;
	__builtin_memset(&u->rule, 0, sizeof(u->rule));
	u->tabled = 0;
	return unwind__is_no_frame(u, err) ? err : 0;
}

/* The kernel writes the number of arguments above the first frame. It is less than this. */
#define ARGUMENTS_MAX (1ULL << 31)

/* Checks whether the stack ends with the frame that was just left. Returns a counter if it ends
 * without proof. The number of arguments may equal any low address. */
static __always_inline int unwind__check_end(struct unwind_state *u, int called)
{
	if (u->rule.kind == UNWIND_END || u->rule.kind == UNWIND_SIGNAL)
		return 0;
	if (u->pc < ARGUMENTS_MAX && u->cfa - 8 == unwind__start_stack(u)) {
		u->rule.kind = UNWIND_END;
		return 0;
	}
	if (u->pc)
		return 0;
	return called ? COUNT_NO_RULE : COUNT_ZERO_RETURN;
}

/* Returns 1 if there is a frame at @ip only by a table's rule, and @ip is not a return address. The
 * rules of two functions may be one row of the table. That row then includes the first byte of the
 * second function, with which hand-made stacks begin. This is checked only if the caller is not at
 * its place (is_astray). */
static __always_inline int unwind__is_uncalled(struct unwind_state *u, __u64 ip)
{
	return ip && !(ip & NATIVE_EXACT) && !insn__follows_call(u, NATIVE_ADDRESS(ip));
}

/* Returns 1 if the counter @err shows that the caller is not at the place that the rule gives. */
static __always_inline int is_astray(int err)
{
	return err == COUNT_STACK_READ || err == COUNT_NOT_GROWING || err == COUNT_ZERO_RETURN;
}

/* Ends the stack for @err, at a return address that is not a frame. */
static __always_inline void unwind__end_before(struct scratch *scratch, int err)
{
	struct unwind_state *u = &scratch->unwind;

	u->stop = err;
	if (u->n < 2 || !unwind__is_uncalled(u, u->last))
		return;
	u->stop = COUNT_NO_CALL;
	u->n--;
	scratch->n_words -= 2;
}

/* Records one frame and moves on to its caller. Returns 1 to end the loop. */
static long unwind__step(__u32 index, void *unused)
{
	struct scratch *scratch = scratch__get();
	struct unwind_state *u;
	int err = 0, called = 0;
	__u64 ip, astray, rbp;

	(void)index, (void)unused;
	if (!scratch)
		return 1;
	u = &scratch->unwind;
	if (cfg_cached && cached__enter(scratch) == CACHED_ENDED)
		return 1;
	u->cfa = 0;
	u->caller_sp = 0;
	u->tabled = u->keeps = 0;
	u->note.key = 0;
	__builtin_memset(&u->rule, 0, sizeof(u->rule));
	u->next_evidence = EVIDENCE_RULE;
	err = unwind__find(u, scratch->proc.space);
	ip = u->pc | (u->exact ? NATIVE_EXACT : 0) | (__u64)u->evidence << NATIVE_EVIDENCE_SHIFT;
	if (cfg_unwind == UNWIND_MODE_FP)
		err = unwind__without_table(u, err);
	if (!err && u->rule.kind == UNWIND_NONE)
		err = unwind__tableless(u, scratch->proc.space, &called);
	if (err == COUNT_NO_RULE && u->later)
		err = COUNT_RULE_LATER;
	if (unwind__is_no_frame(u, err)) {
		unwind__end_before(scratch, err);
		return 1;
	}
	astray = u->n && u->tabled ? ip : 0;
	if (u->rule.kind == UNWIND_SIGNAL)
		ip |= NATIVE_EXACT; /* nothing called the trampoline */
	rbp = u->rbp;
	if (!err)
		err = unwind__apply(u);
	/* The code has no frame of its own: rbp is its caller's, which is the next frame. */
	if (!err && u->note.by_rbp && u->rbp == rbp)
		u->note.key = 0;
	if (!err)
		err = unwind__check_end(u, called);
	if (is_astray(err) && unwind__is_uncalled(u, astray)) {
		u->stop = COUNT_NO_CALL;
		return 1;
	}
	runtime_frames__add_left(scratch);
	if (cfg_cached)
		cached__leave(scratch, err);
	scratch__push(scratch, ip, u->cfa);
	u->last = astray ? ip : 0;
	u->n++;
	u->stop = err;
	u->complete = !err && u->rule.kind == UNWIND_END;
	u->evidence = u->next_evidence;
	u->inferred |= !err && !u->complete && u->evidence == EVIDENCE_INFERRED;
	return err || u->complete;
}

#endif
