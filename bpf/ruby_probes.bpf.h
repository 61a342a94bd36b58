/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_RUBY_PROBES_BPF_H
#define BRAID_RUBY_PROBES_BPF_H

/* Numbers of methods that probes report. When the entry of a method in Ruby is reported, the method
 * is on top of the control frames. So it has the number that the walker gives it. The frame of a
 * method in C does not exist yet. Such a method has the number of its strings. These strings do not
 * distinguish methods of instances from methods of the class itself. When the method returns, its
 * frame still lies beside the others, and it is announced again with the data of that frame. */

#include "bpf/cache.bpf.h"
#include "bpf/probe.bpf.h"
#include "bpf/ruby_code.bpf.h"
#include "bpf/ruby_ec.bpf.h"
#include "bpf/texts.bpf.h"

/* The probes' arguments: struct ruby_dtrace_method_hook_args, probes_helper.h. The class's name
 * is a copy, at another address each time (rb_class_path, variable.c), so it is identified by
 * content. */
struct ruby_args {
	__u64 class, method, file; /* addresses of strings */
	__u32 line, pad;
	__u64 scope; /* a hash of the class's name, and of a method's file */
};
#define RUBY_ARGS_BYTES offsetof(struct ruby_args, scope)

#define CLASS_WORDS 16 /* limit for a class's name; differences after these words are not seen */

struct ruby_ec {
	__u64 stack, stack_words, cfp; /* as laid out in the target */
	__u64 address;
	__u32 cfp_size;
};

struct ruby_frame {
	__u64 iseq, self, env_at;
	__u64 env[3];
};

/* Work memory in shadow.words, because Linux 6.1 adds the stacks of all functions on a path. */
struct ruby_work {
	struct ruby_call call;
	struct ruby_ec ec;
	struct ruby_frame frame;
	__u64 class[CLASS_WORDS];
};

_Static_assert(sizeof(struct ruby_work) <= 8 * SHADOW_WORDS, "ruby_work in struct shadow");

static __noinline int ec__read(__u32 space, struct ruby_ec *ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct ruby_proc_rec *proc = bpf_map_lookup_elem(&ruby_procs, &space);

	if (!ret || !proc)
		return -1; /* no walker for this version */
	if (read_ec(proc, arch__thread_pointer(task), &ret->address) || !ret->address ||
	    read_user(ret, EC_WORDS * 8, ret->address)) {
		count(COUNT_PROBE_READ);
		return -1;
	}
	ret->cfp_size = proc->offsets.cfp_size;
	return 0;
}

static __noinline int frame__read(__u64 cfp, struct ruby_frame *ret)
{
	if (!ret || read_user(ret, 24, cfp + CFP_ISEQ) ||
	    read_user(ret->env, ENV_BYTES, ret->env_at - ENV_BYTES + 8))
		return -1;
	return 0;
}

/* --- by strings --- */

/* Sets the scope. `file` is the method's, as methods of classes with long names in common begin
 * on the same lines of different files; 0: a method in C. */
static __always_inline void args__set_scope(struct shadow *shadow, struct ruby_args *args,
					    __u64 file)
{
	struct ruby_work *work = (void *)shadow->words;
	__u64 hash = 1;
	long bytes;
	int i;

	bytes = bpf_probe_read_user_str(work->class, sizeof(work->class), (void *)args->class);
	if (bytes < 0)
		count(COUNT_PROBE_READ);
	for (i = 0; i < CLASS_WORDS && 8 * i < bytes; i++)
		hash = (hash ^ work->class[i]) * 0x9e3779b97f4a7c15ULL + (hash >> 29);
	args->scope = hash ^ file * 0x9e3779b97f4a7c15ULL;
}

static __noinline int strings__send(const struct text_key *key, __u64 class, __u32 code)
{
	struct ruby_code_table *table;
	struct rec_code_object *rec;
	long bytes;

	rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);
	if (!rec)
		return -1;
	table = (void *)rec->table;
	__builtin_memset(rec, 0, REC_CODE_OBJECT_HEADER);
	__builtin_memset(table, 0, offsetof(struct ruby_code_table, owner_name));
	rec->type = REC_CODE_OBJECT;
	rec->code = code;
	rec->tgid = task__pid(bpf_get_current_task_btf());
	rec->walker = WALKER_RUBY;
	rec->first_line = key->line;
	rec->table_size = sizeof(*table);
	table->kind = key->file ? RUBY_CODE_METHOD : RUBY_CODE_C;
	table->owner = RUBY_OWNER_CLASS;
	text__copy(rec->name, key->name, &rec->name_kind, &rec->name_len);
	if (key->file)
		text__copy(rec->file, key->file, &rec->file_kind, &rec->file_len);
	bytes = bpf_probe_read_user_str(table->owner_name, RUBY_OWNER_BYTES, (void *)class);
	if (bytes > 0)
		table->owner_len = bytes - 1;
	bpf_ringbuf_submit(rec, ring__flags());
	return 0;
}

/* Returns the number of the method. The upper half is set if its frame's data was announced, too,
 * not only the strings. */
__weak __noinline __u64 strings__intern(const struct text_key *of, __u64 class)
{
	struct text_entry entry = {};
	struct text_key copy, *key = &copy; /* Linux 6.1 rejects an argument as a map's key */
	__u32 code;

	if (!of)
		return 0;
	copy = *of;
	code = text__find(key, bpf_ktime_get_ns(), &entry);
	if (code || !entry.hash)
		return (__u64)entry.settled << 32 | code;
	entry.code = code_object__new();
	/* A method whose record could not be sent is not cached: the next call tries again. */
	if (strings__send(key, class, entry.code) ||
	    bpf_map_update_elem(&texts, key, &entry, BPF_ANY))
		count(COUNT_CODE_LOST);
	return entry.code;
}

/* --- methods in Ruby --- */

/* Returns the number of the method whose frame is on top, as the walker has it; 0: unknown. */
__weak __noinline __u32 frame__intern(struct shadow *shadow)
{
	struct ruby_work *work;
	struct ruby_call *call;
	__u32 flags;

	if (!shadow)
		return 0;
	work = (void *)shadow->words;
	if (ec__read(shadow->space, &work->ec) || frame__read(work->ec.cfp, &work->frame))
		return 0;
	flags = work->frame.env[2];
	if ((flags & FRAME_TYPE) != FRAME_METHOD && !(flags & FRAME_BY_BLOCK))
		return 0;
	call = &work->call;
	call->iseq = work->frame.iseq;
	call->method = work->frame.env[0];
	call->by_block = !!(flags & FRAME_BY_BLOCK);
	call->now_ns = bpf_ktime_get_ns();
	call->probed = 1;
	call->space = shadow->space;
	call->tgid = task__pid(bpf_get_current_task_btf());
	ruby_call__intern(call);
	return call->code;
}

__weak __noinline __u32 method__learn(struct shadow *shadow, const struct ruby_args *args)
{
	struct text_key key = {};
	__u32 code;

	if (!shadow || !args)
		return 0;
	code = frame__intern(shadow);
	if (!code) {
		key.name = args->method;
		key.scope = args->scope;
		key.file = args->file;
		key.line = args->line;
		key.space = shadow->space;
		code = strings__intern(&key, args->class);
	}
	cache__set(shadow, args->method, args->scope, args->line, code);
	return code;
}

static __always_inline __u32 method__number(struct shadow *shadow, const struct ruby_args *args)
{
	const struct shadow_cache *cache = cache__at(shadow, args->method, args->scope, args->line);

	return cache__is(cache, args->method, args->scope, args->line)
		       ? cache->code
		       : method__learn(shadow, args);
}

/* --- methods in C --- */

#define CACHED_C_METHOD 0xffffffff /* in place of a line */

/* As strings__intern. */
__weak __noinline __u64 cmethod__learn(struct shadow *shadow, const struct ruby_args *args)
{
	struct text_key key = {};
	__u64 code;

	if (!shadow || !args)
		return 0;
	key.name = args->method;
	key.scope = args->scope;
	key.space = shadow->space;
	code = strings__intern(&key, args->class);
	cache__set(shadow, args->method, args->scope, CACHED_C_METHOD, code);
	return code;
}

static __always_inline __u64 cmethod__number(struct shadow *shadow, const struct ruby_args *args)
{
	const struct shadow_cache *cache =
		cache__at(shadow, args->method, args->scope, CACHED_C_METHOD);

	return cache__is(cache, args->method, args->scope, CACHED_C_METHOD)
		       ? 1ULL << 32 | cache->code
		       : cmethod__learn(shadow, args);
}

/* Announces a method in C again, by its frame, which has just been left. Returns 0 or -1. */
__weak __noinline int left__announce(struct shadow *shadow, __u32 code)
{
	const struct ruby_proc_rec *proc;
	struct ruby_work *work;
	struct ruby_call *call;
	__u32 space;

	if (!shadow)
		return -1;
	work = (void *)shadow->words;
	call = &work->call;
	__builtin_memset(&call->entry, 0, sizeof(call->entry));
	if (ec__read(shadow->space, &work->ec) ||
	    frame__read(work->ec.cfp - work->ec.cfp_size, &work->frame) ||
	    ((__u32)work->frame.env[2] & FRAME_TYPE) != FRAME_C ||
	    !method__read(work->frame.env[0], &call->entry))
		return -1;
	space = shadow->space;
	proc = bpf_map_lookup_elem(&ruby_procs, &space);
	if (!proc)
		return -1;
	call->iseq = 0;
	call->method = work->frame.env[0];
	call->tgid = task__pid(bpf_get_current_task_btf());
	call->entry.code = code;
	return code__announce(proc, call);
}

__weak __noinline int cmethod__settle(struct shadow *shadow, const struct ruby_args *args,
				      __u32 code)
{
	struct text_key key = {};
	struct text_entry *existing;

	if (!shadow || !args)
		return 0;
	key.name = args->method;
	key.scope = args->scope;
	key.space = shadow->space;
	existing = bpf_map_lookup_elem(&texts, &key);
	if (!existing || existing->settled || existing->code != code ||
	    left__announce(shadow, code))
		return 0;
	existing->settled = 1;
	return 0;
}

#endif
