// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/calibration.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/modes.h"
#include "bench/workers.h"
#include "bpf/probe_rec.h"
#include "bpf/shadow.h"
#include "core/cpu_clock.h"
#include "core/kernel_part.h"
#include "core/trap_sites.h"
#include "core/util.h"
#include "probes/attach.h"

#define ROUNDS_MAX 64
#define HITS	   1000
#define NODES	   256

/* Enough samples to tell them from nothing, and few enough that the kernel does not throttle. */
#define SAMPLE_PERIOD_NS 50000
#define SPIN_THOUSANDS	 40000 /* some 20 ms */
#define MODES_NS	 150e6 /* 3000 samples */

/* --- what is measured --- */

enum program { NOTHING, COUNT, PUSH, POP, PUSH_COUNTED, POP_COUNTED, PROGRAMS_N };

struct point {
	enum program program;
	uint8_t offset; /* in the site's code */
	bool retprobe;
};

/* All at places of their own, so that they are attached at once, and each measured in turn:
 * detaching takes the kernel up to a second. */
static const struct state {
	struct point points[2];
	int n_points;
} states[WORKER_SITES_N] = {
	[WORKER_NOP] = { { { NOTHING, 0, false } }, 1 },
	[WORKER_NOP_COUNTED] = { { { COUNT, 0, false } }, 1 },
	[WORKER_NOP5] = { { { NOTHING, 0, false } }, 1 },
	[WORKER_PUSH] = { { { NOTHING, 0, false } }, 1 },
	[WORKER_PUSH_RETURN] = { { { NOTHING, 0, true } }, 1 },
	[WORKER_PUSH_PAIR] = { { { NOTHING, 0, false }, { NOTHING, 0, true } }, 2 },
	[WORKER_STEP] = { { { NOTHING, 0, false } }, 1 },
	[WORKER_PAIR] = { { { NOTHING, 0, false }, { NOTHING, TRAP_SITE_PAIR_RETURN, false } }, 2 },
	[WORKER_PAIR_SHADOW] = { { { PUSH, 0, false }, { POP, TRAP_SITE_PAIR_RETURN, false } }, 2 },
	[WORKER_PAIR_CALLS] = { { { PUSH_COUNTED, 0, false },
				  { POP_COUNTED, TRAP_SITE_PAIR_RETURN, false } },
				2 },
};

/* Where each kind of trap is measured. */
static const uint8_t traps[TRAPS_N] = { [TRAP_NOP] = WORKER_NOP,
					[TRAP_NOP5] = WORKER_NOP5,
					[TRAP_PUSH] = WORKER_PUSH,
					[TRAP_STEP] = WORKER_STEP,
					[TRAP_RETURN] = WORKER_PUSH_RETURN };

struct bench {
	struct braid_bpf *small;     /* what has no maps to speak of */
	struct braid_bpf *shadow[2]; /* without and with calls counted */
	struct bpf_program *programs[PROGRAMS_N];
	struct workers *workers;
	struct probe_links *probes;
	struct bpf_link **samplers;
	size_t n_samplers;
	double base[WORKER_SITES_N];		      /* without probes */
	double hit_ns[TRAPS_N], hit_user_ns[TRAPS_N]; /* in one and the same run */
	double ns[WORKER_SITES_N][ROUNDS_MAX], interrupt_ns[ROUNDS_MAX];
};

/* --- the kernel half --- */

/* Three arguments in registers: as bpf/python_probes.bpf.c has it, file, name and line. */
static int set_site(const struct braid_bpf *skel, uint32_t site)
{
	static const uint8_t registers[3] = { PROBE_RDI, PROBE_RSI, PROBE_RDX };
	struct probe_rec rec = { .role = site ? PROBE_RETURN : PROBE_ENTRY,
				 .anchor_offset = 8,
				 .n_args = 3,
				 .space = 1,
				 .flags = PROBE_TAKEN,
				 .since_ns = 1 };

	for (int i = 0; i < 3; i++)
		rec.args[i] = (struct probe_arg) { .kind = PROBE_ARG_REGISTER,
						   .reg = registers[i],
						   .size = 8 };
	return bpf_map_update_elem(bpf_map__fd(skel->maps.probe_recs), &site, &rec, BPF_ANY)
		       ? -errno
		       : 0;
}

static int load_shadow(struct bench *bench, bool calls, struct err *err)
{
	static const char *const programs[] = { "python_usdt_entry", "python_usdt_return", NULL };
	static const char *const maps[] = {
		"shadows",    "probe_recs",   "probe_hits", "texts",
		"call_nodes", "call_stats",   "counters",   "python_codes",
		"ring",	      "python_procs", NULL
	};
	struct braid_bpf *skel;
	int code = kernel_part__open(programs, maps, &bench->shadow[calls], err);

	if (code)
		return code;
	skel = bench->shadow[calls];
	skel->rodata->cfg_calls = calls;
	skel->rodata->cfg_nodes = NODES;
	skel->rodata->cfg_shadows = 64;
	if (bpf_map__set_max_entries(skel->maps.shadows, 64) ||
	    bpf_map__set_max_entries(skel->maps.call_nodes, NODES) ||
	    bpf_map__set_max_entries(skel->maps.call_stats, NODES) ||
	    bpf_map__set_max_entries(skel->maps.ring, 1 << 20) ||
	    bpf_map__set_max_entries(skel->maps.probe_recs, 2) ||
	    bpf_map__set_max_entries(skel->maps.probe_hits, 2))
		return err__set(err, -EINVAL, "cannot size the BPF maps");
	code = kernel_part__load(skel, err);
	for (uint32_t site = 0; !code && site < 2; site++)
		code = set_site(skel, site);
	bench->programs[calls ? PUSH_COUNTED : PUSH] = skel->progs.python_usdt_entry;
	bench->programs[calls ? POP_COUNTED : POP] = skel->progs.python_usdt_return;
	return code;
}

static int load(struct bench *bench, struct err *err)
{
	static const char *const programs[] = { "nothing", "count_hit", "nothing_sampled", NULL };
	static const char *const maps[] = { "probe_hits", NULL };
	int code = kernel_part__open(programs, maps, &bench->small, err);

	if (!code)
		code = kernel_part__load(bench->small, err);
	if (code)
		return code;
	bench->programs[NOTHING] = bench->small->progs.nothing;
	bench->programs[COUNT] = bench->small->progs.count_hit;
	code = load_shadow(bench, false, err);
	return code ? code : load_shadow(bench, true, err);
}

/* --- attaching --- */

static int attach_state(struct bench *bench, const struct elf_file *file, int task, struct err *err)
{
	const struct state *state = &states[task];
	uint64_t vaddr, offset;
	int code = trap_site__find((const void *)(uintptr_t)worker__site(task), &vaddr, &offset);

	if (code)
		return err__set(err, code, "braid does not find its own code");
	for (int i = 0; !code && i < state->n_points; i++) {
		struct probe_point point = { .file = file,
					     .pc_vaddr = vaddr + state->points[i].offset,
					     .retprobe = state->points[i].retprobe,
					     .cookie = i };

		code = probe_links__attach(bench->probes, bench->programs[state->points[i].program],
					   workers__pid(bench->workers), &point, 1, err);
	}
	return code;
}

static int attach(struct bench *bench, struct err *err)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), code;
	struct elf_file *file = NULL;

	if (fd < 0)
		return err__set(err, -errno, "cannot open braid itself: %s", strerror(errno));
	code = elf_file__open(fd, "/proc/self/exe", &file, err);
	for (int task = 0; !code && task < WORKER_SITES_N; task++)
		code = attach_state(bench, file, task, err);
	elf_file__free(file);
	return code;
}

static void detach_samplers(struct bench *bench)
{
	while (bench->n_samplers)
		bpf_link__destroy(bench->samplers[--bench->n_samplers]);
}

static int attach_samplers(struct bench *bench, struct err *err)
{
	int code = 0;

	bench->n_samplers = workers__n(bench->workers);
	memset(bench->samplers, 0, bench->n_samplers * sizeof(*bench->samplers));
	for (unsigned w = 0; !code && w < bench->n_samplers; w++)
		code = cpu_clock__attach(bench->small->progs.nothing_sampled,
					 workers__cpu(bench->workers, w), SAMPLE_PERIOD_NS,
					 &bench->samplers[w], NULL, err);
	return code;
}

/* --- rounds --- */

static int run(struct bench *bench, enum worker_task task, double *ret_ns, struct err *err)
{
	struct worker_times times;
	/* the first hit makes the kernel set things up */
	int code = workers__run(bench->workers, task, 1 + HITS / 10, 0, &times, err);

	if (!code)
		code = workers__run(bench->workers, task, HITS, 0, &times, err);
	*ret_ns = times.cpu_ns;
	return code;
}

/* Of additions: how much longer they take, by the number of samples meanwhile. */
static int measure_interrupt(struct bench *bench, double *ret_ns, struct err *err)
{
	struct worker_times without, with;
	double by_cpu, by_wall;
	int code = workers__run(bench->workers, WORKER_SPIN, SPIN_THOUSANDS, 0, &without, err);

	if (!code)
		code = attach_samplers(bench, err);
	if (!code)
		code = workers__run(bench->workers, WORKER_SPIN, SPIN_THOUSANDS, 0, &with, err);
	detach_samplers(bench);
	if (code)
		return code;
	by_cpu = (with.cpu_ns - without.cpu_ns) / (with.cpu_ns / SAMPLE_PERIOD_NS);
	by_wall = (with.wall_ns - without.wall_ns) / (with.wall_ns / SAMPLE_PERIOD_NS);
	/* Less than this it cannot be: then interrupts are no CPU time here. */
	*ret_ns = max_of(by_cpu > 100 ? by_cpu : by_wall, 0);
	return 0;
}

static int measure_round(struct bench *bench, unsigned round, struct err *err)
{
	int code = 0;

	for (int task = 0; !code && task < WORKER_SITES_N; task++) {
		double *ns = &bench->ns[task][round];

		code = run(bench, task, ns, err);
		*ns = max_of(*ns - bench->base[task], 0);
	}
	if (!code)
		code = measure_interrupt(bench, &bench->interrupt_ns[round], err);
	/* The kernel runs no program at the entry of a function whose return is probed, but takes
	 * its trap. */
	bench->ns[WORKER_PUSH_RETURN][round] =
		max_of(bench->ns[WORKER_PUSH_RETURN][round] - bench->ns[WORKER_PUSH][round], 0);
	bench->ns[WORKER_NOP_COUNTED][round] =
		max_of(bench->ns[WORKER_NOP_COUNTED][round] - bench->ns[WORKER_NOP][round], 0);
	return code;
}

/* How much of this kind of trap is in user mode. */
static int measure_mode(struct bench *bench, enum trap_kind kind,
			const struct mode_sampler *sampler, struct err *err)
{
	double base = bench->base[traps[kind]];
	uint32_t n = MODES_NS / max_of(bench->ns[traps[kind]][0] + base, 100);
	struct mode_ticks ticks = mode_sampler__ticks(sampler);
	struct worker_times times;
	int code = workers__run(bench->workers, traps[kind], n, 0, &times, err);

	if (code)
		return code;
	ticks = mode_sampler__since(sampler, &ticks);
	bench->hit_ns[kind] = times.cpu_ns - base;
	bench->hit_user_ns[kind] =
		times.cpu_ns * ticks.user / max_of(ticks.user + ticks.kernel, 1U) - base;
	return 0;
}

static int measure_modes(struct bench *bench, struct err *err)
{
	struct mode_sampler *sampler = NULL;
	int code =
		mode_sampler__start(workers__pid(bench->workers), SAMPLE_PERIOD_NS, &sampler, err);

	for (int kind = 0; !code && kind < TRAPS_N; kind++)
		code = measure_mode(bench, kind, sampler, err);
	mode_sampler__stop(sampler);
	return code;
}

static int measure(struct bench *bench, unsigned rounds, struct err *err)
{
	int code = 0;

	for (int task = 0; !code && task < WORKER_SITES_N; task++)
		code = run(bench, task, &bench->base[task], err);
	if (!code)
		code = attach(bench, err);
	for (unsigned round = 0; !code && round < rounds; round++)
		code = measure_round(bench, round, err);
	return code ? code : measure_modes(bench, err);
}

static void conclude(struct bench *bench, unsigned rounds, struct calibration *ret)
{
	double(*ns)[ROUNDS_MAX] = bench->ns;

	*ret = (struct calibration) {};
	ret->shadow_ratio = figure__ratio(ns[WORKER_PAIR_SHADOW], ns[WORKER_PAIR], rounds);
	ret->calls_ratio = figure__ratio(ns[WORKER_PAIR_CALLS], ns[WORKER_PAIR], rounds);
	bench->hit_ns[TRAP_RETURN] -= bench->hit_ns[TRAP_PUSH];
	bench->hit_user_ns[TRAP_RETURN] -= bench->hit_user_ns[TRAP_PUSH];
	for (int kind = 0; kind < TRAPS_N; kind++) {
		ret->trap[kind] = figure__of(ns[traps[kind]], rounds);
		ret->trap_user[kind] =
			fmin(fmax(bench->hit_user_ns[kind] / fmax(bench->hit_ns[kind], 1), 0), 1);
	}
	ret->count = figure__of(ns[WORKER_NOP_COUNTED], rounds);
	ret->pair[CALIBRATION_USDT] = figure__of(ns[WORKER_PAIR], rounds);
	ret->pair[CALIBRATION_UPROBE] = figure__of(ns[WORKER_PUSH_PAIR], rounds);
	ret->shadow = figure__of(ns[WORKER_PAIR_SHADOW], rounds);
	ret->calls = figure__of(ns[WORKER_PAIR_CALLS], rounds);
	ret->interrupt = figure__of(bench->interrupt_ns, rounds);
}

static void bench_free(struct bench *bench)
{
	if (!bench)
		return;
	probe_links__free(bench->probes);
	detach_samplers(bench);
	workers__stop(bench->workers);
	braid_bpf__destroy(bench->small);
	braid_bpf__destroy(bench->shadow[0]);
	braid_bpf__destroy(bench->shadow[1]);
	free(bench->samplers);
	free(bench);
}

int calibration__measure(unsigned cpus, unsigned rounds, struct calibration *ret, struct err *err)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	int code = -ENOMEM;

	rounds = min_of(rounds, (unsigned)ROUNDS_MAX);
	if (bench) {
		bench->probes = probe_links__new();
		bench->samplers = calloc(cpus, sizeof(*bench->samplers));
	}
	if (bench && bench->probes && bench->samplers)
		code = workers__start(cpus, &bench->workers, err);
	else
		err__set(err, code, "out of memory");
	if (!code)
		code = load(bench, err);
	if (!code)
		code = measure(bench, rounds, err);
	if (!code)
		conclude(bench, rounds, ret);
	bench_free(bench);
	return code;
}
