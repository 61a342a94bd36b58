/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_RUBY_CODE_BPF_H
#define BRAID_RUBY_CODE_BPF_H

#include "bpf/code_object_age.bpf.h"
#include "bpf/ruby_object.bpf.h"
#include "bpf/ruby_procs.bpf.h"

/* Numbers of the code that CRuby's control frames run: an iseq as (part of) a method, or a method
 * in C. Code is read once, compared as described in bpf/code_object_age.bpf.h, and sent to user
 * space once per content. Samples and probes use the same numbers. */

/* Interval between comparisons of old code, in ns. A comparison costs 2 us if nothing is in the
 * cache. An iseq is also identified by the address of its instructions, which each frame's pc
 * checks at no cost. */
#define RUBY_RECHECK_NS(iseq) ((iseq) ? 1000000000ULL : 100000000ULL)

struct ruby_key {
	__u64 iseq, method;
	__u32 space;
	__u32 by_block;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CODE_OBJECTS_CACHED);
	__type(key, struct ruby_key);
	__type(value, struct ruby_entry);
} ruby_codes __weak SEC(".maps");

static __always_inline __u64 call__word(const struct ruby_call *call, __u32 offset)
{
	return call->words[offset >> 3 & (BODY_WORDS - 1)];
}

/* --- sending --- */

/* Returns the size of a positions table. @size is that of an iseq's instructions, in words. The
 * last position is below it, or the last block holds no position. */
static __always_inline __u32 positions__size(__u32 size)
{
	__u32 bytes = 48; /* imm_part: 54 positions */

	if (size > 54)
		bytes += 80 * ((size - 55 + 512) / 512);
	return bytes > RUBY_POSITIONS_BYTES ? RUBY_POSITIONS_BYTES : bytes;
}

static __always_inline void lines__read(const struct ruby_offsets *offsets,
					const struct ruby_call *call, struct ruby_code_table *ret)
{
	__u64 bytes;

	ret->entries = call__word(call, offsets->body_entries);
	ret->positions = call__word(call, offsets->body_positions);
	ret->n_entries = call__word(call, offsets->body_n_entries);
	ret->entry_size = offsets->entry_size;
	ret->iseq_size = call->size;
	bytes = positions__size(call->size);
	if (!read_user(ret->positions_data, bytes & 1023, ret->positions))
		ret->positions_size = bytes;
	bytes = (__u64)ret->n_entries * offsets->entry_size;
	if (bytes > RUBY_ENTRIES_BYTES)
		bytes = RUBY_ENTRIES_BYTES;
	if (!read_user(ret->entries_data, bytes, ret->entries))
		ret->entries_size = bytes;
}

/* Sets a record's name. A name may lie in a file's pages that the process has not touched (a
 * forked child: "<main>" is a string in libruby). User space then reads it from its address. */
static __noinline int rec__set_name(const struct ruby_offsets *offsets, __u64 string,
				    struct rec_code_object *rec)
{
	__u64 from = 0;
	int length = string__find(offsets, string, &from);

	rec->table_address = from;
	rec->name_len = length < 0 ? 0 : length;
	if (string__copy(from, length, rec->name, CODE_OBJECT_TEXT_BYTES) >= 0)
		rec->name_kind = CODE_OBJECT_TEXT_UTF8;
	if (length < 0)
		count(COUNT_WALK_CODE);
	return 0;
}

static __noinline int rec__set_file(const struct ruby_offsets *offsets, __u64 string,
				    struct rec_code_object *rec)
{
	__u64 from = 0;
	int length = string__find(offsets, string, &from);

	rec->address = from;
	rec->file_len = length < 0 ? 0 : length;
	if (string__copy(from, length, rec->file, CODE_OBJECT_TEXT_BYTES) >= 0)
		rec->file_kind = CODE_OBJECT_TEXT_UTF8;
	return 0;
}

/* Returns the label of the code around evaluated code (calculate_iseq_label, vm_backtrace.c). The
 * label of evaluated code itself shows only that it was compiled. */
static __noinline __u64 eval__label(const struct ruby_offsets *offsets, __u64 iseq)
{
	__u64 body, label;
	__u32 type, i;

	for (i = 0; i < EVAL_LEVELS_MAX; i++) {
		if (read_user(&body, sizeof(body), iseq + ISEQ_BODY) ||
		    read_user(&type, sizeof(type), body))
			return 0;
		if (type != ISEQ_EVAL)
			return read_user(&label, sizeof(label), body + BODY_LABEL) ? 0 : label;
		if (read_user(&iseq, sizeof(iseq), body + offsets->body_local - 8))
			return 0;
	}
	return 0;
}

/* Fills in a record; call->words is the iseq's body. */
static __noinline int iseq__send(const struct ruby_proc_rec *proc, struct ruby_call *call,
				 struct rec_code_object *rec)
{
	struct ruby_code_table *table = (void *)rec->table;
	const struct ruby_offsets *offsets;
	__u64 id, label = call->entry.label, path = call->entry.path, flags;

	offsets = &proc->offsets;
	rec->first_line = call__word(call, offsets->body_first_line & ~7) >>
			  8 * (offsets->body_first_line & 7);
	if (offsets->first_line_is_value)
		rec->first_line >>= 1;
	lines__read(offsets, call, table);
	if (call->by_block && call->entry.definition &&
	    !read_user(&id, sizeof(id), call->entry.definition + DEFINITION_ID)) {
		table->kind = RUBY_CODE_METHOD;
		label = id__string(proc, id);
	}
	if ((__u32)call->words[0] == ISEQ_EVAL)
		label = eval__label(offsets, call__word(call, offsets->body_local - 8));
	flags = value__flags(path);
	if ((flags & TYPE_MASK) == TYPE_ARRAY)
		path = array__at(path, 0);
	rec__set_name(offsets, label, rec);
	rec__set_file(offsets, path, rec);
	return 0;
}

static __noinline int method__send(const struct ruby_proc_rec *proc, const struct ruby_call *call,
				   struct rec_code_object *rec)
{
	struct ruby_code_table *table = (void *)rec->table;
	__u64 id = 0, definition = call->entry.definition;

	table->kind = RUBY_CODE_C;
	read_user(&table->native, sizeof(table->native), definition + DEFINITION_BODY);
	read_user(&id, sizeof(id), definition + DEFINITION_ID);
	rec__set_name(&proc->offsets, id__string(proc, id), rec);
	return 0;
}

static __noinline int code__announce(const struct ruby_proc_rec *proc, struct ruby_call *call)
{
	struct ruby_code_table *table;
	struct rec_code_object *rec;

	rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);
	if (!rec)
		return -1;
	table = (void *)rec->table;
	__builtin_memset(rec, 0, REC_CODE_OBJECT_HEADER);
	__builtin_memset(table, 0, offsetof(struct ruby_code_table, owner_name));
	rec->type = REC_CODE_OBJECT;
	rec->code = call->entry.code;
	rec->tgid = call->tgid;
	rec->walker = WALKER_RUBY;
	rec->table_size = sizeof(*table);
	if (call->iseq)
		iseq__send(proc, call, rec);
	else
		method__send(proc, call, rec);
	if (call->entry.owner)
		owner__read(&proc->offsets, call, call->entry.owner, table);
	bpf_ringbuf_submit(rec, ring__flags());
	return 0;
}

/* --- numbers --- */

/* Reads a frame's method entry; `ret` gets its definition and owner. Returns the entry, or 0. */
static __always_inline __u64 method__read(__u64 method, struct ruby_entry *ret)
{
	__u64 words[METHOD_WORDS];

	if (!is_object(method) || read_user(words, sizeof(words), method))
		return 0;
	if ((words[0] & TYPE_MASK) == TYPE_IMEMO && IMEMO_TYPE(words[0]) == IMEMO_SVAR) {
		method = words[SVAR_ME];
		if (!is_object(method) || read_user(words, sizeof(words), method))
			return 0;
	}
	if ((words[0] & TYPE_MASK) != TYPE_IMEMO || IMEMO_TYPE(words[0]) != IMEMO_METHOD)
		return 0;
	ret->definition = words[2];
	ret->owner = words[4];
	return method;
}

static __always_inline int entry__same(const struct ruby_entry *a, const struct ruby_entry *b)
{
	return a->start == b->start && a->size == b->size && a->label == b->label &&
	       a->path == b->path && a->definition == b->definition && a->owner == b->owner &&
	       a->texts == b->texts;
}

static __always_inline int call__use_existing(struct ruby_call *call,
					      const struct ruby_entry *existing)
{
	call->code = existing->code;
	call->start = existing->start;
	call->size = existing->size;
	call->since_ns = existing->since_ns;
	call->checked_ns = existing->checked_ns;
	return 0;
}

/* Returns true if cached code needs no comparison. @recheck_ns: RUBY_RECHECK_NS() */
static __always_inline int call__is_fresh(const struct ruby_call *call, __u64 since_ns,
					  __u64 checked_ns, __u64 recheck_ns)
{
	if (checked_ns == call->now_ns)
		return 1;
	return call->now_ns - checked_ns < recheck_ns &&
	       (call->probed || (!call->replaces && checked_ns - since_ns >= CODE_OBJECT_OLD_NS));
}

/* Hashes the texts of an entry. */
static __noinline __u64 entry__texts(const struct ruby_proc_rec *proc,
				     const struct ruby_entry *entry, __u32 by_block)
{
	__u64 hash = 1, path;

	if (!proc || !entry)
		return 0;
	path = entry->path;
	if (path && (value__flags(path) & TYPE_MASK) == TYPE_ARRAY)
		path = array__at(path, 0);
	if (!by_block) /* else the name is the method's */
		hash = string__hash(&proc->offsets, entry->label, hash);
	return string__hash(&proc->offsets, path, hash);
}

/* Copies the entry first: Linux 6.1 rejects a caller's memory as a map's value. */
static __noinline int entry__put(const struct ruby_key *key, const struct ruby_entry *entry)
{
	struct ruby_entry copy = *entry;

	return bpf_map_update_elem(&ruby_codes, key, &copy, BPF_ANY);
}

/* Sets the results in @call; its code is 0 if the code is unreadable. */
__weak __noinline int ruby_call__intern(struct ruby_call *call)
{
	struct ruby_key key = {};
	struct ruby_entry *existing, *entry;
	struct ruby_proc_rec *proc;
	__u64 body;

	if (!call)
		return 0;
	entry = &call->entry;
	__builtin_memset(entry, 0, sizeof(*entry));
	call->code = 0;
	key.space = call->space;
	key.iseq = call->iseq;
	key.by_block = call->by_block;
	proc = bpf_map_lookup_elem(&ruby_procs, &key.space);
	if (!proc)
		return 0;
	key.method = method__read(call->method, entry);
	if (!key.iseq && !key.method)
		return 0;
	existing = bpf_map_lookup_elem(&ruby_codes, &key);
	if (existing && call__is_fresh(call, existing->since_ns, existing->checked_ns,
				       RUBY_RECHECK_NS(key.iseq)))
		return call__use_existing(call, existing);
	if (key.iseq) {
		if (read_user(&body, sizeof(body), key.iseq + ISEQ_BODY) ||
		    read_user(call->words, BODY_BYTES, body))
			return 0;
		entry->start = call__word(call, BODY_ENCODED);
		entry->size = call__word(call, BODY_SIZE & ~7) >> 32;
		entry->label = call__word(call, BODY_LABEL);
		entry->path = call__word(call, BODY_PATH);
	}
	entry->texts = entry__texts(proc, entry, call->by_block);
	entry->since_ns = entry->checked_ns = call->now_ns;
	if (existing && entry__same(existing, entry)) {
		existing->checked_ns = call->now_ns;
		return call__use_existing(call, existing);
	}
	if (existing)
		proc->replaced_ns = call->now_ns;
	call->replaces |= !!existing;
	entry->code = code_object__new();
	call__use_existing(call, entry);
	/* Code whose record could not be sent is not cached: the next sample tries again. */
	if (code__announce(proc, call) || entry__put(&key, entry)) {
		call->checked_ns = 0;
		count(COUNT_CODE_LOST);
	}
	return 0;
}

#endif
