/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_UNIT_SYNTHETIC_H
#define BRAID_TESTS_UNIT_SYNTHETIC_H

/* A process that does not exist: its code, unwind table and stack. Include this file last. */

#include "tests/unit/tables.h"

/* Page k of the code, 256 bytes, is unwound by rule k of a test. The stack has STACK_WORDS words.
 */
#define CODE	    0x400000ULL
#define CODE_PAGES  8
#define PC(k)	    (CODE + UNWIND_PAGE_BYTES * (k) + 0x80)
#define JIT	    0x500000ULL /* mapped, without a table */
#define STACK	    0x7ffe1000ULL
#define AT(i)	    (STACK + 8ULL * (i))
#define STACK_WORDS 4096

/* Indexes of the first rows, the rules and the rows, as in bpf/unwind_rule.h. */
#define RULES_AT 12
#define ROWS_AT	 (RULES_AT + UNWIND_RULE_WORDS * (CODE_PAGES + 2))

static uint64_t stack[STACK_WORDS];
static uint64_t regs[UNWIND_REGS];
static char jit_code[256];
static char code_bytes[CODE_PAGES * UNWIND_PAGE_BYTES];

#define CALL_CODE 0xe8 /* `call rel32` at every address, so that each address follows a call */

#define REG_R10 10

#define RULE(rule_kind, base, offset, ...)                                              \
	{                                                                               \
		.kind = UNWIND_##rule_kind, .reg = base, .cfa_off = offset, __VA_ARGS__ \
	}
#define RSP(offset, ...) RULE(REG, UNWIND_REG_RSP, offset, __VA_ARGS__)
#define RBP(offset, ...) RULE(REG, UNWIND_REG_RBP, offset, __VA_ARGS__)
#define RBX(offset, ...) RULE(REG, UNWIND_REG_RBX, offset, __VA_ARGS__)
#define END		 RULE(END, UNWIND_REG_RSP, 0)

static inline void set_rules(const struct unwind_rule *rules)
{
	uint32_t words[ROWS_AT + CODE_PAGES] = { 0 };

	for (uint32_t i = 0; i < CODE_PAGES; i++) {
		words[i] = i;
		words[ROWS_AT + i] = i + 2; /* offset 0 */
		memcpy(&words[RULES_AT + UNWIND_RULE_WORDS * (i + 2)], &rules[i], sizeof(*rules));
	}
	words[CODE_PAGES] = CODE_PAGES;
	sampler__put_words(CHUNK_WORDS - 16, words, ARRAY_SIZE(words));
}

static inline void set_mappings(void)
{
	struct mappings_rec *rec = sampler__mappings();

	memset(rec, 0, sizeof(*rec));
	rec->lists[0].n = 2;
	rec->lists[0].mappings[0] = (struct mapping_rec) {
		.start = CODE,
		.end = CODE + 0x1000,
		.bias = CODE - 0x10000,
		.vaddr_start = 0x10000,
		.n_pages = CODE_PAGES,
		.base = CHUNK_WORDS - 16,
		.rules_at = RULES_AT,
		.rows_at = ROWS_AT,
	};
	rec->lists[0].mappings[1] = (struct mapping_rec) { .start = JIT, .end = JIT + 0x1000 };
}

/* Publishes the same two mappings again, in the other list, as user space does. */
static inline void publish(void)
{
	struct mappings_rec *rec = sampler__mappings();
	struct mapping_list *list = &rec->lists[!rec->active];

	list->changes++;
	list->n = rec->lists[rec->active].n;
	memcpy(list->mappings, rec->lists[rec->active].mappings, 2 * sizeof(list->mappings[0]));
	list->changes++;
	rec->active = !rec->active;
}

/* Restores the state that most tests start from: the whole stack is readable. */
static inline void reset(void)
{
	static const struct unwind_rule ends[CODE_PAGES] = {
		END, END, END, END, END, END, END, END
	};

	set_mappings();
	set_rules(ends);
	memset(stack, 0, sizeof(stack));
	memset(regs, 0, sizeof(regs));
	memset(jit_code, 0, sizeof(jit_code));
	memset(code_bytes, CALL_CODE, sizeof(code_bytes));
	regs[UNWIND_REG_RSP] = STACK;
	regs[UNWIND_REG_PC] = PC(0);
	host.n_ranges = 0;
	host__add_range(STACK, stack, sizeof(stack));
	host__add_range(JIT, jit_code, sizeof(jit_code));
	host__add_range(CODE, code_bytes, sizeof(code_bytes));
	host.n_unmapped = host.n_stacks = 0;
	host__set(&cfg_unwind, UNWIND_MODE_AUTO);
}

/* Returns true if the mapping of @pc is found at @start or, if @start is 0, if the search fails
 * with @err. */
static inline bool finds(uint64_t pc, uint64_t start, int err)
{
	struct scratch *scratch = scratch__get();
	struct unwind_state *u;

	if (!scratch)
		return false;
	u = &scratch->unwind;
	memset(&u->mapping, 0, sizeof(u->mapping));
	u->pc = pc;
	return mapping__find(u, SPACE) == err && u->mapping.start == start;
}

static inline uint64_t counted(enum counter counter)
{
	uint32_t key = counter;

	return *(uint64_t *)bpf_map_lookup_elem(&counters, &key);
}

/* Returns true if frame @n of the last sample, counted from the innermost one, is @ip with @cfa.
 * Otherwise prints the frame. */
static inline bool has_frame(int n, uint64_t ip, uint64_t cfa)
{
	if (host.sample.head.n_native > n && sample__ip(n) == ip && sample__cfa(n) == cfa)
		return true;
	tap__diag("frame %d of %d: %#llx %#llx, want %#llx %#llx", n, host.sample.head.n_native,
		  (unsigned long long)sample__ip(n), (unsigned long long)sample__cfa(n),
		  (unsigned long long)ip, (unsigned long long)cfa);
	return false;
}

#endif
