/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_BUDGET_BPF_H
#define BRAID_BUDGET_BPF_H

/* What samples may cost (--max-overhead), of events that can be frequent: each CPU has a share of
 * its time to spend, which fills up as time passes and from which a sample takes as long as it
 * took.
 *
 * When that is used up, two things follow. Of occurrences that all count the same (a tracepoint's),
 * none is sampled until there is budget again, and the next sample stands for those, too: the sum
 * of values stays exact.
 *
 * Of intervals (waiting, a system call), those are sampled that meet a clock. Each thread has one
 * that runs while it waits, and rings every `period_ns`: the interval in which it rings is sampled,
 * with that value. So the chance of an interval is in proportion to its length, what is reported is
 * unbiased, and the sum is right but for what is left on the clock. No interval as long as the
 * period is ever missed, and such ones are reported with their exact length. The period doubles
 * where samples cost too much, and is halved where they cost less than half of what they may. A
 * sample by chance per occurrence would do neither: it takes short ones and long ones alike. */

#include "bpf/kernel.h"
#include "bpf/waiting.h"

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* What can gather: so much time's share. */
#define BUDGET_WINDOW_NS 100000000ULL

#define PERIOD_LEAST_NS	  WAITING_PERIOD_LEAST_NS
#define PERIOD_MOST_NS	  (1ULL << 27) /* 134 ms */
#define PERIOD_RAISED_NS  5000000ULL   /* it is looked at so long after a change, at least, */
#define PERIOD_LOWERED_NS 100000000ULL /* and then may fall */
#define PERIOD_STEPS_MAX  8	       /* doublings at once */

/* Tenths of a percent of a CPU's time; 0: no limit. */
extern const volatile __u32 cfg_budget_permille;

/* Of one CPU. What interrupts another user of it may lose an update; that does not add up. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct budget_rec);
} budgets __weak SEC(".maps");

static __always_inline struct budget_rec *budget__here(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&budgets, &key);
}

/* Returns the time from @since_ns to @now_ns, or 0 if @since_ns is the later one. A program reads
 * the clock once, at its start: one that interrupts it has a later time and may write that first.
 */
static __always_inline __u64 budget__passed(__u64 since_ns, __u64 now_ns)
{
	return now_ns > since_ns ? now_ns - since_ns : 0;
}

static __always_inline void budget__fill(struct budget_rec *budget, __u64 now_ns)
{
	const __s64 most_ns = BUDGET_WINDOW_NS / 1000 * cfg_budget_permille;
	__u64 passed_ns = budget__passed(budget->filled_ns, now_ns);

	if (!passed_ns)
		return;
	budget->filled_ns = now_ns;
	if (passed_ns > BUDGET_WINDOW_NS)
		passed_ns = BUDGET_WINDOW_NS;
	budget->left_ns += passed_ns * cfg_budget_permille / 1000;
	if (budget->left_ns > most_ns)
		budget->left_ns = most_ns;
}

/* Is there any left? */
static __always_inline int budget__has(struct budget_rec *budget, __u64 now_ns)
{
	if (!cfg_budget_permille)
		return 1;
	budget__fill(budget, now_ns);
	return budget->left_ns > 0;
}

/* A sample that was begun at `since_ns` ends now. */
static __always_inline void budget__spend(__u64 since_ns)
{
	struct budget_rec *budget = budget__here();
	__u64 spent_ns;

	if (!budget || !cfg_budget_permille)
		return;
	spent_ns = budget__passed(since_ns, bpf_ktime_get_ns());
	budget->left_ns -= spent_ns;
	budget->spent_ns += spent_ns;
}

/* A sample of the current thread is ready. */
static __always_inline void budget__note_emitted(void)
{
	struct budget_rec *budget = budget__here();

	if (!budget)
		return;
	budget->emitted_by = (__u32)bpf_get_current_task_btf()->pid;
	budget->emitted_ns = bpf_ktime_get_ns();
}

/* When that was, if it was on this CPU and since then; 0: it is not known. */
static __always_inline __u64 budget__emitted(__u64 since_ns)
{
	const struct budget_rec *budget = budget__here();

	if (!budget || budget->emitted_by != (__u32)bpf_get_current_task_btf()->pid ||
	    budget->emitted_ns < since_ns)
		return 0;
	return budget->emitted_ns;
}

/* The period that is right now: such that samples cost what they may, judging by what they have
 * cost since it was changed. */
static __always_inline __u64 budget__period(struct budget_rec *budget, __u64 now_ns)
{
	__u64 passed_ns = budget__passed(budget->changed_ns, now_ns);
	__u64 period_ns = budget->period_ns, may_ns;
	__u32 steps = 0;

	if (!cfg_budget_permille)
		return 0;
	if (period_ns < PERIOD_LEAST_NS) {
		budget->changed_ns = now_ns;
		budget->period_ns = period_ns = PERIOD_LEAST_NS;
		passed_ns = 0;
	}
	if (passed_ns < PERIOD_RAISED_NS)
		return period_ns;
	may_ns = passed_ns / 1000 * cfg_budget_permille;
	while (steps < PERIOD_STEPS_MAX && budget->spent_ns > may_ns << steps)
		steps++;
	period_ns <<= steps;
	if (!steps && (passed_ns < PERIOD_LOWERED_NS || budget->spent_ns > may_ns / 2))
		return period_ns;
	if (!steps && period_ns > PERIOD_LEAST_NS)
		period_ns /= 2;
	if (period_ns > PERIOD_MOST_NS)
		period_ns = PERIOD_MOST_NS;
	budget->changed_ns = now_ns;
	budget->spent_ns = 0;
	if (period_ns > budget->longest_ns)
		budget->longest_ns = period_ns;
	budget->period_ns = period_ns;
	return period_ns;
}

/* Of an interval that ends now, and of which `ret_clock_ns` is its thread's clock: the value of its
 * sample; 0: none is taken. */
static __always_inline __u64 budget__value(__u64 *ret_clock_ns, __u64 interval_ns, __u64 now_ns)
{
	struct budget_rec *budget = budget__here();
	__u64 period_ns, value_ns, clock_ns = *ret_clock_ns;

	if (!budget)
		return interval_ns;
	budget->intervals++;
	period_ns = budget__period(budget, now_ns);
	if (interval_ns >= period_ns)
		return interval_ns;
	clock_ns += interval_ns;
	value_ns = clock_ns & ~(period_ns - 1); /* periods are powers of two */
	*ret_clock_ns = clock_ns - value_ns;
	if (!value_ns)
		budget->skipped++;
	return value_ns;
}

/* Would such an interval be sampled if it ended now? */
static __always_inline int budget__is_due(__u64 clock_ns, __u64 interval_ns)
{
	const struct budget_rec *budget = budget__here();

	return !budget || !cfg_budget_permille || clock_ns + interval_ns >= budget->period_ns;
}

#endif
