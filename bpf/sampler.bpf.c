// SPDX-License-Identifier: GPL-2.0
#include "bpf/sampler.bpf.h"
#include "bpf/filter.bpf.h"
#include "bpf/frames.bpf.h"
#include "bpf/interval.bpf.h"
#include "bpf/values.bpf.h"

/* The programs that take samples: one for each type that events need. They run the same stages by
 * tail calls (docs/internals/adding-an-event.md). */

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 cfg_ring_wakeup_bytes = 1 << 20;
const volatile __u32 cfg_pidns_ino = 0;
const volatile __u32 cfg_targets_only = 0;
const volatile __u32 cfg_locks = 0;
const volatile __u32 cfg_slots = 1;

/* Constants of one object: properties of its program type. */
const volatile __u32 cfg_slot_first SEC(".rodata.type") = 0;
const volatile __u32 cfg_slot_end SEC(".rodata.type") = 1;
const volatile __u32 cfg_tableless SEC(".rodata.type") = 0; /* bit n: hook of walker slot n */

__u32 last_code = 0;
__u32 last_program = 0;

/* Period of the recording (CLOCK_MONOTONIC). An interval in progress at sample_from_ns counts from
 * that time on; sample_from_ns 0: such an interval does not count. User space sets both times, and
 * may set the end to an earlier time; sample_until_ns 0: there is no end. */
__u64 sample_from_ns = 0;
__u64 sample_until_ns = 0;

/* Arrays by number of the event. cfg_periods: occurrences per sample. cfg_values: value of each
 * occurrence, in the event's unit. cfg_minima: minimum value of a sample. occurrences: number of
 * all occurrences so far. period_rests: the occurrences since the last sample, if their values
 * differ. */
const volatile __u64 cfg_periods[2 * EVENTS_MAX] = {};
const volatile __u64 cfg_values[2 * EVENTS_MAX] = {};
const volatile __u64 cfg_minima[2 * EVENTS_MAX] = {};
__u64 occurrences[2 * EVENTS_MAX] = {};
struct rest_rec period_rests[2 * EVENTS_MAX] = {};

/* User space increments it when it reads and resets the rests. It is never 0, the epoch of clocks
 * that have not run yet. */
__u32 rest_epoch = 1;

const volatile __u32 cfg_budget_permille = 0;
const volatile __u32 cfg_budget_events = 1;
const volatile __u32 cfg_limited = 0;
const volatile __u32 cfg_intervals = 0;
const volatile __u32 cfg_measured = 0;

/* Bit n of cfg_filtered: event n has a filter. Bit n of cfg_paired: its value is the time since the
 * interval began. */
const volatile __u32 cfg_filtered = 0;
const volatile __u32 cfg_paired = 0;

const volatile __u32 cfg_valued = 0; /* bit n: the tracepoint of event n has values */

const volatile __u32 cfg_numbers[EVENT_SLOTS_N] = {}; /* 0: the session has no such event */

SEC("?perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	/* A perf event that a child has inherited (a breakpoint's) has the program, but not its
	 * cookie. In a session only the first event can be of this kind. */
	__u32 event = cookie & COOKIE_EVENT ?: 1;
	struct worth worth = worth__usual(event);
	struct scratch *scratch;

	if (cookie & COOKIE_PERIOD)
		worth.weight = worth.total = ctx->sample_period;
	scratch = sample__begin_of(event, bpf_ktime_get_ns(), &worth);
	if (!scratch)
		return 0;
	scratch->cs = 0;
	if (!arch__is_user(ctx->regs.cs)) {
		SAMPLE_KERNEL_STACK(ctx, scratch, 0);
		if (scratch->has_regs)
			scratch->cs = read_task_regs(scratch);
	} else if (scratch->has_regs) {
		arch__copy_regs(scratch->unwind.regs, &ctx->regs);
		scratch->cs = ctx->regs.cs;
	}
	if (cookie & COOKIE_ADDRESS)
		scratch->sample.object = ctx->addr;
	sample__unwind(ctx, scratch);
	return 0;
}

/* Begins a sample like sample__begin(), where an interval may end. */
static __always_inline struct scratch *sample__begin_interval(__u32 event)
{
	const struct worth *worth;

	if (!(cfg_paired & 1U << event))
		return sample__begin(event);
	worth = interval__end(event);
	return worth ? sample__begin_of(event, interval__now(), worth) : NULL;
}

static __always_inline int on_tracepoint(struct bpf_raw_tracepoint_args *ctx, __u32 event)
{
	struct scratch *scratch;

	if (cfg_filtered & 1U << event && (!is_target() || !filter__passes(ctx, event)))
		return 0;
	scratch = sample__begin_interval(event);
	if (!scratch)
		return 0;
	if (cfg_valued & 1U << event) {
		scratch->values.place = 0;
		values__take(ctx, scratch, event);
	}
	SAMPLE_KERNEL_STACK(ctx, scratch, TRACING_FRAMES);
	scratch->cs = scratch->has_regs ? read_task_regs(scratch) : 0;
	sample__unwind(ctx, scratch);
	return 0;
}

static __always_inline int on_begin(struct bpf_raw_tracepoint_args *ctx, __u32 event)
{
	return is_target() && filter__passes(ctx, FILTERS_BEGIN + event) ? interval__begin(event)
									 : 0;
}

/* Two programs for each event of a session: one that samples, and one that begins an interval. Raw
 * tracepoints have no attach cookie before Linux 6.10. */
#define ON_TRACEPOINT(event)                                           \
	SEC("?raw_tp")                                                 \
	int on_tracepoint_##event(struct bpf_raw_tracepoint_args *ctx) \
	{                                                              \
		return on_tracepoint(ctx, event);                      \
	}                                                              \
	SEC("?raw_tp")                                                 \
	int on_begin_##event(struct bpf_raw_tracepoint_args *ctx)      \
	{                                                              \
		return on_begin(ctx, event);                           \
	}

ON_TRACEPOINT(1)
ON_TRACEPOINT(2)
ON_TRACEPOINT(3)
ON_TRACEPOINT(4)
ON_TRACEPOINT(5)
ON_TRACEPOINT(6)
ON_TRACEPOINT(7)
ON_TRACEPOINT(8)
ON_TRACEPOINT(9)
ON_TRACEPOINT(10)
ON_TRACEPOINT(11)
ON_TRACEPOINT(12)
ON_TRACEPOINT(13)
ON_TRACEPOINT(14)
ON_TRACEPOINT(15)
ON_TRACEPOINT(16)
_Static_assert(EVENTS_MAX == 16, "a program for each");

/* Begins a sample like sample__begin(), at a return whose call is identified by its frame. */
static __noinline struct scratch *sample__begin_return(const struct pt_regs *ctx, __u64 cookie)
{
	__u32 event = EVENT_AT(cookie & COOKIE_EVENT);
	__u64 sp = ctx->rsp, caller = ctx->rip, since_ns;
	const struct worth *worth;

	if (!is_target())
		return NULL;
	if (!(cookie & COOKIE_AT_RET))
		sp -= sizeof(caller);
	else if (bpf_probe_read_user(&caller, sizeof(caller), (void *)sp))
		return NULL; /* the return itself will fault */
	since_ns = frame__leave(sp, caller, event);
	if (!since_ns) {
		if (!(cookie & COOKIE_SHARED))
			count(COUNT_INTERVAL_UNMATCHED);
		return NULL;
	}
	if (!(cookie & COOKIE_TIMED))
		return sample__begin_interval(event);
	worth = interval__end_since(event, since_ns);
	return worth ? sample__begin_of(event, interval__now(), worth) : NULL;
}

SEC("?uprobe")
int on_uprobe(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u32 event = EVENT_AT(cookie & COOKIE_EVENT);
	struct scratch *scratch;

	if (cookie & COOKIE_FRAME && cookie & (COOKIE_BEGINS | COOKIE_ENTERS))
		return is_target() ? frame__enter(ctx->rsp, event) : 0;
	if (cookie & COOKIE_BEGINS)
		return interval__begin(event);
	scratch = cookie & COOKIE_FRAME ? sample__begin_return(ctx, cookie)
					: sample__begin_interval(event);
	if (!scratch)
		return 0;
	values__of_cookie(ctx, scratch, cookie);
	if (cookie & COOKIE_AT_RET)
		sample__unwind_from_caller(ctx, scratch);
	else
		sample__unwind_from(ctx, scratch);
	return 0;
}

/* Runs at a function of the kernel, or its return. */
SEC("?kprobe")
int on_kprobe(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u32 event = EVENT_AT(cookie & COOKIE_EVENT);
	struct scratch *scratch;

	if (cookie & COOKIE_BEGINS)
		return interval__begin(event);
	scratch = sample__begin_interval(event);
	if (!scratch)
		return 0;
	values__of_cookie(ctx, scratch, cookie);
	SAMPLE_KERNEL_STACK(ctx, scratch, 0);
	scratch->cs = scratch->has_regs ? read_task_regs(scratch) : 0;
	sample__unwind(ctx, scratch);
	return 0;
}
