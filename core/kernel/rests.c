// SPDX-License-Identifier: GPL-2.0-or-later
/* Figures of the kernel half's budgets (bpf/budget.bpf.h), and the rests of their events. */
#include "core/kernel/kernel_half_state.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "bpf/waiting.h"
#include "core/base/util.h"

static size_t budgets_size(const struct kernel_half *half)
{
	return half->n_slots_cpus * sizeof(struct budget_rec);
}

/* Maps the entries of all CPUs, until unmap_budgets(). Returns NULL on failure. */
static struct budget_rec *map_budgets(const struct kernel_half *half)
{
	void *budgets = mmap(NULL, budgets_size(half), PROT_READ | PROT_WRITE, MAP_SHARED,
			     bpf_map__fd(half->skel->maps.budgets), 0);

	return budgets == MAP_FAILED ? NULL : budgets;
}

static void unmap_budgets(const struct kernel_half *half, struct budget_rec *budgets)
{
	munmap(budgets, budgets_size(half));
}

void kernel_half__economy(const struct kernel_half *half, struct kernel_half_economy *ret)
{
	struct budget_rec *budgets = map_budgets(half);

	*ret = (struct kernel_half_economy) { .below = half->skel->bss->waits_below,
					      .below_ns = half->skel->bss->waits_below_ns };
	for (int cpu = 0; budgets && cpu < half->n_slots_cpus; cpu++)
		for (int i = 0; i < EVENTS_MAX; i++) {
			const struct event_budget *own = &budgets[cpu].events[i + 1];

			ret->events[i].occurrences += own->occurrences;
			ret->events[i].skipped += own->skipped;
			ret->events[i].period_ns =
				max_of(ret->events[i].period_ns, own->longest_ns);
		}
	if (budgets)
		unmap_budgets(half, budgets);
}

static void take(struct rest_rec *rest, struct rest_rec *add_to)
{
	add_to->weight += __atomic_exchange_n(&rest->weight, 0, __ATOMIC_RELAXED);
	add_to->total += __atomic_exchange_n(&rest->total, 0, __ATOMIC_RELAXED);
}

/* Takes the occurrences after the last n-th one (-c). For an event that is only counted, the
 * counter gives them. Lowers the counter to that of the last sample; retries if another occurrence
 * comes meanwhile. */
static void take_period(const struct kernel_half *half, int event, struct rest_rec *add_to)
{
	__u64 *occurrences = &half->skel->bss->occurrences[event];
	__u64 before = __atomic_load_n(occurrences, __ATOMIC_RELAXED), over;
	__u64 period = half->opts.periods[event];

	if (half->opts.measured & 1U << event) {
		take(&half->skel->bss->period_rests[event], add_to);
		return;
	}
	if (period <= 1)
		return;
	do {
		over = before % period;
	} while (!__atomic_compare_exchange_n(occurrences, &before, before - over, false,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	add_to->weight += over;
	add_to->total += over;
}

int kernel_half__take_rests(const struct kernel_half *half, struct rest_rec ret[EVENTS_MAX])
{
	struct budget_rec *budgets = map_budgets(half);
	uint32_t epoch;

	memset(ret, 0, EVENTS_MAX * sizeof(*ret));
	if (!budgets)
		return -errno;
	epoch = __atomic_fetch_add(&half->skel->data->rest_epoch, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < EVENTS_MAX; i++) {
		for (int cpu = 0; cpu < half->n_slots_cpus; cpu++)
			take(&budgets[cpu].events[i + 1].rests[epoch & 1], &ret[i]);
		take_period(half, i + 1, &ret[i]);
		/* A clock starts at a random time, so that it may have fired slightly early. */
		if ((int64_t)ret[i].total < 0)
			ret[i].total = 0;
		if ((int64_t)ret[i].weight < 0)
			ret[i].weight = 0;
	}
	unmap_budgets(half, budgets);
	return 0;
}
