/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_BUDGET_BPF_H
#define BRAID_BUDGET_BPF_H

/* The budget for samples (--max-overhead) of events that can be frequent. Each CPU may spend a
 * share of its time on samples. This budget is refilled as time passes, and the duration of each
 * sample is subtracted from it. Half of the budget is divided equally among the events of the
 * session, so that a frequent event cannot starve a rare one. The other half is a pool for the
 * first event that needs it.
 *
 * An exhausted budget has two effects. The first concerns events whose occurrences all have the
 * same value (tracepoints). They are not sampled until there is budget again. The weight and the
 * total of the next sample include the skipped occurrences, so sums remain exact.
 *
 * The second concerns intervals (waiting, a system call), which are selected by a clock. Each
 * thread has one clock per event. It runs during the intervals, and rings every `period_ns`: the
 * interval in which it rings is sampled. So the probability of an interval is proportional to its
 * length. The total of a sample is the period. Its weight is the number of intervals of its length
 * in the period, because intervals of half the length are sampled half as often. Both are unbiased,
 * and the sum is exact except for the time left on the clock. Every interval as long as the period
 * is sampled, and stands only for itself. The period doubles if samples cost too much, and is
 * halved if they cost less than half of the permitted time. A random selection of each occurrence
 * would not be proportional: it takes short and long intervals alike.
 *
 * The rest of an event, by CPU, consists of the occurrences without a sample: those since the last
 * sample, and those of lost samples (rest__return()). User space reads and resets the rests at the
 * end of each recording. To do so it changes rest_epoch. The kernel half then adds to the other of
 * two rests, and all clocks start anew. */

#include "bpf/kernel.h"
#include "bpf/waiting.h"

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* ns; the budget accumulates at most the share of this period */
#define BUDGET_WINDOW_NS 100000000ULL

#define PERIOD_LEAST_NS	  WAITING_PERIOD_LEAST_NS
#define PERIOD_MOST_NS	  (1ULL << 27) /* 134 ms */
#define PERIOD_RAISED_NS  5000000ULL   /* minimum time from a change to the next check, */
#define PERIOD_LOWERED_NS 100000000ULL /* and to a lower period */
#define PERIOD_STEPS_MAX  8	       /* maximum number of doublings at once */

/* Maximum weight of a sample, as a multiple of the number of intervals since its thread's clock
 * rang. Without a limit, a sampled interval of 1 ns, which is very rare, would have a weight of a
 * million. */
#define WEIGHT_TIMES_MAX 16

/* Tenths of a percent of a CPU's time; 0: no limit. */
extern const volatile __u32 cfg_budget_permille;

/* Number of events of the session that share the budget. */
extern const volatile __u32 cfg_budget_events;

/* Bit n: event n measures intervals that clocks select. */
extern const volatile __u32 cfg_intervals;

extern __u32 rest_epoch;

/* Budgets by CPU. If a program interrupts another one that updates the same entry, an update may be
 * lost. Rests change atomically, so no rest is lost. This is not a per-CPU map, because user space
 * resets rests, too. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* user space: number of CPUs */
	__type(key, __u32);
	__type(value, struct budget_rec);
} budgets __weak SEC(".maps");

/* The weight of a sample; fields as in rec_sample. */
struct worth {
	__u64 value, weight, total;
};

static __always_inline struct budget_rec *budget__here(void)
{
	__u32 key = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&budgets, &key);
}

static __always_inline struct event_budget *budget__of(struct budget_rec *budget, __u32 event)
{
	return &budget->events[event & (2 * EVENTS_MAX - 1)];
}

/* Returns the time from @since_ns to @now_ns, or 0 if @since_ns is the later one. A program reads
 * the clock once, at its start. Another program that interrupts it has a later time, and may store
 * that time first. */
static __always_inline __u64 budget__passed(__u64 since_ns, __u64 now_ns)
{
	return now_ns > since_ns ? now_ns - since_ns : 0;
}

/* Adds the time that has passed to @share, which is one of @parts equal parts of the CPU's budget.
 */
static __always_inline void budget__fill(struct budget_share *share, __u64 now_ns, __u32 parts)
{
	const __s64 most_ns = BUDGET_WINDOW_NS / 1000 * cfg_budget_permille / parts;
	__u64 passed_ns = budget__passed(share->filled_ns, now_ns);

	if (!passed_ns)
		return;
	share->filled_ns = now_ns;
	if (passed_ns > BUDGET_WINDOW_NS)
		passed_ns = BUDGET_WINDOW_NS;
	share->left_ns += passed_ns * cfg_budget_permille / 1000 / parts;
	if (share->left_ns > most_ns)
		share->left_ns = most_ns;
}

static __always_inline __u32 budget__parts(void)
{
	return 2 * (cfg_budget_events ?: 1);
}

/* Returns 1 if the event may be sampled: its share or the pool has time left, or there is no limit.
 */
static __always_inline int budget__has(struct budget_rec *budget, __u32 event, __u64 now_ns)
{
	struct event_budget *own = budget__of(budget, event);

	if (!cfg_budget_permille)
		return 1;
	budget__fill(&budget->pool, now_ns, 2);
	budget__fill(&own->share, now_ns, budget__parts());
	return own->share.left_ns > 0 || budget->pool.left_ns > 0;
}

/* Accounts for a sample of the event from @since_ns until now. The event's share pays for it, if it
 * has time left, else the pool. The debt is limited to one window. */
static __always_inline void budget__spend(__u32 event, __u64 since_ns)
{
	const __s64 least_ns = -(__s64)(BUDGET_WINDOW_NS / 1000 * cfg_budget_permille);
	struct budget_rec *budget = budget__here();
	struct budget_share *share;
	struct event_budget *own;
	__s64 spent_ns;

	if (!budget || !cfg_budget_permille)
		return;
	own = budget__of(budget, event);
	spent_ns = budget__passed(since_ns, bpf_ktime_get_ns());
	own->spent_ns += spent_ns;
	budget->spent_ns += spent_ns;
	share = own->share.left_ns > 0 ? &own->share : &budget->pool;
	share->left_ns -= spent_ns;
	if (share->left_ns < least_ns)
		share->left_ns = least_ns;
}

/* Returns the period of the event's clocks, and adjusts it such that samples cost the permitted
 * time. Their cost since the last change decides. An event pays for its own samples. It is too
 * expensive only if it has exceeded its own share, and all events together their sum. */
static __always_inline __u64 budget__period(struct budget_rec *budget, __u32 event, __u64 now_ns)
{
	struct event_budget *own = budget__of(budget, event);
	__u64 passed_ns = budget__passed(own->changed_ns, now_ns);
	__u64 period_ns = own->period_ns, all_ns, own_ns, whole_ns;
	__u32 steps = 0;

	if (!cfg_budget_permille)
		return 0;
	if (period_ns < PERIOD_LEAST_NS) {
		own->changed_ns = now_ns;
		own->whole_ns = budget->spent_ns;
		own->period_ns = period_ns = PERIOD_LEAST_NS;
		passed_ns = 0;
	}
	if (passed_ns < PERIOD_RAISED_NS)
		return period_ns;
	all_ns = passed_ns / 1000 * cfg_budget_permille;
	own_ns = all_ns / budget__parts();
	whole_ns = budget->spent_ns - own->whole_ns;
	while (steps < PERIOD_STEPS_MAX && own->spent_ns > own_ns << steps &&
	       whole_ns > all_ns << steps)
		steps++;
	period_ns <<= steps;
	if (!steps && (passed_ns < PERIOD_LOWERED_NS ||
		       (own->spent_ns > own_ns / 2 && whole_ns > all_ns / 2)))
		return period_ns;
	if (!steps && period_ns > PERIOD_LEAST_NS)
		period_ns /= 2;
	if (period_ns > PERIOD_MOST_NS)
		period_ns = PERIOD_MOST_NS;
	own->changed_ns = now_ns;
	own->spent_ns = 0;
	own->whole_ns = budget->spent_ns;
	if (period_ns > own->longest_ns)
		own->longest_ns = period_ns;
	own->period_ns = period_ns;
	return period_ns;
}

/* Returns the number of occurrences of @value that add up to @total. The number is rounded such
 * that its sum over all samples is exact. @value is not 0. */
static __always_inline __u64 budget__weight(struct event_budget *own, __u64 value, __u64 total)
{
	__u64 parts;

	if (total >> 47 || total <= value)
		return total <= value ? 1 : total / value;
	parts = (total << 16) / value + (own ? own->fraction : 1 << 15);
	if (own)
		own->fraction = parts & 0xffff;
	return parts >> 16;
}

static __always_inline void rest__add(struct rest_rec *rest, __u64 weight, __u64 total)
{
	__sync_fetch_and_add(&rest->weight, weight);
	__sync_fetch_and_add(&rest->total, total);
}

static __always_inline void rest__take(struct rest_rec *rest, struct worth *add_to)
{
	add_to->weight += __sync_lock_test_and_set(&rest->weight, 0);
	add_to->total += __sync_lock_test_and_set(&rest->total, 0);
}

/* Adds the weight and the total of a lost sample back to the rest of its event. */
static __always_inline void rest__return(__u32 event, __u64 weight, __u64 total)
{
	struct budget_rec *budget = budget__here();

	if (budget)
		rest__add(&budget__of(budget, event)->rests[rest_epoch & 1], weight, total);
}

/* Starts a clock. Clocks of threads that start together must ring at different times. */
static __always_inline void clock__start(struct interval_clock *clock, __u32 epoch)
{
	clock->ns = bpf_get_prandom_u32() & (PERIOD_LEAST_NS - 1);
	clock->skipped = 0;
	clock->epoch = epoch;
}

/* Decides on an interval of the event that ends now. @clock is the clock of its
 * thread. Returns 1 if the interval is sampled, with @ret_worth; else 0. */
static __noinline __attribute__((unused)) int budget__choose(__u32 event,
							     struct interval_clock *clock,
							     __u64 interval_ns, __u64 now_ns,
							     struct worth *ret_worth)
{
	struct budget_rec *budget = cfg_intervals & 1U << (event & 31) ? budget__here() : NULL;
	__u32 epoch = rest_epoch;
	struct event_budget *own;
	struct rest_rec *rest;
	__u64 period_ns, total, most;

	*ret_worth = (struct worth) { interval_ns, 1, interval_ns };
	if (!budget)
		return 1;
	own = budget__of(budget, event);
	own->occurrences++;
	period_ns = budget__period(budget, event, now_ns);
	if (interval_ns >= period_ns)
		return 1;
	if (clock->epoch != epoch)
		clock__start(clock, epoch);
	rest = &own->rests[epoch & 1];
	clock->ns += interval_ns;
	total = clock->ns & ~(period_ns - 1); /* periods are powers of two */
	clock->ns -= total;
	if (!total) {
		own->skipped++;
		clock->skipped++;
		rest__add(rest, 1, interval_ns);
		return 0;
	}
	rest__add(rest, -(__u64)clock->skipped, interval_ns - total);
	most = WEIGHT_TIMES_MAX * ((__u64)clock->skipped + 1);
	clock->skipped = 0;
	ret_worth->total = total;
	ret_worth->weight = budget__weight(own, interval_ns, total);
	if (ret_worth->weight > most)
		ret_worth->weight = most;
	return 1;
}

/* As budget__choose(), for an interval in progress, as if it ended now. Changes no clock. */
static __always_inline int budget__is_due(__u32 event, const struct interval_clock *clock,
					  __u64 interval_ns, struct worth *ret_worth)
{
	struct budget_rec *budget = cfg_intervals & 1U << (event & 31) ? budget__here() : NULL;
	__u64 clock_ns = clock->epoch == rest_epoch ? clock->ns : 0;
	struct event_budget *own;

	*ret_worth = (struct worth) { interval_ns, 1, interval_ns };
	if (!budget || !cfg_budget_permille)
		return 1;
	own = budget__of(budget, event);
	if (interval_ns >= own->period_ns)
		return 1;
	ret_worth->total = (clock_ns + interval_ns) & ~(own->period_ns - 1);
	if (ret_worth->total)
		ret_worth->weight = budget__weight(own, interval_ns, ret_worth->total);
	return ret_worth->total != 0;
}

#endif
