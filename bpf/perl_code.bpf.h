/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PERL_CODE_BPF_H
#define BRAID_PERL_CODE_BPF_H

#include "bpf/code_object_age.bpf.h"
#include "bpf/perl.h"
#include "bpf/thread_local.bpf.h"

/* Subroutines and their numbers: read once, compared as described in bpf/code_object_age.bpf.h,
 * sent to user space once per content. Other code (the main program, evals, required files) is
 * identified by the file of its current statement. */

/* Identity of code: the CV of a subroutine; else the text with its file's name. */
struct perl_code_key {
	__u64 address;
	__u32 space;
	__u32 kind; /* enum perl_code_kind */
};

struct perl_code_entry {
	__u32 code; /* as in rec_code_object; the first member, as runtime.codes requires */
	__u32 pad;
	__u64 name, stash, file; /* addresses: HEK, HV, char */
	__u64 hash;		 /* hash of the texts of name, package and file */
	__u64 since_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32); /* address space */
	__type(value, struct perl_proc_rec);
} perl_procs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CODE_OBJECTS_CACHED);
	__type(key, struct perl_code_key);
	__type(value, struct perl_code_entry);
} perl_codes SEC(".maps");

/* struct sv, sv.h: the beginning of all values */
struct perl_head {
	__u64 body; /* sv_any */
	__u32 references;
	__u32 flags;
	__u64 value; /* sv_u */
};
#define PERL_TYPE      0xff
#define PERL_TYPE_CODE 13 /* SVt_PVCV */
#define PERL_TYPE_FORM 14 /* SVt_PVFM */

/* struct xpvcv from xcv_stash on, sv.h */
struct perl_body {
	__u64 stash, start, root;
	__u64 name; /* a GV or, if CODE_NAMED, a HEK */
	__u64 file; /* char * */
	__u64 padlist, outside;
	__u32 outside_seq;
	__u32 flags;
	__u32 depth; /* >= 2: it is called recursively */
	__u32 pad;
};
#define CODE_NAMED   0x8000 /* CVf_NAMED, cv.h */
#define CODE_IS_XSUB 0x8    /* CVf_ISXSUB */

/* struct xpvgv, gv.h and sv.h: the name's HEK at 32, the package at 40 */
#define GLOB_NAME 32

/* struct hek, hv.h: hash, length in bytes, the bytes, NUL and a byte of flags */
#define HEK_BYTES     8
#define HEK_UTF8      1
#define HEK_BYTES_MAX 0xffff

/* struct xpvhv, hv.h */
#define HASH_BODY_MAX 24	 /* xhv_max */
#define HASH_HAS_AUX  0x02000000 /* SVf_OOK, SVphv_HasAUX */

/* Code cached by this CPU. A lookup here is ten times faster than in perl_codes. */
struct perl_slot {
	__u64 address;
	__u64 glance;				 /* hash of the subroutine's body */
	__u64 since_ns, compared_ns, checked_ns; /* checked: compared, or its body is the same */
	__u32 space;
	__u32 kind;
	__u32 code;
	__u32 pad;
};
#define PERL_SLOTS_LOG2 11
#define PERL_SLOTS	(1 << PERL_SLOTS_LOG2)

/* A lookup of code. */
struct perl_call {
	struct perl_code_key key;
	__u64 now_ns;
	__u64 since_ns;
	__u32 lost; /* 1: the record was not sent */
	__u32 tgid;
	__u32 code;
	__u32 replaces; /* the process has replaced code recently */
	__u32 pad;
	struct perl_offsets offsets;
	struct perl_head head;
	struct perl_body body; /* body of a subroutine */
	struct perl_code_entry entry;
	__u64 package; /* HEK; 0: unknown */
	struct rec_code_object rec;
};

static __always_inline struct perl_code_table *call__table(struct perl_call *call)
{
	return (struct perl_code_table *)call->rec.table;
}

/* Returns the package's name, as HvNAME_HEK of hv.h does; 0: it has none. */
static __noinline __u64 package__name(struct perl_call *call, __u64 stash)
{
	const struct perl_offsets *offsets = &call->offsets;
	struct perl_head head;
	__u64 aux, max, name;
	__s32 names;

	if (read_user(&head, sizeof(head), stash) || !(head.flags & HASH_HAS_AUX))
		return 0;
	aux = head.body + offsets->aux;
	if (!offsets->aux) {
		if (read_user(&max, sizeof(max), head.body + HASH_BODY_MAX))
			return 0;
		aux = head.value + 8 * (max + 1);
	}
	if (read_user(&name, sizeof(name), aux + offsets->aux_name) ||
	    read_user(&names, sizeof(names), aux + offsets->aux_name_count))
		return 0;
	/* A package with several names has an array of these. */
	if (names && name && read_user(&name, sizeof(name), name))
		return 0;
	return name;
}

/* Copies at most @size bytes of a HEK. Returns its kind << 16 | its length, or a negative value if
 * it is unreadable. */
static __noinline int hek__read(__u64 hek, char *to, __u32 size)
{
	__u64 bytes;
	__u8 flags;
	__u32 len;

	if (!to || !hek || read_user(&len, sizeof(len), hek + 4) || len > HEK_BYTES_MAX ||
	    read_user(&flags, sizeof(flags), hek + HEK_BYTES + len + 1))
		return -1;
	bytes = len;
	if (bytes > size)
		bytes = size;
	if (bytes > CODE_OBJECT_TEXT_BYTES)
		bytes = CODE_OBJECT_TEXT_BYTES;
	if (read_user(to, bytes, hek + HEK_BYTES))
		return -1;
	return (flags & HEK_UTF8 ? CODE_OBJECT_TEXT_UTF8 : 1) << 16 | len;
}

static __noinline int call__send(struct perl_call *call)
{
	struct perl_code_table *table = call__table(call);
	struct rec_code_object *rec = &call->rec;
	int text = hek__read(call->entry.name, rec->name, CODE_OBJECT_TEXT_BYTES);
	long bytes;

	rec->type = REC_CODE_OBJECT;
	rec->code = call->entry.code;
	rec->tgid = call->tgid;
	rec->walker = WALKER_PERL;
	rec->address = call->key.address;
	rec->table_size = sizeof(*table);
	rec->name_kind = text < 0 ? 0 : text >> 16;
	rec->name_len = text < 0 ? 0 : text & 0xffff;
	bytes = bpf_probe_read_user_str(rec->file, sizeof(rec->file), (void *)call->entry.file);
	rec->file_kind = bytes > 1 ? CODE_OBJECT_TEXT_UTF8 : 0;
	rec->file_len = bytes > 1 ? bytes - 1 : 0;
	text = hek__read(call->package, table->package, PERL_PACKAGE_BYTES);
	table->kind = call->key.kind;
	table->package_kind = text < 0 ? 0 : text >> 16;
	table->package_len = text < 0 ? 0 : text & 0xffff;
	return bpf_ringbuf_output(
		&ring, rec, sizeof(*rec) - CODE_OBJECT_TABLE_BYTES + sizeof(*table), ring__flags());
}

static __noinline int read_sub(struct perl_call *call, __u64 address)
{
	__u32 type;

	if (read_user(&call->head, sizeof(call->head), address))
		return -1;
	type = call->head.flags & PERL_TYPE;
	if (type != PERL_TYPE_CODE && type != PERL_TYPE_FORM)
		return -1;
	return read_user(&call->body, sizeof(call->body),
			 call->head.body + call->offsets.code_stash);
}

static __always_inline __u64 hash__add(__u64 hash, __u64 word)
{
	return (hash ^ word) * 0x9e3779b97f4a7c15ULL + (hash >> 29); /* 2^64 / golden ratio */
}

#define FILE_WORDS 12

/* Adds the first bytes of a file's name to @hash; 0: it is unreadable. */
static __noinline __u64 file__hash(__u64 file, __u64 hash)
{
	__u64 words[FILE_WORDS] = {};
	int i;

	if (!file || bpf_probe_read_user_str(words, sizeof(words), (void *)file) < 0)
		return 0;
	for (i = 0; i < FILE_WORDS; i++)
		hash = hash__add(hash, words[i]);
	return hash | 1;
}

/* Returns a hash of call->body. */
static __always_inline __u64 body__hash(const struct perl_call *call)
{
	__u64 hash = hash__add(call->head.body, call->body.stash);

	hash = hash__add(hash, call->body.start);
	hash = hash__add(hash, call->body.root);
	hash = hash__add(hash, call->body.name);
	return hash__add(hash, call->body.file);
}

/* Fills the entry of a subroutine. Its name is that of its glob and package (gv.h), or its own if
 * it has no glob yet. */
static __always_inline int entry__of_sub(struct perl_call *call)
{
	struct perl_code_entry *entry = &call->entry;
	__u64 glob[2], body;

	if (read_sub(call, call->key.address))
		return -1;
	entry->name = call->body.name;
	entry->stash = call->body.stash;
	if (!(call->body.flags & CODE_NAMED)) {
		if (read_user(&body, sizeof(body), call->body.name) ||
		    read_user(glob, sizeof(glob), body + GLOB_NAME))
			return -1;
		entry->name = glob[0];
		entry->stash = glob[1];
	}
	entry->file = call->body.file;
	call->package = entry->stash ? package__name(call, entry->stash) : 0;
	if (read_user(&entry->hash, sizeof(entry->hash), entry->name))
		return -1;
	if (call->package && !read_user(&body, sizeof(body), call->package))
		entry->hash = hash__add(entry->hash, body);
	entry->hash = file__hash(entry->file, entry->hash);
	return 0;
}

static __always_inline int entry__of_file(struct perl_call *call)
{
	struct perl_code_entry *entry = &call->entry;

	entry->name = entry->stash = call->package = 0;
	entry->file = call->key.address;
	entry->hash = file__hash(entry->file, 1);
	return entry->file && !entry->hash ? -1 : 0;
}

static __always_inline int entry__is(const struct perl_code_entry *a,
				     const struct perl_code_entry *b)
{
	return a->name == b->name && a->stash == b->stash && a->file == b->file &&
	       a->hash == b->hash;
}

static __always_inline void call__note_replaced(struct perl_call *call)
{
	struct perl_proc_rec *proc = bpf_map_lookup_elem(&perl_procs, &call->key.space);

	call->replaces = 1;
	if (proc)
		proc->replaced_ns = call->now_ns;
}

/* Sets call->code to the number of the code in call->key, or to 0 if it is unreadable. */
static __noinline int call__intern(struct perl_call *call)
{
	struct perl_code_entry *existing = bpf_map_lookup_elem(&perl_codes, &call->key);

	call->code = call->lost = 0;
	if (call->key.kind == PERL_CODE_SUB ? entry__of_sub(call) : entry__of_file(call))
		return 0;
	if (existing && entry__is(existing, &call->entry)) {
		call->since_ns = existing->since_ns;
		call->code = existing->code;
		return 0;
	}
	if (existing)
		call__note_replaced(call);
	call->since_ns = call->entry.since_ns = call->now_ns;
	call->code = call->entry.code = code_object__new();
	/* Code that was not sent is not cached: the next sample tries again. */
	if (call__send(call) ||
	    bpf_map_update_elem(&perl_codes, &call->key, &call->entry, BPF_ANY)) {
		call->lost = 1;
		count(COUNT_CODE_LOST);
	}
	return 0;
}

static __always_inline int slot__glances(const struct perl_slot *slot, const struct perl_call *call)
{
	return !call->replaces && call->now_ns - slot->since_ns >= CODE_OBJECT_OLD_NS &&
	       call->now_ns - slot->compared_ns < CODE_OBJECT_REFRESH_NS;
}

/* Returns the number of the code, like call__intern(). It costs less if this CPU has cached the
 * code. */
static __noinline __u32 code__number(struct perl_call *call, struct perl_slot *slots, __u64 address,
				     __u32 kind)
{
	__u64 hash = (address + kind) * 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */
	struct perl_slot *slot;
	int same;

	if (!call || !slots)
		return 0;
	slot = &slots[hash >> (64 - PERL_SLOTS_LOG2) & (PERL_SLOTS - 1)];
	same = slot->code && slot->address == address && slot->kind == kind &&
	       slot->space == call->key.space;
	if (same &&
	    code_object__is_fresh(call->now_ns, call->replaces, slot->since_ns, slot->checked_ns))
		return slot->code;
	if (same && kind == PERL_CODE_SUB && slot__glances(slot, call) &&
	    !read_sub(call, address) && body__hash(call) == slot->glance) {
		slot->checked_ns = call->now_ns;
		return slot->code;
	}
	call->key.address = address;
	call->key.kind = kind;
	call__intern(call);
	slot->address = address;
	slot->kind = kind;
	slot->space = call->key.space;
	slot->glance = body__hash(call);
	slot->since_ns = call->since_ns;
	slot->checked_ns = slot->compared_ns = call->lost ? 0 : call->now_ns;
	slot->code = call->code;
	return slot->code;
}

#endif
