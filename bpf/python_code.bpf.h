/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PYTHON_CODE_BPF_H
#define BRAID_PYTHON_CODE_BPF_H

#include "bpf/python.h"
#include "bpf/thread_local.bpf.h"

/* Code objects and their numbers: read once, checked now and then, sent to user space once per
 * content. */

/* A code object that was compared with its entry so recently is taken to be the same. Below that,
 * memory that was reused for other code may be shown under the old name. */
#define CODE_RECHECK_NS 10000000ULL

#define FRAME_BLOCK_WORDS 512 /* a page: frames lie close together, and one read serves several */
#define PYTHON_STATES_MAX 4   /* of one thread: interpreters that call each other */

/* What this CPU knows of a code object: looking here is ten times faster than python_codes. */
struct code_slot {
	__u64 address;
	__u64 checked_ns;
	__u32 space;
	__u32 code;
	__u64 bytecode; /* of the copy that was asked for last; 0: of none */
	__u32 copy;
	__u32 pad;
};
#define CODE_SLOTS_LOG2 12
#define CODE_SLOTS	(1 << CODE_SLOTS_LOG2)

struct python_state {
	struct python_proc_rec proc;
	__u64 now_ns;
	__u64 frame;
	__u64 cframe, cframe_previous; /* the segment's, and the one of the next outer segment */
	__u64 block_start, block_bytes;
	__u64 tstates[PYTHON_STATES_MAX];	/* innermost first */
	__u64 fsbase, list_interp, list_tstate; /* where the search for them is */
	__u32 n_tstates, next_tstate;
	__u32 n;	  /* frames */
	__u32 chain_n;	  /* of them when the thread state's walk began ... */
	__u32 chain_word; /* ... and words of the sample then */
	__u32 segments;
	__u32 begins; /* the thread's first loop does: maybe it has no frame yet */
	__u32 complete, truncated;
	__u32 inferred;	  /* the outer segment is not the one that the C frame links */
	__u64 checked_ns; /* the code object that code__intern gave last */
	__u64 block[FRAME_BLOCK_WORDS];
	__u64 code[PYTHON_CODE_BYTES / 8];
	struct code_slot slots[CODE_SLOTS];
	struct rec_code rec;
};

struct code_key {
	__u64 address;
	__u32 space;
	__u32 pad;
};

struct code_entry {
	__u32 code; /* as in rec_code; first: runtime.codes */
	__u32 first_line;
	__u64 file, name, line_table;
	__u64 name_length, name_hash;
	__u64 checked_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CODES_KEPT);
	__type(key, struct code_key);
	__type(value, struct code_entry);
} python_codes __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32); /* address space */
	__type(value, struct python_proc_rec);
} python_procs __weak SEC(".maps");

/* From 3.12 on classes are called by way of code that is the interpreter's own (_Py_InitCleanup,
 * Python/specialize.c), and which it hides from tracebacks. Its file is its name. */
#define CODE_HIDDEN 0xffffffff

static __always_inline __u64 code__word(const struct python_state *state, __u16 offset)
{
	__u32 at = (__u32)(offset - state->proc.offsets.code_base) >> 3;

	return state->code[at & (PYTHON_CODE_BYTES / 8 - 1)];
}

/* PyASCIIObject from `length` on. */
struct unicode_head {
	__u64 length, hash;
	__u32 state; /* interned:2 kind:3 compact:1 ascii:1 */
	__u32 pad;
};

/* Bytes per character; 0: not a compact string. */
static __always_inline __u32 text__kind(const struct unicode_head *head)
{
	__u32 kind = (head->state >> 2) & 7, kinds = 1 << 1 | 1 << 2 | 1 << 4;

	return kinds >> kind & head->state >> 5 & 1 ? kind : 0;
}

static __always_inline int text__head(const struct python_offsets *offsets, __u64 text,
				      struct unicode_head *ret)
{
	if (read_user(ret, sizeof(*ret), text + offsets->object_bytes))
		return -1;
	ret->state >>= offsets->unicode_shift & 31;
	return 0;
}

/* Copies at most CODE_TEXT_BYTES of a string; returns its kind << 16 | length in characters. */
static __noinline int text__read(const struct python_offsets *offsets, __u64 text, char *to)
{
	struct unicode_head head = {};
	__u64 bytes; /* 64 bits: older verifiers lose the bound of a 32-bit product */
	__u32 kind;

	if (!offsets || !to || text__head(offsets, text, &head))
		return -1;
	kind = text__kind(&head);
	if (!kind)
		return -1;
	bytes = head.length > CODE_TEXT_BYTES ? CODE_TEXT_BYTES : head.length * kind;
	if (bytes > CODE_TEXT_BYTES)
		bytes = CODE_TEXT_BYTES;
	text += head.state & 1 << 6 ? offsets->unicode_ascii_data : offsets->unicode_compact_data;
	if (read_user(to, bytes, text))
		return -1;
	return kind << 16 | (head.length > 0xffff ? 0xffff : (__u32)head.length);
}

static __always_inline void code__set_text(int text, __u8 *kind, __u16 *len)
{
	*kind = text < 0 ? 0 : text >> 16;
	*len = text < 0 ? 0 : text & 0xffff;
	if (text < 0)
		count(COUNT_WALK_CODE);
}

static __noinline int code__send(struct python_state *state, const struct scratch *scratch,
				 __u64 address, __u32 code)
{
	const struct python_offsets *offsets = &state->proc.offsets;
	struct rec_code *rec = &state->rec;
	__u64 table = code__word(state, offsets->code_line_table) + offsets->object_bytes;
	__u32 size;

	rec->type = REC_CODE;
	rec->code = code;
	rec->tgid = scratch->sample.tgid;
	rec->walker = WALKER_PYTHON;
	rec->address = address;
	rec->table_address = table + PYTHON_BYTES_DATA;
	rec->table_size = 0;
	rec->table_format = offsets->line_format;
	rec->first_line = code__word(state, offsets->code_first_line & ~7) >>
			  8 * (offsets->code_first_line & 7);
	code__set_text(text__read(offsets, code__word(state, offsets->code_name), rec->name),
		       &rec->name_kind, &rec->name_len);
	code__set_text(text__read(offsets, code__word(state, offsets->code_file), rec->file),
		       &rec->file_kind, &rec->file_len);
	read_user(&rec->table_size, sizeof(rec->table_size), table + PYTHON_BYTES_SIZE);
	size = rec->table_size;
	if (size > CODE_TABLE_BYTES)
		size = CODE_TABLE_BYTES;
	if (read_user(rec->table, size, rec->table_address))
		size = 0; /* not in memory yet: user space reads it */
	return bpf_ringbuf_output(&ring, rec, sizeof(*rec) - CODE_TABLE_BYTES + size,
				  ring__flags());
}

static __always_inline int code__same(const struct code_entry *a, const struct code_entry *b)
{
	return a->first_line == b->first_line && a->file == b->file && a->name == b->name &&
	       a->line_table == b->line_table && a->name_length == b->name_length &&
	       (a->name_hash == b->name_hash || a->name_hash == -1ULL || b->name_hash == -1ULL);
}

/* Number of the code object at `address`, 0 if it cannot be read. Pointers and the name's content
 * are compared, so that memory reused for other code yields another number. */
static __noinline __u32 code__intern(struct python_state *state, const struct scratch *scratch,
				     __u64 address)
{
	struct code_key key = { .address = address, .space = scratch->proc.space };
	const struct python_offsets *offsets = &state->proc.offsets;
	struct code_entry *known, entry = {};
	struct unicode_head head = {};

	known = bpf_map_lookup_elem(&python_codes, &key);
	if (known && state->now_ns - known->checked_ns < CODE_RECHECK_NS) {
		state->checked_ns = known->checked_ns;
		return known->code;
	}
	state->checked_ns = state->now_ns;
	if (read_user(state->code, PYTHON_CODE_BYTES, address + offsets->code_base))
		return 0;
	entry.first_line = code__word(state, offsets->code_first_line & ~7) >>
			   8 * (offsets->code_first_line & 7);
	entry.file = code__word(state, offsets->code_file);
	entry.name = code__word(state, offsets->code_name);
	entry.line_table = code__word(state, offsets->code_line_table);
	if (text__head(offsets, entry.name, &head) || !text__kind(&head))
		return 0; /* no code object at all */
	if (entry.file == entry.name && !entry.first_line)
		return CODE_HIDDEN;
	entry.name_length = head.length;
	entry.name_hash = head.hash;
	entry.checked_ns = state->now_ns;
	if (known && code__same(known, &entry)) {
		known->checked_ns = state->now_ns;
		return known->code;
	}
	entry.code = code__new();
	/* What could not be sent is not remembered: the next sample tries again. */
	if (code__send(state, scratch, address, entry.code) ||
	    bpf_map_update_elem(&python_codes, &key, &entry, BPF_ANY)) {
		state->checked_ns = 0; /* nor by code__number */
		count(COUNT_CODE_LOST);
	}
	return entry.code;
}

static __always_inline __u32 code__slot(__u64 address)
{
	__u64 hash = address * 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */

	return hash >> (64 - CODE_SLOTS_LOG2) & (CODE_SLOTS - 1);
}

/* The same, for less where this CPU has met the code object lately. */
static __always_inline __u32 code__number(struct python_state *state, const struct scratch *scratch,
					  __u64 address)
{
	struct code_slot *slot = &state->slots[code__slot(address)];

	if (slot->address == address && slot->space == scratch->proc.space &&
	    state->now_ns - slot->checked_ns < CODE_RECHECK_NS)
		return slot->code;
	slot->code = code__intern(state, scratch, address);
	slot->address = slot->code ? address : 0;
	slot->space = scratch->proc.space;
	slot->checked_ns = state->checked_ns;
	slot->bytecode = 0;
	return slot->code;
}

#endif
