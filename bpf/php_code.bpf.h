/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PHP_CODE_BPF_H
#define BRAID_PHP_CODE_BPF_H

#include "bpf/code_object_age.bpf.h"
#include "bpf/php_procs.bpf.h"
#include "bpf/thread_local.bpf.h"

/* Functions and their numbers: read once, compared as described in bpf/code_object_age.bpf.h, sent
 * to user space once per content. */

/* Identity of a function. A closure has a copy of its function for each object, and a trait's
 * function is declared once for each class. They are the same function if code, name and class are
 * equal. */
struct php_code_key {
	__u64 code; /* address: zend_op_array.opcodes, or the handler */
	__u64 name, class;
	__u32 space;
	__u32 kind; /* enum php_code_kind */
};

struct php_code_entry {
	__u32 code; /* as in rec_code_object; first: runtime.codes */
	__u32 pad;
	__u64 file, class_name; /* addresses: zend_string */
	__u64 name_hash, class_hash, file_hash;
	__u64 since_ns, checked_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CODE_OBJECTS_CACHED);
	__type(key, struct php_code_key);
	__type(value, struct php_code_entry);
} php_codes __weak SEC(".maps");

/* zend_execute_data, zend_compile.h, by words */
#define FRAME_WORDS    7
#define FRAME_OPLINE   0
#define FRAME_FUNC     3
#define FRAME_THIS     4
#define FRAME_INFO     5 /* This.u1.type_info, the lower half */
#define FRAME_PREV     6
#define INFO_TOP       (1U << 17) /* ZEND_CALL_TOP */
#define INFO_GENERATOR (1U << 24) /* ZEND_CALL_GENERATOR */

/* zend_op, zend_compile.h: extended_value, lineno and opcode after it */
#define OP_BYTES    32
#define OP_EXTENDED 20

struct php_op {
	__u32 extended;
	__u32 line;
	__u32 code; /* in the lowest byte */
};
#define OP_CODE 0xff

/* zend_vm_opcodes.h */
#define OP_INCLUDE_OR_EVAL 73

/* Kinds of include: extended_value of that operation (zend_compile.h) */
#define EXTENDED_EVAL	      1
#define EXTENDED_INCLUDE      2
#define EXTENDED_INCLUDE_ONCE 4
#define EXTENDED_REQUIRE      8
#define EXTENDED_REQUIRE_ONCE 16

/* Words of a zend_op_array or zend_internal_function that are read, 8 bytes each. The first ones
 * are common to both (zend_compile.h). The values below are indices of words, and flags in a word.
 */
#define FUNCTION_WORDS 16
#define FUNCTION_TYPE  0xff
#define FUNCTION_VIA   (1ULL << (32 + 18)) /* fn_flags: ZEND_ACC_CALL_VIA_TRAMPOLINE */
#define FUNCTION_COPIED \
	(FUNCTION_VIA | 3ULL << (32 + 22)) /* ... or ZEND_ACC_CLOSURE, ZEND_ACC_FAKE_CLOSURE */
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

/* The lookup of a frame's function. */
struct php_call {
	struct php_code_key key;
	__u64 frame[FRAME_WORDS];
	__u64 function[FUNCTION_WORDS];
	__u64 now_ns;
	__u64 since_ns, checked_ns;
	__u32 tgid;
	__u32 code;
	__u32 replaces; /* the process has replaced code recently */
	__u32 probed;	/* 1: at a probe, where each call would pay for a comparison */
	struct php_offsets offsets;
	struct php_code_entry entry;
};

static __always_inline int function__load(struct php_call *call, __u64 address)
{
	return read_user(call->function, sizeof(call->function), address);
}

static __always_inline __u64 function__word(const struct php_call *call, __u32 offset)
{
	return call->function[(offset >> 3) & (FUNCTION_WORDS - 1)];
}

/* Returns the size of the operations of call->function, in bytes. */
static __always_inline __u64 function__bytes(const struct php_call *call)
{
	__u32 last = call->offsets.last;

	return OP_BYTES * (function__word(call, last) >> 8 * (last & 4) & 0xffffffff);
}

/* Returns the kind of code without a name: the main script, or an included file. The caller's
 * operation contains the kind of include. */
static __noinline __u32 script__kind(const struct php_call *call)
{
	struct php_op op;
	__u64 opline;

	if (!call->frame[FRAME_PREV] ||
	    read_user(&opline, sizeof(opline), call->frame[FRAME_PREV] + 8 * FRAME_OPLINE) ||
	    read_user(&op, sizeof(op), opline + OP_EXTENDED) ||
	    (op.code & OP_CODE) != OP_INCLUDE_OR_EVAL)
		return call->frame[FRAME_INFO] & INFO_TOP ? PHP_CODE_MAIN : PHP_CODE_INCLUDE;
	switch (op.extended) {
	case EXTENDED_EVAL:
		return PHP_CODE_EVAL;
	case EXTENDED_INCLUDE_ONCE:
		return PHP_CODE_INCLUDE_ONCE;
	case EXTENDED_REQUIRE:
		return PHP_CODE_REQUIRE;
	case EXTENDED_REQUIRE_ONCE:
		return PHP_CODE_REQUIRE_ONCE;
	}
	return PHP_CODE_INCLUDE;
}

/* Returns an enum php_code_kind, or PHP_CODE_KINDS_N if it is unknown. */
static __always_inline __u32 function__kind(const struct php_call *call)
{
	switch (call->function[0] & FUNCTION_TYPE) {
	case TYPE_INTERNAL:
		return PHP_CODE_NATIVE;
	case TYPE_EVAL:
		return PHP_CODE_EVAL;
	case TYPE_USER:
		return call->function[FUNCTION_NAME] ? PHP_CODE_FUNCTION : script__kind(call);
	}
	return PHP_CODE_KINDS_N;
}

static __always_inline int kind__is_native(__u32 kind)
{
	return kind == PHP_CODE_NATIVE || kind == PHP_CODE_FRAMELESS;
}

/* Copies at most @size bytes of a string. Returns its length, or a negative value if it is
 * unreadable. */
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
	if (bytes > CODE_OBJECT_TEXT_BYTES)
		bytes = CODE_OBJECT_TEXT_BYTES;
	if (read_user(to, bytes, string + STRING_VAL))
		return -1;
	return len;
}

/* Returns a hash of a string from its length and its last bytes. PHP's own hashes are made only on
 * demand. */
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

/* Sends the record, which is made in the ring itself. Probe programs can be preempted by others on
 * the same CPU, and have no memory of their own of this size. */
#define PHP_REC_BYTES (offsetof(struct rec_code_object, table) + sizeof(struct php_code_table))

static __noinline int call__send(const struct php_call *call)
{
	struct php_code_table *table;
	struct rec_code_object *rec;
	int len;

	rec = bpf_ringbuf_reserve(&ring, PHP_REC_BYTES, 0);
	if (!rec)
		return -1;
	table = (void *)rec->table;
	__builtin_memset(rec, 0, REC_CODE_OBJECT_HEADER);
	__builtin_memset(table, 0, sizeof(*table));
	len = string__read(call->key.name, rec->name, CODE_OBJECT_TEXT_BYTES);
	rec->type = REC_CODE_OBJECT;
	rec->code = call->entry.code;
	rec->tgid = call->tgid;
	rec->walker = WALKER_PHP;
	rec->address = call->key.code;
	rec->table_size = sizeof(*table);
	rec->name_kind = len < 0 ? 0 : CODE_OBJECT_TEXT_UTF8;
	rec->name_len = len < 0 ? 0 : len;
	len = string__read(call->entry.file, rec->file, CODE_OBJECT_TEXT_BYTES);
	rec->file_kind = len < 0 ? 0 : CODE_OBJECT_TEXT_UTF8;
	rec->file_len = len < 0 ? 0 : len;
	len = string__read(call->entry.class_name, table->class_name, PHP_CLASS_BYTES);
	table->class_kind = len < 0 ? 0 : CODE_OBJECT_TEXT_UTF8;
	table->class_len = len < 0 ? 0 : len;
	table->kind = call->key.kind;
	table->is_trampoline = !!(call->function[0] & FUNCTION_VIA);
	table->handler = kind__is_native(call->key.kind) ? call->key.code : 0;
	bpf_ringbuf_submit(rec, ring__flags());
	return 0;
}

static __always_inline int entry__fill(struct php_call *call)
{
	struct php_code_entry *entry = &call->entry;

	entry->file = entry->class_name = 0;
	if (!kind__is_native(call->key.kind) &&
	    read_user(&entry->file, sizeof(entry->file),
		      call->frame[FRAME_FUNC] + call->offsets.filename))
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

static __noinline int call__note_replaced(struct php_call *call)
{
	__u32 space = call->key.space; /* on the stack, as Linux 6.1 requires for a key */
	struct php_proc_rec *proc = bpf_map_lookup_elem(&php_procs, &space);

	call->replaces = 1;
	if (proc)
		proc->replaced_ns = call->now_ns;
	return 0;
}

/* Sets call->code to the number of call->function, as code of @kind, or to 0 if the function is
 * unreadable. */
static __noinline int call__intern(struct php_call *call, __u32 kind)
{
	/* On the stack: kernels before 6.2 accept no key or value from a global function's
	 * argument. */
	struct php_code_entry *existing, entry;
	struct php_code_key key;

	call->key.kind = kind;
	call->key.name = call->function[FUNCTION_NAME];
	call->key.class = call->function[FUNCTION_CLASS];
	if (kind != PHP_CODE_FRAMELESS)
		call->key.code =
			function__word(call, kind == PHP_CODE_NATIVE ? call->offsets.handler
								     : call->offsets.opcodes);
	key = call->key;
	existing = bpf_map_lookup_elem(&php_codes, &key);
	call->code = 0;
	call->since_ns = call->now_ns;
	if (existing &&
	    (call->probed ? call->now_ns - existing->checked_ns < CODE_OBJECT_RECHECK_NS
			  : code_object__is_fresh(call->now_ns, call->replaces, existing->since_ns,
						  existing->checked_ns))) {
		call->since_ns = existing->since_ns;
		call->checked_ns = existing->checked_ns;
		call->code = existing->code;
		return 0;
	}
	call->checked_ns = call->now_ns;
	if (entry__fill(call))
		return 0;
	call->entry.since_ns = call->entry.checked_ns = call->now_ns;
	if (existing && entry__is(existing, &call->entry)) {
		existing->checked_ns = call->now_ns;
		call->since_ns = existing->since_ns;
		call->code = existing->code;
		return 0;
	}
	if (existing)
		call__note_replaced(call);
	call->code = call->entry.code = code_object__new();
	/* Code that was not sent is not cached: the next sample tries again. */
	entry = call->entry;
	if (call__send(call) || bpf_map_update_elem(&php_codes, &key, &entry, BPF_ANY)) {
		call->checked_ns = 0;
		count(COUNT_CODE_LOST);
	}
	return 0;
}

/* --- the interpreter --- */

#define BLOCK_THREAD 16 /* tsrm_tls_entry.thread_id, TSRM.c */

/* Finds the thread's executor_globals. With thread safety each thread has an interpreter of its
 * own, in a block of TSRM's under a thread key: TSRM/TSRM.c, tsrm_get_ls_cache(). The block
 * contains its thread's id. The check of this id rejects values of a key that does not belong to
 * TSRM (yet, or any more). *ret becomes 0 if the thread has no interpreter. */
static __noinline int globals__of_thread(const struct php_proc_rec *proc, __u64 *ret)
{
	const struct task_struct *task = bpf_get_current_task_btf();
	__u64 offset, block = 0, owner;
	__u32 key;

	if (!proc || !ret || read_user(&key, sizeof(key), proc->key_at) ||
	    read_user(&offset, sizeof(offset), proc->globals) ||
	    read_specific(&proc->libc, arch__thread_pointer(task), key, &block))
		return -1;
	*ret = 0;
	if (offset && block && !read_user(&owner, sizeof(owner), block + BLOCK_THREAD) &&
	    owner == arch__thread_pointer(task))
		*ret = block + offset;
	return 0;
}

#endif
