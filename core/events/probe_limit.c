// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/probe_limit.h"

#include <assert.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "core/base/util.h"

#define ASSUMED_NS 1000 /* cost of a trap, if it cannot be measured */

static unsigned n_cpus(void)
{
	return max_of(sysconf(_SC_NPROCESSORS_ONLN), 1);
}

/* Returns the cost since the last call. */
static double spend(struct probe_limit *limit)
{
	double spent = 0;

	for (size_t i = 0; i < limit->n; i++) {
		struct bpf_prog_info info = {};
		uint32_t size = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(limit->programs[i].program), &info,
					   &size))
			continue;
		spent += (info.run_cnt - limit->programs[i].runs) * limit->programs[i].trap_ns;
		spent += info.run_time_ns - limit->programs[i].run_ns;
		limit->programs[i].runs = info.run_cnt;
		limit->programs[i].run_ns = info.run_time_ns;
	}
	return spent;
}

void probe_limit__begin(struct probe_limit *limit, struct event *event, double percent,
			const struct probe_limit_program *programs, size_t n)
{
	struct trap_costs costs = {};
	struct err ignored = {};
	uint32_t traps = 0;

	assert(n <= PROBE_LIMIT_PROGRAMS_MAX);
	if (percent <= 0)
		return;
	limit->stats_fd = event__open_statistics(event);
	limit->enforced = limit->stats_fd >= 0;
	if (!limit->enforced)
		return;
	for (size_t i = 0; i < n; i++)
		traps |= 1U << programs[i].trap;
	if (trap__measure(traps, &costs, &ignored))
		costs = (struct trap_costs) {};
	limit->n = n;
	for (size_t i = 0; i < n; i++) {
		limit->programs[i].program = programs[i].program;
		limit->programs[i].trap_ns = costs.ns[programs[i].trap] ?: ASSUMED_NS;
	}
	limit->percent = percent;
	limit->rate = percent / 100 * n_cpus();
	limit->left_ns = limit->rate * NSEC_PER_SEC;
	limit->began_ns = limit->filled_ns = now_ns();
}

bool probe_limit__is_exceeded(struct probe_limit *limit, uint64_t now_ns)
{
	double spent;

	if (!limit->enforced || limit->detached)
		return false;
	spent = spend(limit);
	limit->spent_ns += spent;
	limit->left_ns += limit->rate * (now_ns - limit->filled_ns) - spent;
	limit->left_ns = min_of(limit->left_ns, limit->rate * NSEC_PER_SEC);
	limit->filled_ns = now_ns;
	return limit->left_ns < 0;
}

static void *detach(void *arg)
{
	probe_set__detach(arg);
	return NULL;
}

void probe_limit__detach(struct probe_limit *limit, struct probe_set **set)
{
	limit->detached = *set;
	*set = NULL;
	limit->detaching = !pthread_create(&limit->thread, NULL, detach, limit->detached);
	if (!limit->detaching)
		probe_set__detach(limit->detached);
}

double probe_limit__cost(const struct probe_limit *limit)
{
	double passed_ns = limit->filled_ns - limit->began_ns;

	return passed_ns > 0 ? 100 * limit->spent_ns / passed_ns / n_cpus() : 0;
}

double probe_limit__seconds(const struct probe_limit *limit)
{
	return (limit->filled_ns - limit->began_ns) / 1e9;
}

void probe_limit__done(struct probe_limit *limit)
{
	if (limit->detaching)
		pthread_join(limit->thread, NULL);
	probe_set__free(limit->detached);
	if (limit->enforced)
		close_fd(&limit->stats_fd);
}
