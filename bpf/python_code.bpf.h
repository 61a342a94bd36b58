/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PYTHON_CODE_BPF_H
#define BRAID_PYTHON_CODE_BPF_H

#include "bpf/code_object_age.bpf.h"
#include "bpf/python.h"
#include "bpf/thread_local.bpf.h"

/* Code objects and their numbers. The memory of a code object may hold another one a few
 * microseconds later: exec in a loop puts the next function at the address of the last one, with
 * its name and its tables. So a sample identifies a code object only by its content at that sample.
 * The object is read once per sample, and compared with the entry for its address of this CPU or in
 * python_codes. A code object that differs gets a number of its own, and is sent to user space.
 *
 * From 3.12 on a code object has a version that no other one of its interpreter has: one word.
 * Before 3.12, its fields and its texts have to be compared, because other texts may be at the same
 * addresses. bpf/code_object_age.bpf.h has the exception for old code objects. */

#define MS(ns) ((__u32)((ns) >> 20)) /* units of 1.05 ms; wraps around after 52 days */

/* Validity of the check for further interpreters. */
#define INTERPRETERS_RECHECK_NS 10000000ULL

#define FRAME_BLOCK_WORDS 512 /* a page: frames lie close together, and one read serves several */
#define PYTHON_STATES_MAX 4   /* states of one thread, for interpreters that call each other */

/* A code object cached by this CPU. A lookup here is ten times faster than in python_codes. */
struct code_slot {
	__u64 address;
	__u64 identity; /* hash of its fields */
	__u64 glance;	/* result of code__glance() */
	__u64 bytecode; /* bytecode of its last requested copy; 0: none */
	__u32 texts;	/* hash of its texts; 0: it has a version */
	__u32 space;
	__u32 code;
	__u32 copy;
	__u32 walk;	    /* number of the last walk that compared it */
	__u32 since_ms;	    /* time of its first sample with this content */
	__u32 checked_ms;   /* time of the last comparison of any part */
	__u32 refreshed_ms; /* time of the last comparison of all parts, with a lookup in
			       python_codes */
};
#define CODE_SLOTS_LOG2 12
#define CODE_SLOTS	(1 << CODE_SLOTS_LOG2)

struct python_state {
	struct python_proc_rec proc;
	__u64 now_ns;
	__u32 walk;	/* number of this walk in this memory, from 1 */
	__u32 proc_key; /* key of `proc` in python_procs */
	__u32 mixed;	/* the thread also has frames of another copy, which are missing */
	__u32 replaces; /* the process has replaced code objects recently */
	__u64 frame;
	__u64 cframe, cframe_previous; /* those of the segment and of the next outer one */
	__u64 block_start, block_bytes;
	__u64 tstates[PYTHON_STATES_MAX];	/* innermost first */
	__u64 fsbase, list_interp, list_tstate; /* position of the search for them */
	__u32 n_tstates, next_tstate;
	__u32 n;	  /* frames */
	__u32 chain_n;	  /* frames when the thread state's walk began */
	__u32 chain_word; /* words of the sample when it began */
	__u32 segments;
	__u32 begins; /* the thread's first loop begins: it may have no frame yet */
	__u32 complete, truncated;
	__u32 inferred;		   /* a caller is not the linked one */
	__u64 linking, linking_to; /* a frame to be linked, its caller; 0: none */
	/* The last text that this walk hashed. Most frames have the same file as the last one. */
	__u64 text, text_identity;
	__u64 block[FRAME_BLOCK_WORDS];
	__u64 code[PYTHON_CODE_BYTES / 8];
	struct code_slot slots[CODE_SLOTS];
	struct rec_code_object rec;
};

struct code_key {
	__u64 address;
	__u32 space;
	__u32 pad;
};

struct code_entry {
	__u32 code; /* as in rec_code_object; first: runtime.codes */
	__u32 pad;
	__u64 identity;
	__u64 checked_ns; /* by a probe */
};

/* The fields that distinguish code objects at the same address. */
struct code_fields {
	__u64 file, name, line_table; /* addresses */
	__u32 first_line;
	__u32 version; /* unique in its interpreter; 0: it has none */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CODE_OBJECTS_CACHED);
	__type(key, struct code_key);
	__type(value, struct code_entry);
} python_codes __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32); /* address space */
	__type(value, struct python_proc_rec);
} python_procs __weak SEC(".maps");

/* From 3.12 on classes are called through code of the interpreter itself (_Py_InitCleanup,
 * Python/specialize.c), which it hides from tracebacks. Its file is its name. */
#define CODE_HIDDEN 0xffffffff

/* Returns a field of a code object. @words: PYTHON_CODE_BYTES of the object, from code_base on. */
static __always_inline __u64 object__word(const __u64 *words, const struct python_offsets *offsets,
					  __u16 offset)
{
	return words[((__u32)(offset - offsets->code_base) >> 3) & (PYTHON_CODE_BYTES / 8 - 1)];
}

static __always_inline __u32 object__half(const __u64 *words, const struct python_offsets *offsets,
					  __u16 offset)
{
	return object__word(words, offsets, offset & ~7) >> 8 * (offset & 7);
}

static __always_inline __u32 code__slot(__u64 address)
{
	__u64 hash = address * 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */

	return hash >> (64 - CODE_SLOTS_LOG2) & (CODE_SLOTS - 1);
}

static __always_inline __u64 code__word(const struct python_state *state, __u16 offset)
{
	return object__word(state->code, &state->proc.offsets, offset);
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

/* Copies at most CODE_OBJECT_TEXT_BYTES of a string. Returns its kind << 16 | length in characters,
 * or -1. */
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
	bytes = head.length > CODE_OBJECT_TEXT_BYTES ? CODE_OBJECT_TEXT_BYTES : head.length * kind;
	if (bytes > CODE_OBJECT_TEXT_BYTES)
		bytes = CODE_OBJECT_TEXT_BYTES;
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
	struct rec_code_object *rec = &state->rec;
	__u64 table = code__word(state, offsets->code_line_table) + offsets->object_bytes;
	__u32 size;

	rec->type = REC_CODE_OBJECT;
	rec->code = code;
	rec->tgid = scratch->sample.tgid;
	rec->walker = WALKER_PYTHON;
	rec->address = address;
	rec->table_address = table + PYTHON_BYTES_DATA;
	rec->table_size = 0;
	rec->table_format = offsets->line_format;
	rec->first_line = object__half(state->code, offsets, offsets->code_first_line);
	code__set_text(text__read(offsets, code__word(state, offsets->code_name), rec->name),
		       &rec->name_kind, &rec->name_len);
	code__set_text(text__read(offsets, code__word(state, offsets->code_file), rec->file),
		       &rec->file_kind, &rec->file_len);
	read_user(&rec->table_size, sizeof(rec->table_size), table + PYTHON_BYTES_SIZE);
	size = rec->table_size;
	if (size > CODE_OBJECT_TABLE_BYTES)
		size = CODE_OBJECT_TABLE_BYTES;
	if (read_user(rec->table, size, rec->table_address))
		size = 0; /* not in memory yet: user space reads it */
	return bpf_ringbuf_output(&ring, rec, sizeof(*rec) - CODE_OBJECT_TABLE_BYTES + size,
				  ring__flags());
}

static __always_inline __u64 hash__add(__u64 hash, __u64 word)
{
	return (hash ^ word) * 0x9e3779b97f4a7c15ULL + (hash >> 29); /* 2^64 / golden ratio */
}

#define TEXT_HASHED_WORDS 8

/* Returns a hash of a string's length and characters. It uses the hash that the string
 * contains, as interned strings do; else its last 64 bytes. 0: it is not a compact string, or
 * unreadable. */
static __noinline __u64 text__identity(const struct python_offsets *offsets, __u64 text)
{
	__u64 words[TEXT_HASHED_WORDS] = {}, bytes, identity;
	struct unicode_head head = {};
	__u32 kind, i;

	if (!offsets || text__head(offsets, text, &head))
		return 0;
	kind = text__kind(&head);
	if (!kind)
		return 0;
	identity = hash__add(kind, head.length);
	if (head.hash != ~0ULL)
		return hash__add(identity, head.hash) | 1;
	text += head.state & 1 << 6 ? offsets->unicode_ascii_data : offsets->unicode_compact_data;
	bytes = head.length * kind;
	if (bytes > sizeof(words))
		text += bytes - sizeof(words);
	barrier_var(bytes); /* else the verifier sees only the bound of a copy */
	if (bytes > sizeof(words))
		bytes = sizeof(words);
	if (read_user(words, bytes, text))
		return 0;
	for (i = 0; i < TEXT_HASHED_WORDS; i++)
		identity = hash__add(identity, words[i]);
	return identity | 1;
}

static __always_inline int text__is(const struct python_offsets *offsets, __u64 text)
{
	struct unicode_head head = {};

	return !text__head(offsets, text, &head) && text__kind(&head);
}

static __always_inline void object__fields(const __u64 *words, const struct python_offsets *offsets,
					   struct code_fields *ret)
{
	ret->file = object__word(words, offsets, offsets->code_file);
	ret->name = object__word(words, offsets, offsets->code_name);
	ret->line_table = object__word(words, offsets, offsets->code_line_table);
	ret->first_line = object__half(words, offsets, offsets->code_first_line);
	ret->version =
		offsets->code_version ? object__half(words, offsets, offsets->code_version) : 0;
}

static __always_inline __u64 fields__identity(const struct code_fields *fields)
{
	__u64 identity = hash__add(fields->first_line | (__u64)fields->version << 32, fields->file);

	identity = hash__add(identity, fields->name);
	return hash__add(identity, fields->line_table);
}

/* Returns a hash of both texts. @name, @file: text__identity(). */
static __always_inline __u32 texts__hash(__u64 name, __u64 file)
{
	return hash__add(name, file) >> 32 | 1;
}

/* Hashes a text unless it is the one that was hashed last. */
static __always_inline __u64 text__identity_once(struct python_state *state, __u64 text)
{
	if (state->text != text) {
		state->text = text;
		state->text_identity = text__identity(&state->proc.offsets, text);
	}
	return state->text_identity;
}

/* Returns the hash of the name and the file of the code object in state->code; 0: the name is
 * unreadable or not a string. */
static __noinline __u32 code__texts(struct python_state *state)
{
	const struct python_offsets *offsets;
	__u64 file, name;

	if (!state)
		return 0;
	offsets = &state->proc.offsets;
	file = text__identity_once(state, code__word(state, offsets->code_file));
	name = text__identity(offsets, code__word(state, offsets->code_name));
	return name ? texts__hash(name, file) : 0;
}

static __always_inline void code__note_replaced(struct python_state *state)
{
	__u32 key = state->proc_key; /* on the stack, as Linux 6.1 requires for a key */
	struct python_proc_rec *proc = bpf_map_lookup_elem(&python_procs, &key);

	state->replaces = 1;
	if (proc)
		proc->replaced_ns = state->now_ns;
}

#define GLANCE_WORDS 4

/* Reads a small part of the code object at @address: its version or, for code objects without one,
 * the pointers from its file on. */
static __always_inline __u64 code__glance(const struct python_state *state, __u64 address)
{
	__u64 words[GLANCE_WORDS] = {}, glance;
	__u32 version = state->proc.offsets.code_version, i;

	if (read_user(words, version ? sizeof(*words) : sizeof(words),
		      address + (version ? version & ~7U : state->proc.offsets.code_file)))
		return 0;
	glance = words[0];
	for (i = 1; i < GLANCE_WORDS; i++)
		glance = glance * 0x9e3779b97f4a7c15ULL + words[i];
	return glance;
}

static __always_inline int slot__is_old(const struct code_slot *slot,
					const struct python_state *state)
{
	return !state->replaces && MS(state->now_ns) - slot->since_ms > MS(CODE_OBJECT_OLD_NS);
}

/* Returns 1 if the code object in @slot need not be compared. */
static __always_inline int slot__is_fresh(const struct code_slot *slot,
					  const struct python_state *state)
{
	return slot__is_old(slot, state) &&
	       MS(state->now_ns) - slot->checked_ms < MS(CODE_OBJECT_RECHECK_NS);
}

/* Returns 1 if a glance at the code object in @slot is enough. */
static __always_inline int slot__glances(const struct code_slot *slot,
					 const struct python_state *state)
{
	return MS(state->now_ns) - slot->refreshed_ms < MS(CODE_OBJECT_REFRESH_NS) &&
	       (!slot->texts || (!state->proc.offsets.code_version && slot__is_old(slot, state)));
}

/* Returns the number of the code object in state->code, and sends the object if it is new. 0: it is
 * not a code object. Fills in its slot, but leaves that empty if the code object could not be sent:
 * the next sample tries again. */
static __noinline __u32 code__intern(struct python_state *state, const struct scratch *scratch,
				     __u64 address, __u64 identity, __u32 texts)
{
	struct code_slot *slot = &state->slots[code__slot(address)];
	struct code_key key = { .address = address, .space = scratch->proc.space };
	struct code_entry *existing, entry = { .identity = hash__add(identity, texts) };
	__u32 now_ms = MS(state->now_ns);

	if (slot->address != address || slot->space != key.space || slot->identity != identity ||
	    slot->texts != texts)
		slot->since_ms = now_ms;
	slot->address = address;
	slot->space = key.space;
	slot->identity = identity;
	slot->texts = texts;
	slot->glance = code__glance(state, address);
	slot->walk = state->walk;
	slot->checked_ms = slot->refreshed_ms = now_ms;
	slot->bytecode = 0;
	existing = bpf_map_lookup_elem(&python_codes, &key);
	if (existing && existing->identity == entry.identity) {
		slot->code = existing->code;
		return existing->code;
	}
	if (!text__is(&state->proc.offsets, code__word(state, state->proc.offsets.code_name))) {
		slot->address = 0;
		return 0;
	}
	if (existing)
		code__note_replaced(state);
	slot->code = entry.code = code_object__new();
	entry.checked_ns = state->now_ns;
	if (code__send(state, scratch, address, entry.code) ||
	    bpf_map_update_elem(&python_codes, &key, &entry, BPF_ANY)) {
		slot->address = 0;
		count(COUNT_CODE_LOST);
	}
	return entry.code;
}

/* As code__number(), for a code object that is new to this walk. CODE_HIDDEN: it is the
 * interpreter's own. */
static __noinline __u32 code__look(struct python_state *state, const struct scratch *scratch,
				   __u64 address)
{
	struct code_fields fields = {};
	struct code_slot *slot;
	__u32 texts = 0, same;
	__u64 identity;

	if (!state || !scratch)
		return 0;
	slot = &state->slots[code__slot(address)];
	same = slot->address == address && slot->space == scratch->proc.space;
	if (same && slot__glances(slot, state) && code__glance(state, address) == slot->glance) {
		slot->checked_ms = MS(state->now_ns);
		slot->walk = state->walk;
		return slot->code;
	}
	if (read_user(state->code, PYTHON_CODE_BYTES, address + state->proc.offsets.code_base))
		return 0;
	object__fields(state->code, &state->proc.offsets, &fields);
	if (fields.file == fields.name && !fields.first_line)
		return CODE_HIDDEN;
	identity = fields__identity(&fields);
	if (!fields.version) {
		texts = code__texts(state);
		if (!texts)
			return 0;
	}
	if (!same || slot->identity != identity || slot->texts != texts ||
	    MS(state->now_ns) - slot->refreshed_ms >= MS(CODE_OBJECT_REFRESH_NS))
		return code__intern(state, scratch, address, identity, texts);
	slot->checked_ms = MS(state->now_ns);
	slot->walk = state->walk;
	return slot->code;
}

/* Returns the number of the code object at @address; 0: it is unreadable. */
static __always_inline __u32 code__number(struct python_state *state, const struct scratch *scratch,
					  __u64 address)
{
	const struct code_slot *slot = &state->slots[code__slot(address)];

	if (slot->address == address &&
	    (slot->walk == state->walk ||
	     (slot->space == scratch->proc.space && slot__is_fresh(slot, state))))
		return slot->code;
	return code__look(state, scratch, address);
}

#endif
