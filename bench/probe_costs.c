// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/probe_costs.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/probe_rec.h"
#include "core/base/util.h"
#include "core/kernel/kernel_subset.h"
#include "core/kernel/trap_sites.h"
#include "probes/attach.h"

#define ROUNDS_MAX 64
#define HITS	   1000
#define NODES	   256 /* nodes of the call tree */
#define SHADOWS	   64

/* Arguments of a runtime's probes: two texts and a line. */
static const char file_name[] = "braid-bench.py", function_name[] = "bench";

/* --- measured code --- */

enum program { NOTHING, PUSH, POP, PUSH_COUNTED, POP_COUNTED, PROGRAMS_N };

enum site {
	SITE_NOP,
	SITE_NOP5,
	SITE_PUSH,
	SITE_PUSH_RETURN,
	SITE_PUSH_PAIR,
	SITE_STEP,
	SITE_PAIR,
	SITE_PAIR_SHADOW,
	SITE_PAIR_CALLS,
	SITES_N
};

struct point {
	enum program program;
	uint8_t offset; /* offset in the site's code */
	bool retprobe;
};

/* Each site has its own address, so that all are attached together and measured in turn: detaching
 * takes the kernel up to a second. */
/* clang-format off */
static const struct {
	trap_site_fn code;
	struct point points[2];
	int n_points;
} sites[SITES_N] = {
	[SITE_NOP]	   = { trap_site_nop,	      { { NOTHING, 0, false } }, 1 },
	[SITE_NOP5]	   = { trap_site_nop5,	      { { NOTHING, 0, false } }, 1 },
	[SITE_PUSH]	   = { trap_site_push,	      { { NOTHING, 0, false } }, 1 },
	[SITE_PUSH_RETURN] = { trap_site_push_return, { { NOTHING, 0, true } }, 1 },
	[SITE_PUSH_PAIR]   = { trap_site_push_pair,   { { NOTHING, 0, false }, { NOTHING, 0, true } }, 2 },
	[SITE_STEP]	   = { trap_site_step,	      { { NOTHING, 0, false } }, 1 },
	[SITE_PAIR]	   = { trap_site_pair,
			       { { NOTHING, 0, false }, { NOTHING, TRAP_SITE_PAIR_RETURN, false } }, 2 },
	[SITE_PAIR_SHADOW] = { trap_site_pair_shadow,
			       { { PUSH, 0, false }, { POP, TRAP_SITE_PAIR_RETURN, false } }, 2 },
	[SITE_PAIR_CALLS]  = { trap_site_pair_calls,
			       { { PUSH_COUNTED, 0, false },
				 { POP_COUNTED, TRAP_SITE_PAIR_RETURN, false } }, 2 },
};

static const enum site trap_sites[TRAPS_N] = {
	[TRAP_NOP]    = SITE_NOP,
	[TRAP_NOP5]   = SITE_NOP5,
	[TRAP_PUSH]   = SITE_PUSH,
	[TRAP_STEP]   = SITE_STEP,
	[TRAP_RETURN] = SITE_PUSH_RETURN,
};
/* clang-format on */

struct bench {
	struct braid_bpf *small;     /* the programs without notable maps */
	struct braid_bpf *shadow[2]; /* without and with calls counted */
	struct bpf_program *programs[PROGRAMS_N];
	struct probe_links *probes;
	double base[SITES_N]; /* cost without probes, in ns */
	double ns[SITES_N][ROUNDS_MAX];
};

/* --- the kernel half --- */

/* Sets a probe site with three arguments in registers, as in bpf/python_probes.bpf.c: file, name
 * and line. */
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
	int ret = kernel_subset__open(programs, maps, &bench->shadow[calls], err);

	if (ret)
		return ret;
	skel = bench->shadow[calls];
	skel->rodata->cfg_calls = calls;
	skel->rodata->cfg_nodes = NODES;
	skel->rodata->cfg_shadows = SHADOWS;
	if (bpf_map__set_max_entries(skel->maps.shadows, SHADOWS) ||
	    bpf_map__set_max_entries(skel->maps.call_nodes, NODES) ||
	    bpf_map__set_max_entries(skel->maps.call_stats, NODES) ||
	    bpf_map__set_max_entries(skel->maps.ring, 1 << 20) ||
	    bpf_map__set_max_entries(skel->maps.probe_recs, 2) ||
	    bpf_map__set_max_entries(skel->maps.probe_hits, 2))
		return err__set(err, -EINVAL, "cannot size the BPF maps");
	ret = kernel_subset__load(skel, err);
	for (uint32_t site = 0; !ret && site < 2; site++)
		ret = set_site(skel, site);
	bench->programs[calls ? PUSH_COUNTED : PUSH] = skel->progs.python_usdt_entry;
	bench->programs[calls ? POP_COUNTED : POP] = skel->progs.python_usdt_return;
	return ret;
}

static int load(struct bench *bench, struct err *err)
{
	static const char *const programs[] = { "nothing", NULL };
	static const char *const maps[] = { NULL };
	int ret = kernel_subset__open(programs, maps, &bench->small, err);

	if (!ret)
		ret = kernel_subset__load(bench->small, err);
	if (ret)
		return ret;
	bench->programs[NOTHING] = bench->small->progs.nothing;
	ret = load_shadow(bench, false, err);
	return ret ? ret : load_shadow(bench, true, err);
}

static int attach_site(struct bench *bench, const struct elf_file *file, enum site site,
		       struct err *err)
{
	uint64_t vaddr, offset;
	int ret = trap_site__find((const void *)(uintptr_t)sites[site].code, &vaddr, &offset);

	if (ret)
		return err__set(err, ret, "cannot find braid's own code");
	for (int i = 0; !ret && i < sites[site].n_points; i++) {
		const struct point *at = &sites[site].points[i];
		struct probe_point point = { .file = file,
					     .pc_vaddr = vaddr + at->offset,
					     .retprobe = at->retprobe,
					     .cookie = i };

		ret = probe_links__attach(bench->probes, bench->programs[at->program], getpid(),
					  &point, 1, err);
	}
	return ret;
}

static int attach(struct bench *bench, struct err *err)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), ret;
	struct elf_file *file = NULL;

	if (fd < 0)
		return err__set(err, -errno, "cannot open braid itself: %s", strerror(errno));
	ret = elf_file__open(fd, "/proc/self/exe", &file, err);
	for (enum site site = 0; !ret && site < SITES_N; site++)
		ret = attach_site(bench, file, site, err);
	elf_file__free(file);
	return ret;
}

/* --- rounds --- */

static double ns_per_hit(enum site site)
{
	trap_site_fn code = sites[site].code;
	double start;

	/* The first hit causes setup in the kernel. BPF programs cannot read a text whose page is
	 * not mapped yet. */
	(void)*(const volatile char *)file_name;
	(void)*(const volatile char *)function_name;
	for (int i = 0; i < HITS / 10; i++)
		code((uintptr_t)file_name, (uintptr_t)function_name, 1);
	start = thread_cpu_ns();
	for (int i = 0; i < HITS; i++)
		code((uintptr_t)file_name, (uintptr_t)function_name, 1);
	return (thread_cpu_ns() - start) / HITS;
}

static int measure(struct bench *bench, size_t rounds, struct err *err)
{
	int ret;

	for (enum site site = 0; site < SITES_N; site++)
		bench->base[site] = ns_per_hit(site);
	ret = attach(bench, err);
	for (size_t round = 0; !ret && round < rounds; round++) {
		for (enum site site = 0; site < SITES_N; site++)
			bench->ns[site][round] = max_of(ns_per_hit(site) - bench->base[site], 0);
		/* The kernel runs no program at the entry of a function whose return is probed, but
		 * its trap still has a cost. */
		bench->ns[SITE_PUSH_RETURN][round] =
			max_of(bench->ns[SITE_PUSH_RETURN][round] - bench->ns[SITE_PUSH][round], 0);
	}
	return ret;
}

static void conclude(struct bench *bench, size_t rounds, struct probe_costs *ret)
{
	double(*ns)[ROUNDS_MAX] = bench->ns;

	*ret = (struct probe_costs) {};
	ret->shadow_ratio = figure__ratio(ns[SITE_PAIR_SHADOW], ns[SITE_PAIR], rounds);
	ret->calls_ratio = figure__ratio(ns[SITE_PAIR_CALLS], ns[SITE_PAIR], rounds);
	for (int kind = 0; kind < TRAPS_N; kind++)
		ret->trap[kind] = figure__of(ns[trap_sites[kind]], rounds);
	ret->usdt_pair = figure__of(ns[SITE_PAIR], rounds);
	ret->uprobe_pair = figure__of(ns[SITE_PUSH_PAIR], rounds);
	ret->shadow = figure__of(ns[SITE_PAIR_SHADOW], rounds);
	ret->calls = figure__of(ns[SITE_PAIR_CALLS], rounds);
}

int probe_costs__measure(size_t rounds, struct probe_costs *ret_costs, struct err *err)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	int ret = -ENOMEM;

	assert(rounds > 0 && rounds <= ROUNDS_MAX);
	if (bench)
		bench->probes = probe_links__new();
	if (!bench || !bench->probes) {
		err__set(err, ret, "out of memory");
		goto out;
	}
	ret = load(bench, err);
	if (!ret)
		ret = measure(bench, rounds, err);
	if (!ret)
		conclude(bench, rounds, ret_costs);
	probe_links__free(bench->probes);
	braid_bpf__destroy(bench->small);
	braid_bpf__destroy(bench->shadow[0]);
	braid_bpf__destroy(bench->shadow[1]);
out:
	free(bench);
	return ret;
}

double probe_costs__hit_ns(const struct probe_costs *costs, enum trap_kind kind)
{
	double programs_ns = max_of(costs->calls.median - costs->usdt_pair.median, 0);

	assert(kind < TRAPS_N);
	return costs->trap[kind].median + programs_ns / 2;
}
