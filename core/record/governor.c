// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/record/governor.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "core/base/privilege.h"
#include "core/base/util.h"
#include "core/kernel/trap.h"

/* --- budget --- */

void budget__init(struct budget *budget, double percent, unsigned n_cpus, uint64_t now)
{
	double rate = percent / 100 * n_cpus;

	assert(percent > 0 && n_cpus > 0);
	*budget = (struct budget) { .rate = rate,
				    .left_ns = rate * NSEC_PER_SEC,
				    .seen_ns = now,
				    .full_ns = now,
				    .n_cpus = n_cpus };
}

bool budget__is_overdrawn(const struct budget *budget)
{
	return budget->left_ns < 0;
}

static bool is_full(const struct budget *budget)
{
	return budget->left_ns >= budget->rate * NSEC_PER_SEC;
}

void budget__spend(struct budget *budget, double ns, uint64_t now)
{
	double room = budget->rate * NSEC_PER_SEC;

	assert(ns >= 0 && now >= budget->seen_ns);
	if (is_full(budget)) {
		budget->full_ns = budget->seen_ns;
		budget->spent_ns = 0;
	}
	budget->spent_ns += ns;
	budget->left_ns += budget->rate * (now - budget->seen_ns) - ns;
	budget->left_ns = min_of(budget->left_ns, room);
	budget->seen_ns = now;
}

double budget__percent(const struct budget *budget)
{
	double span_ns = (double)(budget->seen_ns - budget->full_ns) * budget->n_cpus;

	return span_ns > 0 ? 100 * budget->spent_ns / span_ns : 0;
}

/* --- pace --- */

/* Twice the rate is tried after QUIET_TICKS seconds in which it would have cost less than two
 * thirds of the limit. */
#define QUIET_SHARE (1 / 3.0)
#define QUIET_TICKS 3

void pace__init(struct pace *pace, double max_percent, uint32_t frequency_hz)
{
	*pace = (struct pace) {
		.max_percent = max_percent, .slowdown = 1, .slowdown_max = 1, .slowest = 1
	};
	while (pace->slowdown_max <= frequency_hz / 2)
		pace->slowdown_max *= 2;
}

bool pace__tick(struct pace *pace, double own_percent)
{
	bool quiet = own_percent < pace->max_percent * QUIET_SHARE;

	assert(pace->slowdown && pace->slowdown <= pace->slowdown_max);
	pace->quiet = quiet ? pace->quiet + 1 : 0;
	if (own_percent > pace->max_percent && pace->slowdown < pace->slowdown_max)
		pace->slowdown *= 2;
	else if (pace->quiet >= QUIET_TICKS && pace->slowdown > 1)
		pace->slowdown /= 2;
	else
		return false;
	pace->quiet = 0;
	pace->slowest = max_of(pace->slowest, pace->slowdown);
	return true;
}

/* --- probes --- */

struct governed { /* a program that probes run */
	int fd;	  /* borrowed */
	bool at_return;
	uint64_t runs, ns; /* up to the last evaluation */
};

/* The assumed cost of a trap until it is measured, some tenths of a second later: that of a USDT
 * site on a virtual machine (docs/reference/bench.md). */
#define ASSUMED_NS 1000

struct measuring {
	pthread_t thread;
	bool running;
	bool done; /* written by the thread, last */
	uint32_t kinds;
	struct trap_costs costs;
	struct err err;
	int ret;
};

struct governor {
	struct governor_opts opts;
	struct budget budget;
	struct governed *programs;
	size_t n_programs, cap_programs;
	struct trap_costs costs;
	struct measuring measuring;
	uint32_t measured; /* kinds of traps that are measured */
	uint32_t entries;  /* kinds that probes have, without returns */
	int stats_fd;	   /* the kernel maintains statistics while this is open */
};

void program_stats__read(int program_fd, uint64_t *ret_runs, uint64_t *ret_ns)
{
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(program_fd, &info, &size))
		info = (struct bpf_prog_info) {};
	*ret_runs = info.run_cnt;
	*ret_ns = info.run_time_ns;
}

static int add_programs(struct governor *governor, const char *const *names)
{
	for (; names && *names; names++) {
		struct bpf_program *program =
			bpf_object__find_program_by_name(governor->opts.object, *names);

		if (!program || bpf_program__fd(program) < 0)
			continue;
		if (array__reserve(&governor->programs, &governor->cap_programs,
				   governor->n_programs + 1, sizeof(*governor->programs)))
			return -ENOMEM;
		governor->programs[governor->n_programs++] = (struct governed) {
			.fd = bpf_program__fd(program),
			.at_return = strstr(bpf_program__section_name(program), "uretprobe"),
		};
	}
	return 0;
}

/* Finds the probes' programs, which are loaded with the first probe. */
static int find_programs(struct governor *governor, struct err *err)
{
	const struct governor_opts *opts = &governor->opts;
	int ret = 0;

	if (governor->n_programs)
		return 0;
	for (int i = 0; !ret && opts->runtimes[i]; i++)
		if (opts->enabled & 1U << i && opts->runtimes[i]->probes)
			ret = add_programs(governor, opts->runtimes[i]->probes->programs);
	return ret ? err__set(err, ret, "out of memory") : 0;
}

int governor__new(const struct governor_opts *opts, struct governor **ret, struct err *err)
{
	struct governor *governor = calloc(1, sizeof(*governor));
	long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (!governor)
		return err__set(err, -ENOMEM, "out of memory");
	governor->opts = *opts;
	governor->stats_fd = -1;
	for (int kind = 0; kind < TRAPS_N; kind++)
		governor->costs.ns[kind] = ASSUMED_NS;
	budget__init(&governor->budget, opts->max_percent, max_of(n_cpus, 1), now_ns());
	*ret = governor;
	return 0;
}

void governor__free(struct governor *governor)
{
	if (!governor)
		return;
	governor__rest(governor);
	if (governor->measuring.running)
		pthread_join(governor->measuring.thread, NULL);
	free(governor->programs);
	free(governor);
}

void governor__rest(struct governor *governor)
{
	close_fd(&governor->stats_fd);
}

static void *measure(void *arg)
{
	struct measuring *measuring = arg;

	privilege__keep_for_recording();
	measuring->ret = trap__measure(measuring->kinds, &measuring->costs, &measuring->err);
	__atomic_store_n(&measuring->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static int take_measured(struct governor *governor, struct err *err)
{
	struct measuring *measuring = &governor->measuring;

	pthread_join(measuring->thread, NULL);
	measuring->running = false;
	governor->measured |= measuring->kinds;
	for (int kind = 0; kind < TRAPS_N && !measuring->ret; kind++)
		if (measuring->kinds & 1U << kind)
			governor->costs.ns[kind] = measuring->costs.ns[kind];
	if (!measuring->ret)
		return 0;
	*err = measuring->err;
	return err__prefix(err, measuring->ret,
			   "cannot measure the cost of a probe on this machine");
}

/* Measures unknown kinds of traps in a thread, since the probes are attached already. */
static int learn(struct governor *governor, uint32_t traps, struct err *err)
{
	struct measuring *measuring = &governor->measuring;
	uint32_t unknown = traps & ~governor->measured;
	int ret;

	if (measuring->running)
		return __atomic_load_n(&measuring->done, __ATOMIC_ACQUIRE)
			       ? take_measured(governor, err)
			       : 0;
	if (!unknown)
		return 0;
	*measuring = (struct measuring) { .kinds = unknown };
	ret = pthread_create(&measuring->thread, NULL, measure, measuring);
	if (ret)
		return err__set(err, -ret, "cannot start a thread: %s", strerror(ret));
	measuring->running = true;
	return 0;
}

int governor__watch(struct governor *governor, uint32_t traps, struct err *err)
{
	int ret;

	if (governor->stats_fd < 0)
		governor->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (governor->stats_fd < 0 && errno == EPERM)
		return privilege__explain(1U << PRIVILEGE_STATISTICS,
					  "to read the kernel's BPF statistics, which "
					  "--max-overhead requires (unless it is `none`)",
					  err);
	if (governor->stats_fd < 0)
		return err__set(err, -errno,
				"cannot enforce --max-overhead: the kernel's BPF statistics are "
				"unavailable: %s. Use --max-overhead none",
				strerror(errno));
	governor->entries |= traps & ~(1U << TRAP_RETURN);
	ret = find_programs(governor, err);
	return ret ? ret : learn(governor, traps, err);
}

/* Returns the cost of a trap. A program may have sites of several kinds. Then each hit counts as
 * one of the most expensive kind. */
static double cost_of_hit(const struct governor *governor, const struct governed *program)
{
	double ns = 0;

	if (program->at_return)
		return governor->costs.ns[TRAP_RETURN];
	for (int kind = 0; kind < TRAPS_N; kind++)
		if (governor->entries & 1U << kind)
			ns = max_of(ns, governor->costs.ns[kind]);
	return ns;
}

/* Returns the cost of all probes since the last call. */
static double spent_ns(struct governor *governor)
{
	double sum = 0;

	for (size_t i = 0; i < governor->n_programs; i++) {
		struct governed *program = &governor->programs[i];
		uint64_t runs, ns;

		program_stats__read(program->fd, &runs, &ns);
		if (runs < program->runs || ns < program->ns)
			continue; /* reading it failed */
		sum += (runs - program->runs) * cost_of_hit(governor, program);
		sum += ns - program->ns;
		program->runs = runs;
		program->ns = ns;
	}
	return sum;
}

bool governor__is_exceeded(struct governor *governor, uint64_t now)
{
	budget__spend(&governor->budget, spent_ns(governor), now);
	return budget__is_overdrawn(&governor->budget);
}

double governor__percent(const struct governor *governor)
{
	return budget__percent(&governor->budget);
}
