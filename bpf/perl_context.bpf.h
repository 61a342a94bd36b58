/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PERL_CONTEXT_BPF_H
#define BRAID_PERL_CONTEXT_BPF_H

#include "bpf/perl_code.bpf.h"

/* The context stacks of an interpreter (cop.h), and the position of the walk in them. */

#define CONTEXT_WORDS 512
#define CONTEXT_BYTES (CONTEXT_WORDS * 8)

/* PERL_CONTEXT, cop.h: the type is the first byte */
#define CONTEXT_OLDCOP 16
#define CONTEXT_RETOP  48
#define CONTEXT_TYPE   0xf
#define CONTEXT_NULL   0 /* CXt_NULL: context of a sort block */
#define CONTEXT_SUB    9
#define CONTEXT_FORMAT 10
#define CONTEXT_EVAL   11
#define CONTEXT_RE_FAKE \
	0x80 /* CXp_SUB_RE_FAKE: code in a pattern, not the subroutine in the context */

/* PERL_SI, cop.h */
#define INFO_WORDS	  6
#define INFO_CXSTACK	  1
#define INFO_PREV	  2
#define INFO_CXIX	  4 /* and si_cxmax, both 32 bits */
#define INFO_CXSUBIX	  5 /* 32 bits */
#define INFO_SORT	  3 /* PERLSI_SORT */
#define INFO_CONTEXTS_MAX (1 << 24)

/* struct cop, cop.h: 32 bits of the line, and the file 12 bytes after it */
#define COP_LINE 36

/* struct op, op.h: op_next, and the type in 9 bits at 32 */
#define OP_WORDS     5
#define OP_TYPE	     32
#define OP_TYPE_MASK 0x1ff
#define OP_UNKNOWN   0xffffffff

#define PADLIST_PADS 8 /* xpadl_arr, pad.h */
#define PHASE_RUN    4 /* PERL_PHASE_RUN, perl.h */

struct perl_cop {
	__u32 line;
	__u32 pad[2]; /* cop_stashoff; part of the same read */
	__u32 file[2];
};

/* The line of a statement, cached by this CPU. It stays valid under the conditions of a cached
 * subroutine. */
struct perl_line {
	__u64 cop; /* address; 0: the slot is free */
	__u64 since_ns, checked_ns;
	__u32 space;
	__u32 line;
};
#define PERL_LINES_LOG2 11
#define PERL_LINES	(1 << PERL_LINES_LOG2)

struct perl_state {
	struct perl_proc_rec proc;
	__u64 base;    /* base address of the interpreter; 0: its fields are variables */
	__u64 cop;     /* address of the statement that the next frame runs */
	__u64 cxstack; /* context stack of the current stackinfo */
	__u64 previous;
	__s32 index;	 /* index of the next context; -1: end */
	__s32 sub_index; /* index of the innermost context of a subroutine, format or eval */
	__u32 type;
	__u32 innermost; /* 1: no context has been examined yet */
	__u32 idle;    /* 1: there is no current operation, because the innermost loop has ended */
	__u32 op_type; /* type of the current operation */
	__u64 op_next;
	__u32 n, complete, truncated;
	/* The innermost frame, if it is of a subroutine that has executed no statement of its
	 * own */
	__u64 first_cv;
	__u32 first_word, first_line;
	struct perl_cop statement;
	__u64 block_start, block_bytes;
	__u64 block[CONTEXT_WORDS];
	struct perl_call call;
	struct perl_slot slots[PERL_SLOTS];
	struct perl_line lines[PERL_LINES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: number of slots */
	__type(key, __u32);
	__type(value, struct perl_state);
} perl_states SEC(".maps");

static __always_inline struct perl_state *state__get(void)
{
	__u32 key = slot__key();

	return bpf_map_lookup_elem(&perl_states, &key);
}

/* --- contexts --- */

static __always_inline __u64 context__word(const struct perl_state *state, __u64 at)
{
	return state->block[(at >> 3) & (CONTEXT_WORDS - 1)];
}

/* Makes the current context readable by context__word(); *ret_at is its offset in the block. The
 * next contexts are below it, so that one read serves many. */
static __noinline int context__load(struct perl_state *state, __u64 *ret_at)
{
	__u64 size = state->proc.offsets.context;
	__u64 at = state->cxstack + size * (__u32)state->index, start;

	if (at & 7 || size > CONTEXT_BYTES)
		return -1;
	if (size <= state->block_bytes && at - state->block_start <= state->block_bytes - size) {
		*ret_at = at - state->block_start;
		return 0;
	}
	start = at + size - CONTEXT_BYTES;
	if (start < state->cxstack || start > at)
		start = state->cxstack;
	state->block_bytes = at + size - start;
	if (state->block_bytes > CONTEXT_BYTES) {
		state->block_bytes = 0;
		return -1;
	}
	if (read_user(state->block, state->block_bytes & (2 * CONTEXT_BYTES - 1), start)) {
		state->block_bytes = 0;
		return -1;
	}
	state->block_start = start;
	*ret_at = at - start;
	return 0;
}

static __noinline int info__load(struct perl_state *state, __u64 info)
{
	__u64 words[INFO_WORDS];
	__s32 max;

	if (read_user(words, sizeof(words), info))
		return -1;
	state->cxstack = words[INFO_CXSTACK];
	state->previous = words[INFO_PREV];
	state->index = (__u32)words[INFO_CXIX];
	max = words[INFO_CXIX] >> 32;
	state->sub_index = state->proc.offsets.si_type > INFO_CXSUBIX * 8
				   ? (__u32)words[INFO_CXSUBIX]
				   : INFO_CONTEXTS_MAX;
	state->block_bytes = 0;
	if (state->index < -1 || state->index > max || max > INFO_CONTEXTS_MAX)
		return -1;
	return read_user(&state->type, sizeof(state->type), info + state->proc.offsets.si_type);
}

#endif
