// SPDX-License-Identifier: GPL-2.0
#include "bpf/ruby_probes.bpf.h"
#include "bpf/fiber_probes.bpf.h"

/* CRuby's calls: USDT method__entry and method__return, cmethod__entry and cmethod__return. An
 * entry's `match` is the address of the method's name. The anchor of a method in Ruby is the
 * address of the interpreter loop that runs it, which methods may share. The anchor of a method
 * in C is that of the frame that calls the function. A fiber runs on its own stack, on which its
 * VM stack lies, too. So the address of the VM stack identifies the fiber. */

/* Limit for the control frames that are read to find if a thread was already in calls when its
 * first probe hit. */
#define FIRST_FRAMES_MAX 64

struct first_frames {
	__u64 cfp, end;
	__u32 cfp_size;
	__u32 calls;
};

static long count_call(__u32 index, void *arg)
{
	struct first_frames *frames = arg;
	__u64 at = frames->cfp;
	struct ruby_frame frame = {};
	__u32 type;

	(void)index;
	if (at >= frames->end)
		return 1;
	frames->cfp = at + frames->cfp_size;
	if (frame__read(at, &frame))
		return 0;
	type = frame.env[2] & FRAME_TYPE;
	frames->calls += type == FRAME_METHOD || type == FRAME_C || frame.env[2] & FRAME_BY_BLOCK;
	return 0;
}

/* Returns true if the thread is in calls on this stack, besides the one that the probe reports. */
static __noinline int has_calls(const struct ruby_ec *ec, __u32 own)
{
	struct first_frames frames = { .cfp = ec->cfp, .cfp_size = ec->cfp_size };

	frames.end = ec->stack + 8 * ec->stack_words - ec->cfp_size;
	bpf_loop(FIRST_FRAMES_MAX, count_call, &frames, 0);
	return frames.cfp < frames.end || frames.calls > own;
}

/* Finds the stack that the thread is on. `own`: the call that the probe reports has a frame. */
__weak __noinline int ruby_fiber__find(struct shadow *head, __u64 sp, __u32 own)
{
	struct fiber_place place = { .sp = sp };
	struct ruby_ec ec = {};
	struct shadow *shadow;
	int is_new;

	if (!head)
		return 0;
	if (ec__read(head->space, &ec)) {
		head->lo = 0; /* a version whose fibers cannot be distinguished */
		head->hi = ~0ULL;
		head->flags |= SHADOW_PARTIAL;
		return 0;
	}
	place.stack = ec.stack;
	place.state = ec.address;
	if (ec.cfp_size)
		place.frames = (ec.stack + 8 * ec.stack_words - ec.cfp) / ec.cfp_size + 1;
	is_new = fiber__change(head, &place);
	shadow = fiber__current(head);
	if (is_new <= 0 || !shadow)
		return is_new;
	shadow->flags &= ~SHADOW_PARTIAL;
	if (has_calls(&ec, own))
		shadow->flags |= SHADOW_PARTIAL;
	return 0;
}

static __always_inline int read_args(struct pt_regs *ctx, const struct probe_rec *rec,
				     struct ruby_args *ret)
{
	if (rec->flags & PROBE_ARGS_IN_ROW) {
		if (!read_user(ret, RUBY_ARGS_BYTES,
			       probe__reg(ctx, rec->args[0].reg) + rec->args[0].value))
			return 0;
		count(COUNT_PROBE_READ);
		return -1;
	}
	ret->class = probe__arg(ctx, &rec->args[0]);
	ret->method = probe__arg(ctx, &rec->args[1]);
	ret->file = probe__arg(ctx, &rec->args[2]);
	ret->line = probe__arg(ctx, &rec->args[3]);
	return 0;
}

SEC("?uprobe")
int ruby_method_entry(struct pt_regs *ctx)
{
	const struct probe_rec *rec = probe__rec(ctx);
	struct shadow_call call = { .index = RUBY_INDEX_UNKNOWN };
	struct ruby_args args = {};
	struct shadow *shadow;

	if (!rec)
		return 0;
	shadow = fiber__entered(ctx, rec, 1, ruby_fiber__find);
	if (!shadow || read_args(ctx, rec, &args))
		return 0;
	call.anchor = probe__anchor(ctx, rec);
	call.match = args.method;
	args__set_scope(shadow, &args, args.file);
	call.code = method__number(shadow, &args);
	shadow__push(shadow, &call);
	return 0;
}

SEC("?uprobe")
int ruby_method_return(struct pt_regs *ctx)
{
	const struct probe_rec *rec = probe__rec(ctx);
	struct shadow *shadow;

	if (!rec)
		return 0;
	shadow = fiber__returned(ctx, rec, 1, ruby_fiber__find);
	if (shadow)
		shadow__pop(shadow, probe__anchor(ctx, rec), probe__arg(ctx, &rec->args[1]));
	return 0;
}

SEC("?uprobe")
int ruby_cmethod_entry(struct pt_regs *ctx)
{
	const struct probe_rec *rec = probe__rec(ctx);
	struct shadow_call call = { .flags = ENTRY_OWN_ANCHOR };
	struct ruby_args args = {};
	struct shadow *shadow;
	__u64 code;

	if (!rec)
		return 0;
	shadow = fiber__entered(ctx, rec, 0, ruby_fiber__find);
	if (!shadow || read_args(ctx, rec, &args))
		return 0;
	call.anchor = probe__anchor(ctx, rec);
	call.match = args.method;
	args__set_scope(shadow, &args, 0);
	code = cmethod__number(shadow, &args);
	call.code = code;
	if (!(code >> 32))
		call.flags |= ENTRY_UNSETTLED;
	shadow__push(shadow, &call);
	return 0;
}

static __noinline int settle_last(struct pt_regs *ctx, const struct probe_rec *rec,
				  struct shadow *shadow)
{
	const struct shadow_entry *entry = shadow__entry(shadow, shadow->depth - 1);
	struct ruby_args args = {};

	if (read_args(ctx, rec, &args) || args.method != entry->match)
		return 0;
	args__set_scope(shadow, &args, 0);
	return cmethod__settle(shadow, &args, entry->code);
}

SEC("?uprobe")
int ruby_cmethod_return(struct pt_regs *ctx)
{
	const struct probe_rec *rec = probe__rec(ctx);
	struct shadow *shadow;

	if (!rec)
		return 0;
	shadow = fiber__returned(ctx, rec, 0, ruby_fiber__find);
	if (!shadow)
		return 0;
	if (rec->flags & PROBE_UNWINDS) {
		shadow__unwind(shadow, ctx->rsp, probe__arg(ctx, &rec->args[1]));
		return 0;
	}
	if (shadow->depth && !shadow->overflow &&
	    shadow__entry(shadow, shadow->depth - 1)->flags & ENTRY_UNSETTLED)
		settle_last(ctx, rec, shadow);
	/* The anchor is unique to this call, so that the name need not be read. */
	shadow__pop(shadow, probe__anchor(ctx, rec), 0);
	return 0;
}
