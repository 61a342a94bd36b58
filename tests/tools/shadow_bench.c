// SPDX-License-Identifier: GPL-2.0-or-later
/* shadow_bench [-c] [-e] [-n CALLS] [-p SPANS] [-r ROUNDS] PYTHON [ROOT]: what a call costs in
 * CPython 3.6 to 3.10 with nothing attached, with empty programs on the pair of probes, and with
 * those that keep the shadow stack (-c: and count calls). Rounds are interleaved; of each the best
 * of SPANS times CALLS calls counts. Takes the USDT pair where there is one (-e: the pair at the
 * interpreter loop). PYTHON is looked up under ROOT. */
#include "bpf/shadow.h"
#include "core/cfi.h"
#include "probes/usdt_args.h"
#include "runtimes/python_versions.h"
#include "tests/tools/call_bench.h"

/* Each line on standard input is a number of calls; the answer is nanoseconds of CPU time. */
static const char workload[] = "import sys, time\n"
			       "def callee(): pass\n"
			       "def run(n):\n"
			       "    f = callee\n"
			       "    for i in range(n): f()\n"
			       "print('READY', flush=True)\n"
			       "while True:\n"
			       "    line = sys.stdin.readline()\n"
			       "    if not line: break\n"
			       "    t = time.process_time()\n"
			       "    run(int(line))\n"
			       "    print(int((time.process_time() - t) * 1e9), flush=True)\n";

static bool with_calls, at_eval;
static const char *python;

enum { ENTRY, RETURN };

static struct probe_point points[2];
static struct probe_rec recs[2];

/* --- the pair of probes --- */

struct row_search {
	uint64_t vaddr;
	struct unwind_rule rule;
};

static int on_row(void *ctx, uint64_t vaddr, const struct unwind_rule *rule)
{
	struct row_search *search = ctx;

	if (vaddr <= search->vaddr)
		search->rule = *rule;
	return 0;
}

static void set_usdt(int which, const struct usdt_site *site)
{
	struct row_search search = { .vaddr = site->pc_vaddr };
	struct probe_arg args[USDT_ARGS_MAX];
	struct err err = {};
	int n;

	points[which].pc_vaddr = site->pc_vaddr;
	points[which].semaphore_vaddr = site->semaphore_vaddr;
	n = usdt_args__parse(site->arguments, bench.file, site->pc_vaddr, args, &err);
	if (n < 3 || cfi__read(bench.file, on_row, &search, &err))
		fail(site->name, &err);
	if (search.rule.kind != UNWIND_REG || search.rule.reg != UNWIND_REG_RSP)
		fail("the frame of the probe is not of the simple kind", NULL);
	memcpy(recs[which].args, args, 3 * sizeof(*args));
	recs[which].anchor_offset = search.rule.cfa_off;
	printf("%s: %s, frame of %d bytes\n", site->name, site->arguments, search.rule.cfa_off);
}

static bool find_usdt(void)
{
	struct usdt_sites sites = {};
	struct err err = {};
	int n = 0;

	if (usdt__read(bench.file, &sites, &err))
		fail("sites", &err);
	for (size_t i = 0; i < sites.n; i++) {
		const struct usdt_site *site = &sites.list[i];

		if (strcmp(site->provider, "python") != 0)
			continue;
		if (strcmp(site->name, "function__entry") == 0)
			set_usdt(ENTRY, site), n++;
		if (strcmp(site->name, "function__return") == 0)
			set_usdt(RETURN, site), n++;
	}
	usdt_sites__done(&sites);
	return n == 2;
}

static int minor_version(void)
{
	const char *found = strstr(python, "python3."), *next;

	while (found && (next = strstr(found + 1, "python3.")))
		found = next;
	return found ? atoi(found + strlen("python3.")) : 0;
}

static void find_eval(void)
{
	bool is_new = minor_version() >= 9; /* the thread's state comes first */

	if (elf_file__find_symbol(bench.file, "_PyEval_EvalFrameDefault", &points[0].pc_vaddr,
				  NULL))
		fail("no symbol _PyEval_EvalFrameDefault", NULL);
	points[RETURN].pc_vaddr = points[ENTRY].pc_vaddr;
	points[RETURN].retprobe = true;
	recs[RETURN].anchor_offset = -8;
	recs[ENTRY].args[0] = (struct probe_arg) {
		.kind = PROBE_ARG_REGISTER,
		.reg = is_new ? PROBE_RSI : PROBE_RDI,
		.size = 8,
	};
}

/* --- the kernel half --- */

static const char *const programs[][3] = {
	{ "python_usdt_entry", "python_usdt_return", NULL },
	{ "python_eval_entry", "python_eval_return", NULL },
};

static struct braid_bpf *load(void)
{
	struct braid_bpf *skel = call_bench__load(programs[at_eval], 2, with_calls);
	struct python_proc_rec proc = {};
	uint32_t space = 1;

	if (!python_version__find(minor_version()))
		fail("version unknown", NULL);
	proc.offsets = python_version__find(minor_version())->offsets;
	bpf_map_update_elem(bpf_map__fd(skel->maps.python_procs), &space, &proc, 0);
	for (uint32_t i = 0; i < 2; i++) {
		recs[i].space = space;
		bpf_map_update_elem(bpf_map__fd(skel->maps.probe_recs), &i, &recs[i], 0);
	}
	return skel;
}

static double measure(const struct braid_bpf *skel, int state)
{
	struct probe_links *links = probe_links__new();
	struct err err = {};
	double ns;

	for (int i = 0; state != NOTHING && i < 2; i++) {
		const struct bpf_program *program =
			state == EMPTY
				? skel->progs.nothing
				: bpf_object__find_program_by_name(skel->obj, programs[at_eval][i]);

		points[i].cookie = i;
		points[i].file = bench.file;
		if (probe_links__attach(links, program, bench.pid, &points[i], 1, &err))
			fail("attach", &err);
	}
	ns = call_bench__span();
	probe_links__free(links);
	return ns;
}

/* Losses, and how many calls were counted: the figures mean nothing if the work was not done. */
static void print_work(const struct braid_bpf *skel)
{
	int n_cpus = libbpf_num_possible_cpus();
	uint64_t values[512], calls = 0;
	struct call_stat stat;

	for (uint32_t i = COUNT_PROBE_UNKNOWN; n_cpus <= 512 && i < COUNTERS_N; i++) {
		uint64_t sum = 0;

		bpf_map_lookup_elem(bpf_map__fd(skel->maps.counters), &i, values);
		for (int cpu = 0; cpu < n_cpus; cpu++)
			sum += values[cpu];
		if (sum)
			printf("counter %u: %llu\n", i, (unsigned long long)sum);
	}
	for (uint32_t i = 1; with_calls && i < 4096; i++) {
		bpf_map_lookup_elem(bpf_map__fd(skel->maps.call_stats), &i, &stat);
		calls += stat.calls;
	}
	if (with_calls)
		printf("%llu calls counted of %d\n", (unsigned long long)calls,
		       (bench.n_spans + 1) * bench.n_rounds * (bench.n_calls + 1));
}

int main(int argc, char **argv)
{
	struct braid_bpf *skel;
	int opt;

	bench.tool = "shadow_bench";
	bench.nothing = "without";
	bench.shadow = "with the shadow stack";
	while ((opt = getopt(argc, argv, "cen:p:r:")) > 0)
		if (opt == 'c')
			with_calls = true;
		else if (opt == 'e')
			at_eval = true;
		else
			call_bench__option(opt, optarg);
	python = argv[optind];
	if (!python)
		fail("which python?", NULL);
	call_bench__start((char *[]) { (char *)python, "-c", (char *)workload, NULL },
			  argv[optind + 1]);
	call_bench__open_file("/libpython");
	if (at_eval || !find_usdt()) {
		at_eval = true;
		find_eval();
	}
	skel = load();
	call_bench__measure(skel, measure);
	print_work(skel);
	call_bench__conclude(skel, measure);
	return 0;
}
