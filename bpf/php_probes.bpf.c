// SPDX-License-Identifier: GPL-2.0
#include "bpf/fiber_probes.bpf.h"
#include "bpf/php_code.bpf.h"

/* PHP's calls: USDT execute__entry and execute__return (Zend/zend_dtrace.c). One pair is around
 * each execute_ex, so around code written in PHP, and one around each function in C. Their
 * arguments describe the caller. At the entry, the callee is the interpreter's current frame. Its
 * number is therefore the walker's number of the same function. Each call has a native frame of its
 * own. */

/* Work memory in shadow.words, because Linux 6.1 adds the stacks of all functions on a path. */
struct php_work {
	struct php_call call;
};
_Static_assert(sizeof(struct php_work) <= 8 * SHADOW_WORDS, "php_work in struct shadow");

static __always_inline struct php_work *shadow__work(struct shadow *shadow)
{
	return (struct php_work *)shadow->words;
}

/* Reads the current frame. *ret_globals becomes its executor_globals. */
static __noinline int current__load(struct shadow *shadow, __u64 *ret_globals)
{
	struct php_work *work = shadow__work(shadow);
	__u32 space = shadow->space;
	const struct php_proc_rec *proc = bpf_map_lookup_elem(&php_procs, &space);
	__u64 globals = 0, at;

	if (!proc) {
		count(COUNT_PROBE_UNKNOWN);
		return -1;
	}
	if (!proc->key_at)
		globals = proc->globals;
	else if (globals__of_thread(proc, &globals))
		globals = 0;
	work->call.offsets = proc->offsets;
	work->call.key.space = space;
	if (!globals || read_user(&at, sizeof(at), globals + proc->offsets.current) ||
	    read_user(work->call.frame, sizeof(work->call.frame), at)) {
		count(COUNT_PROBE_READ);
		return -1;
	}
	*ret_globals = globals;
	return 0;
}

/* --- fibers --- */

/* Returns 1 if the current frame is the outermost one. A fiber begins with a function in C without
 * a name. */
static __always_inline int is_outermost(const struct php_work *work)
{
	__u64 previous = work->call.frame[FRAME_PREV], function, words[FUNCTION_NAME + 1];

	if (!previous)
		return 1;
	return !read_user(&function, sizeof(function), previous + 8 * FRAME_FUNC) &&
	       !read_user(words, sizeof(words), function) && !words[FUNCTION_NAME] &&
	       (words[0] & FUNCTION_TYPE) == TYPE_INTERNAL;
}

/* As fiber_find_fn. */
__weak __noinline int php_fiber__find(struct shadow *head, __u64 sp, __u32 own)
{
	struct fiber_place place = { .sp = sp, .frames = ~0ULL };
	struct shadow *shadow;
	struct php_work *work;
	__u64 globals = 0;
	int is_new;

	if (!head)
		return 0;
	work = shadow__work(head);
	head->lo = head->hi = 0; /* query again next time if it is unreadable */
	if (current__load(head, &globals))
		return -1;
	if (work->call.offsets.fiber &&
	    read_user(&place.stack, sizeof(place.stack), globals + work->call.offsets.fiber)) {
		count(COUNT_PROBE_READ);
		return -1;
	}
	/* A fiber that runs in place of an ended one has its context at another address. */
	place.state = place.stack;
	is_new = fiber__change(head, &place);
	shadow = fiber__current(head);
	if (is_new <= 0 || !shadow)
		return is_new;
	shadow->flags &= ~SHADOW_PARTIAL;
	if (!own || !is_outermost(work))
		shadow->flags |= SHADOW_PARTIAL;
	return 0;
}

/* --- functions --- */

/* Returns the number of the current function. Numbers of a thread's last calls are in its cache, by
 * code, name and class. */
__weak __noinline __u32 function__number(struct shadow *shadow)
{
	const struct shadow_cache *cache;
	struct php_call *call;
	__u64 globals = 0, code, name;
	__u32 kind;

	if (!shadow)
		return 0;
	call = &shadow__work(shadow)->call;
	if (current__load(shadow, &globals))
		return 0;
	if (function__load(call, call->frame[FRAME_FUNC])) {
		count(COUNT_PROBE_READ);
		return 0;
	}
	kind = function__kind(call);
	if (kind == PHP_CODE_KINDS_N) {
		count(COUNT_PROBE_READ);
		return 0;
	}
	code = function__word(call, kind == PHP_CODE_NATIVE ? call->offsets.handler
							    : call->offsets.opcodes);
	name = call->function[FUNCTION_NAME] + 3 * call->function[FUNCTION_CLASS];
	cache = cache__at(shadow, code, name, kind);
	if (cache__is(cache, code, name, kind))
		return cache->code;
	call->now_ns = bpf_ktime_get_ns();
	call->probed = 1;
	call->tgid = task__pid(bpf_get_current_task_btf());
	call__intern(call, kind);
	cache__set(shadow, code, name, kind, call->code);
	return call->code;
}

/* --- the probes --- */

SEC("?uprobe")
int php_entry(struct pt_regs *ctx)
{
	const struct probe_rec *rec = probe__rec(ctx);
	struct shadow_call call = { .flags = ENTRY_OWN_ANCHOR };
	struct shadow *shadow;

	if (!rec)
		return 0;
	shadow = fiber__entered(ctx, rec, 1, php_fiber__find);
	if (!shadow)
		return 0;
	call.anchor = probe__anchor(ctx, rec);
	call.code = function__number(shadow);
	shadow__push(shadow, &call);
	return 0;
}

SEC("?uprobe")
int php_return(struct pt_regs *ctx)
{
	const struct probe_rec *rec = probe__rec(ctx);
	struct shadow *shadow;

	if (!rec)
		return 0;
	shadow = fiber__returned(ctx, rec, 0, php_fiber__find);
	if (shadow)
		shadow__pop(shadow, probe__anchor(ctx, rec), 0);
	return 0;
}
