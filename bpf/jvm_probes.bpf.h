/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_JVM_PROBES_BPF_H
#define BRAID_JVM_PROBES_BPF_H

/* Numbers of Java methods that probes report by class, name and signature, each a text without
 * an end mark and its length. The texts are Symbols of the JVM, of which there is one for each
 * content while it is in use. So addresses identify methods. The content is checked every
 * JVM_RECHECK_NS, as memory may be reused. */

#include "bpf/cache.bpf.h"
#include "bpf/jvm.h"
#include "bpf/probe.bpf.h"

struct jvm_text {
	__u64 address;
	__u32 len; /* bytes */
	__u32 pad;
};

struct jvm_strings {
	struct jvm_text class, name, signature;
};

struct jvm_strings_key {
	__u64 class, name, signature;
	__u32 space;
	__u32 pad;
};

struct jvm_strings_entry {
	__u64 hash; /* hash of all texts */
	__u64 checked_ns;
	__u32 code;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CODE_OBJECTS_CACHED);
	__type(key, struct jvm_strings_key);
	__type(value, struct jvm_strings_entry);
} jvm_strings SEC(".maps");

#define JVM_RECHECK_NS 10000000ULL

/* The bytes at a text's end that are compared, beside its length. */
#define JVM_HASHED_WORDS 16
#define JVM_HASHED_BYTES (8 * JVM_HASHED_WORDS)

_Static_assert(JVM_HASHED_WORDS <= SHADOW_WORDS, "texts in struct shadow");

/* Returns the hash of a text, chained to the hash @before; 0: unreadable. */
__weak __noinline __u64 jvm_text__hash(struct shadow *shadow, const struct jvm_text *text,
				       __u64 before)
{
	__u64 hash = before, address, size;
	int i;

	if (!shadow || !text)
		return 0;
	address = text->address;
	size = text->len;
	barrier_var(size); /* else Linux 6.1's verifier sees the bound of a copy only */
	if (size > JVM_HASHED_BYTES) {
		address += size - JVM_HASHED_BYTES;
		size = JVM_HASHED_BYTES;
	}
	__builtin_memset(shadow->words, 0, JVM_HASHED_BYTES);
	if (bpf_probe_read_user(shadow->words, size, (void *)address))
		return 0;
	for (i = 0; i < JVM_HASHED_WORDS; i++)
		hash = (hash ^ shadow->words[i]) * 0x9e3779b97f4a7c15ULL + (hash >> 29);
	return (hash ^ text->len) | 1;
}

#define JVM_STRINGS_BYTES (REC_CODE_OBJECT_HEADER + 3 * CODE_OBJECT_TEXT_BYTES)

static __always_inline void jvm_text__copy(const struct jvm_text *text, void *to, __u8 *kind,
					   __u16 *len)
{
	__u64 size = text->len;

	barrier_var(size); /* as above */
	if (size > CODE_OBJECT_TEXT_BYTES)
		size = CODE_OBJECT_TEXT_BYTES;
	*len = text->len;
	*kind = CODE_OBJECT_TEXT_UTF8;
	if (!bpf_probe_read_user(to, size, (void *)text->address))
		return;
	*len = *kind = 0;
	count(COUNT_WALK_CODE);
}

static __noinline int jvm_strings__send(const struct jvm_strings *strings, __u32 space, __u32 code)
{
	struct rec_code_object *rec = bpf_ringbuf_reserve(&ring, JVM_STRINGS_BYTES, 0);
	__u16 signature_len;
	__u8 kind;

	if (!rec)
		return -1;
	__builtin_memset(rec, 0, REC_CODE_OBJECT_HEADER);
	rec->type = REC_CODE_OBJECT;
	rec->code = code;
	rec->tgid = task__pid(bpf_get_current_task_btf());
	rec->walker = WALKER_JVM;
	rec->first_line = space;
	rec->table_format = JVM_CODE_STRINGS;
	jvm_text__copy(&strings->name, rec->name, &rec->name_kind, &rec->name_len);
	jvm_text__copy(&strings->class, rec->file, &rec->file_kind, &rec->file_len);
	jvm_text__copy(&strings->signature, rec->table, &kind, &signature_len);
	rec->table_size = signature_len;
	bpf_ringbuf_submit(rec, ring__flags());
	return 0;
}

__weak __noinline __u32 jvm_strings__intern(struct shadow *shadow,
					    const struct jvm_strings *strings)
{
	struct jvm_strings_entry *existing, entry = {};
	struct jvm_strings_key key = {};

	if (!shadow || !strings)
		return 0;
	key.class = strings->class.address;
	key.name = strings->name.address;
	key.signature = strings->signature.address;
	key.space = shadow->space;
	entry.checked_ns = bpf_ktime_get_ns();
	existing = bpf_map_lookup_elem(&jvm_strings, &key);
	if (existing && entry.checked_ns - existing->checked_ns < JVM_RECHECK_NS)
		return existing->code;
	entry.hash = jvm_text__hash(shadow, &strings->class, 1);
	if (entry.hash)
		entry.hash = jvm_text__hash(shadow, &strings->name, entry.hash);
	if (entry.hash)
		entry.hash = jvm_text__hash(shadow, &strings->signature, entry.hash);
	if (!entry.hash) {
		count(COUNT_PROBE_READ);
		return 0;
	}
	if (existing && existing->hash == entry.hash) {
		existing->checked_ns = entry.checked_ns;
		return existing->code;
	}
	entry.code = code_object__new();
	/* A method whose record could not be sent is not cached: the next call tries again. */
	if (jvm_strings__send(strings, key.space, entry.code) ||
	    bpf_map_update_elem(&jvm_strings, &key, &entry, BPF_ANY))
		count(COUNT_CODE_LOST);
	return entry.code;
}

/* --- the probes' arguments: thread, then address and length of class, name, signature --- */

enum {
	JVM_ARG_CLASS = 1,
	JVM_ARG_CLASS_LEN,
	JVM_ARG_NAME,
	JVM_ARG_NAME_LEN,
	JVM_ARG_SIGNATURE,
	JVM_ARG_SIGNATURE_LEN
};

/* The arguments that are read at each hit. */
struct jvm_args {
	__u64 class, name, signature;
};

static __always_inline void args__read(struct pt_regs *ctx, const struct probe_rec *rec,
				       struct jvm_args *ret)
{
	ret->class = probe__arg(ctx, &rec->args[JVM_ARG_CLASS]);
	ret->name = probe__arg(ctx, &rec->args[JVM_ARG_NAME]);
	ret->signature = probe__arg(ctx, &rec->args[JVM_ARG_SIGNATURE]);
}

/* Returns the id by which a method's return is matched to its entry. */
static __always_inline __u32 args__id(const struct jvm_args *args)
{
	return (args->class * 0x9e3779b97f4a7c15ULL + args->name * 0xbf58476d1ce4e5b9ULL +
		args->signature * 0x94d049bb133111ebULL) >>
	       32;
}

static __noinline __u32 method__learn(struct pt_regs *ctx, const struct probe_rec *rec,
				      struct shadow *shadow, const struct jvm_args *args)
{
	struct jvm_strings strings = {};
	__u32 code;

	strings.class.address = args->class;
	strings.class.len = probe__arg(ctx, &rec->args[JVM_ARG_CLASS_LEN]);
	strings.name.address = args->name;
	strings.name.len = probe__arg(ctx, &rec->args[JVM_ARG_NAME_LEN]);
	strings.signature.address = args->signature;
	strings.signature.len = probe__arg(ctx, &rec->args[JVM_ARG_SIGNATURE_LEN]);
	code = jvm_strings__intern(shadow, &strings);
	cache__set(shadow, args->class, args->name, args->signature, code);
	return code;
}

/* Returns the number of the method; 0: unreadable. */
static __always_inline __u32 method__number(struct pt_regs *ctx, const struct probe_rec *rec,
					    struct shadow *shadow, const struct jvm_args *args)
{
	/* 32 bits suffice: methods with the same name and class have no two signatures 4 GiB
	 * apart. */
	__u32 signature = args->signature;
	const struct shadow_cache *cache = cache__at(shadow, args->class, args->name, signature);

	return cache__is(cache, args->class, args->name, signature)
		       ? cache->code
		       : method__learn(ctx, rec, shadow, args);
}

#endif
