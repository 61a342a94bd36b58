/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PHP_CODE_BPF_H
#define BRAID_PHP_CODE_BPF_H

#include "bpf/php_procs.bpf.h"
#include "bpf/thread_local.bpf.h"

/* Functions and their numbers: read once, checked now and then, sent to user space once per
 * content. */

/* What was compared with its entry so recently is taken to be the same. Below that, memory that was
 * reused for other code may be shown under the old name. */
#define PHP_RECHECK_NS 10000000ULL

/* A closure has a copy of its function for each object, and what a trait declares one for each
 * class: they are the same function if code, name and class are. */
struct php_code_key {
	__u64 code; /* address: zend_op_array.opcodes, or the handler */
	__u64 name, class;
	__u32 space;
	__u32 kind; /* enum php_code_kind */
};

struct php_code_entry {
	__u32 code; /* as in rec_code; first: runtime.codes */
	__u32 pad;
	__u64 file, class_name; /* addresses: zend_string */
	__u64 name_hash, class_hash, file_hash;
	__u64 checked_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CODES_KEPT);
	__type(key, struct php_code_key);
	__type(value, struct php_code_entry);
} php_codes SEC(".maps");

/* What zend_op_array and zend_internal_function begin with (zend_compile.h), and some more of each,
 * by words. */
#define FUNCTION_WORDS 16
#define FUNCTION_TYPE  0xff
#define FUNCTION_VIA   (1ULL << (32 + 18)) /* fn_flags: ZEND_ACC_CALL_VIA_TRAMPOLINE */
#define FUNCTION_NAME  1
#define FUNCTION_CLASS 2

#define TYPE_INTERNAL 1 /* ZEND_INTERNAL_FUNCTION */
#define TYPE_USER     2 /* ZEND_USER_FUNCTION */
#define TYPE_EVAL     4 /* ZEND_EVAL_CODE */

#define CLASS_NAME 8 /* zend_class_entry.name, zend.h */

/* zend_string, zend_types.h */
#define STRING_LEN     16
#define STRING_VAL     24
#define STRING_LEN_MAX 0xffff

/* What this CPU knows of code: looking here is ten times faster than php_codes. */
struct php_slot {
	struct php_code_key key;
	__u64 checked_ns;
	__u32 code;
	__u32 pad;
};
#define PHP_SLOTS_LOG2 11
#define PHP_SLOTS      (1 << PHP_SLOTS_LOG2)

/* What is being looked up. */
struct php_call {
	struct php_code_key key;
	__u64 function; /* address: zend_function */
	__u64 now_ns;
	__u64 checked_ns;
	__u32 tgid;
	__u32 code;
	__u32 is_trampoline;
	__u32 pad;
	struct php_offsets offsets;
	struct php_code_entry entry;
	struct rec_code rec;
};

/* Copies at most `size` bytes of a string; returns its length, negative: unreadable. */
static __noinline int string__read(__u64 string, char *to, __u32 size)
{
	__u64 len, bytes;

	if (!to || !string || read_user(&len, sizeof(len), string + STRING_LEN))
		return -1;
	if (len > STRING_LEN_MAX)
		len = STRING_LEN_MAX;
	bytes = len;
	if (bytes > size)
		bytes = size;
	if (bytes > CODE_TEXT_BYTES)
		bytes = CODE_TEXT_BYTES;
	if (read_user(to, bytes, string + STRING_VAL))
		return -1;
	return len;
}

/* PHP's own hashes are made on demand: length and the last bytes serve as well. */
#define HASH_WORDS 8

static __noinline __u64 string__hash(__u64 string)
{
	__u64 words[HASH_WORDS] = {}, len, hash, bytes, from;
	int i;

	if (!string || read_user(&len, sizeof(len), string + STRING_LEN))
		return 0;
	bytes = len;
	from = string + STRING_VAL;
	if (bytes > sizeof(words)) {
		from += bytes - sizeof(words);
		bytes = sizeof(words);
	}
	if (read_user(words, bytes, from))
		return 0;
	hash = len + 1;
	for (i = 0; i < HASH_WORDS; i++)
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ULL + (hash >> 29);
	return hash;
}

static __noinline int call__send(struct php_call *call)
{
	struct rec_code *rec = &call->rec;
	struct php_code_table *table = (struct php_code_table *)rec->table;
	int len = string__read(call->key.name, rec->name, CODE_TEXT_BYTES);

	rec->type = REC_CODE;
	rec->code = call->entry.code;
	rec->tgid = call->tgid;
	rec->walker = WALKER_PHP;
	rec->address = call->function;
	rec->table_size = sizeof(*table);
	rec->name_kind = len < 0 ? 0 : CODE_TEXT_UTF8;
	rec->name_len = len < 0 ? 0 : len;
	len = string__read(call->entry.file, rec->file, CODE_TEXT_BYTES);
	rec->file_kind = len < 0 ? 0 : CODE_TEXT_UTF8;
	rec->file_len = len < 0 ? 0 : len;
	len = string__read(call->entry.class_name, table->class_name, PHP_CLASS_BYTES);
	table->class_kind = len < 0 ? 0 : CODE_TEXT_UTF8;
	table->class_len = len < 0 ? 0 : len;
	table->kind = call->key.kind;
	table->is_trampoline = call->is_trampoline;
	table->handler = call->key.kind == PHP_CODE_NATIVE ? call->key.code : 0;
	return bpf_ringbuf_output(&ring, rec, sizeof(*rec) - CODE_TABLE_BYTES + sizeof(*table),
				  ring__flags());
}

static __always_inline int entry__fill(struct php_call *call)
{
	struct php_code_entry *entry = &call->entry;

	entry->file = entry->class_name = 0;
	if (call->key.kind != PHP_CODE_NATIVE &&
	    read_user(&entry->file, sizeof(entry->file), call->function + call->offsets.filename))
		return -1;
	if (call->key.class &&
	    read_user(&entry->class_name, sizeof(entry->class_name), call->key.class + CLASS_NAME))
		return -1;
	entry->name_hash = string__hash(call->key.name);
	entry->class_hash = string__hash(entry->class_name);
	entry->file_hash = string__hash(entry->file);
	return 0;
}

static __always_inline int entry__is(const struct php_code_entry *a, const struct php_code_entry *b)
{
	return a->file == b->file && a->class_name == b->class_name &&
	       a->name_hash == b->name_hash && a->class_hash == b->class_hash &&
	       a->file_hash == b->file_hash;
}

/* Sets call->code: the number of what call->key says, 0 if it cannot be read. */
static __noinline int call__intern(struct php_call *call)
{
	struct php_code_entry *known = bpf_map_lookup_elem(&php_codes, &call->key);

	call->code = 0;
	if (known && call->now_ns - known->checked_ns < PHP_RECHECK_NS) {
		call->checked_ns = known->checked_ns;
		call->code = known->code;
		return 0;
	}
	call->checked_ns = call->now_ns;
	if (entry__fill(call))
		return 0;
	call->entry.checked_ns = call->now_ns;
	if (known && entry__is(known, &call->entry)) {
		known->checked_ns = call->now_ns;
		call->code = known->code;
		return 0;
	}
	call->code = call->entry.code = code__new();
	/* What could not be sent is not remembered: the next sample tries again. */
	if (call__send(call) ||
	    bpf_map_update_elem(&php_codes, &call->key, &call->entry, BPF_ANY)) {
		call->checked_ns = 0;
		count(COUNT_CODE_LOST);
	}
	return 0;
}

static __always_inline int key__is(const struct php_code_key *a, const struct php_code_key *b)
{
	return a->code == b->code && a->name == b->name && a->class == b->class &&
	       a->space == b->space && a->kind == b->kind;
}

/* The same, for less where this CPU has met the code lately. */
static __noinline __u32 code__number(struct php_call *call, struct php_slot *slots)
{
	struct php_slot *slot;
	__u64 hash;

	if (!call || !slots)
		return 0;
	hash = (call->key.code + call->key.class + call->key.kind) * 0x9e3779b97f4a7c15ULL;
	slot = &slots[hash >> (64 - PHP_SLOTS_LOG2) & (PHP_SLOTS - 1)];
	if (slot->code && key__is(&slot->key, &call->key) &&
	    call->now_ns - slot->checked_ns < PHP_RECHECK_NS)
		return slot->code;
	call__intern(call);
	slot->key = call->key;
	slot->checked_ns = call->checked_ns;
	slot->code = call->code;
	return slot->code;
}

#endif
