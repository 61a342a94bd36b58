// SPDX-License-Identifier: GPL-2.0-or-later
/* shadow_bench [-c] [-e] [-n CALLS] [-p SPANS] [-r ROUNDS] PYTHON [ROOT]: what a call costs in
 * CPython 3.6 to 3.10 with nothing attached, with empty programs on the pair of probes, and with
 * those that keep the shadow stack (-c: and count calls). Rounds are interleaved; of each the best
 * of SPANS times CALLS calls counts. Takes the USDT pair where there is one (-e: the pair at the
 * interpreter loop). PYTHON is looked up under ROOT. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "bpf/braid.skel.h"
#include "bpf/shadow.h"
#include "core/cfi.h"
#include "core/util.h"
#include "probes/attach.h"
#include "probes/usdt.h"
#include "probes/usdt_args.h"
#include "runtimes/python_versions.h"
#include "tests/tools/program_time.h"

#define ROUNDS_MAX 100

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

static struct options {
	bool calls, eval;
	int n_calls, n_rounds, n_spans;
	const char *python, *root;
} options = { .n_calls = 500, .n_rounds = 5, .n_spans = 200 };

static struct target {
	pid_t pid;
	FILE *in, *out;
	struct elf_file *file;
} target;

enum { ENTRY, RETURN };
enum { NOTHING, EMPTY, SHADOW, STATES };

static struct probe_point points[2];
static struct probe_rec recs[2];

static void fail(const char *what, const struct err *err)
{
	fprintf(stderr, "shadow_bench: %s%s%s\n", what, err ? ": " : "", err ? err->text : "");
	exit(1);
}

static void start_target(void)
{
	int to[2], from[2];
	char line[32];

	if (pipe(to) || pipe(from))
		fail("pipe", NULL);
	target.pid = fork();
	if (!target.pid) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		close(to[1]);
		close(from[0]);
		if (options.root && (chroot(options.root) || chdir("/")))
			_exit(1);
		execl(options.python, options.python, "-c", workload, NULL);
		_exit(1);
	}
	close(to[0]);
	close(from[1]);
	target.in = fdopen(to[1], "w");
	target.out = fdopen(from[0], "r");
	if (!fgets(line, sizeof(line), target.out))
		fail("the program does not start", NULL);
}

static double ns_per_call(void)
{
	char line[32] = "";

	fprintf(target.in, "%d\n", options.n_calls);
	fflush(target.in);
	if (!fgets(line, sizeof(line), target.out))
		fail("the program ended", NULL);
	return atof(line) / options.n_calls;
}

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
	n = usdt_args__parse(site->arguments, target.file, site->pc_vaddr, args, &err);
	if (n < 3 || cfi__read(target.file, on_row, &search, &err))
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

	if (usdt__read(target.file, &sites, &err))
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
	const char *found = strstr(options.python, "python3."), *next;

	while (found && (next = strstr(found + 1, "python3.")))
		found = next;
	return found ? atoi(found + strlen("python3.")) : 0;
}

static void find_eval(void)
{
	bool is_new = minor_version() >= 9; /* the thread's state comes first */

	if (elf_file__find_symbol(target.file, "_PyEval_EvalFrameDefault", &points[0].pc_vaddr,
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

static const char *const programs[][2] = {
	{ "python_usdt_entry", "python_usdt_return" },
	{ "python_eval_entry", "python_eval_return" },
};

static const struct bpf_program *find(const struct braid_bpf *skel, const char *name)
{
	return bpf_object__find_program_by_name(skel->obj, name);
}

static struct braid_bpf *load(void)
{
	struct braid_bpf *skel = braid_bpf__open();
	struct python_proc_rec proc = {};
	struct bpf_program *program;
	uint32_t space = 1;

	if (!skel)
		fail("cannot open the BPF object", NULL);
	bpf_object__for_each_program (program, skel->obj)
		bpf_program__set_autoload(program, false);
	bpf_program__set_autoload(skel->progs.nothing, true);
	for (int i = 0; i < 2; i++)
		bpf_program__set_autoload((void *)find(skel, programs[options.eval][i]), true);
	bpf_map__set_max_entries(skel->maps.probe_recs, 2);
	skel->rodata->cfg_shadows = 64;
	bpf_map__set_max_entries(skel->maps.shadows, 64);
	skel->rodata->cfg_calls = options.calls;
	skel->rodata->cfg_nodes = 4096;
	bpf_map__set_max_entries(skel->maps.call_nodes, 4096);
	bpf_map__set_max_entries(skel->maps.call_stats, 4096);
	if (braid_bpf__load(skel))
		fail("cannot load the BPF object", NULL);
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
		const struct bpf_program *program = state == EMPTY
							    ? skel->progs.nothing
							    : find(skel, programs[options.eval][i]);

		points[i].cookie = i;
		points[i].file = target.file;
		if (probe_links__attach(links, program, target.pid, &points[i], 1, &err))
			fail("attach", &err);
	}
	ns = ns_per_call();
	program_times__look();
	for (int i = 0; i < options.n_spans; i++) {
		ns = min_of(ns, ns_per_call());
		program_times__look();
	}
	probe_links__free(links);
	return ns;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print_figures(const char *what, double ns[STATES][ROUNDS_MAX], int at)
{
	printf("%s ns a call: %.0f without, %.0f with empty programs, %.0f with the shadow stack: "
	       "ratio %.3f\n",
	       what, ns[NOTHING][at], ns[EMPTY][at], ns[SHADOW][at],
	       ns[SHADOW][at] / ns[EMPTY][at]);
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
	for (uint32_t i = 1; options.calls && i < 4096; i++) {
		bpf_map_lookup_elem(bpf_map__fd(skel->maps.call_stats), &i, &stat);
		calls += stat.calls;
	}
	if (options.calls)
		printf("%llu calls counted of %d\n", (unsigned long long)calls,
		       (options.n_spans + 1) * options.n_rounds * (options.n_calls + 1));
}

static void parse(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "cen:p:r:")) > 0) {
		if (opt == 'c')
			options.calls = true;
		else if (opt == 'e')
			options.eval = true;
		else if (opt == 'n')
			options.n_calls = max_of(atoi(optarg), 1);
		else if (opt == 'r')
			options.n_rounds = max_of(min_of(atoi(optarg), ROUNDS_MAX), 1);
		else if (opt == 'p')
			options.n_spans = max_of(atoi(optarg), 1);
		else
			exit(2);
	}
	options.python = argv[optind];
	options.root = options.python ? argv[optind + 1] : NULL;
	if (!options.python)
		fail("which python?", NULL);
}

/* The file with the interpreter: a library of that name, or the program. */
static void open_file(void)
{
	char path[64], line[512];
	struct err err = {};
	unsigned long start, end;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", target.pid);
	maps = fopen(path, "r");
	snprintf(path, sizeof(path), "/proc/%d/exe", target.pid);
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "/libpython") && sscanf(line, "%lx-%lx", &start, &end) == 2)
			snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", target.pid,
				 start, end);
	if (maps)
		fclose(maps);
	if (elf_file__open(open(path, O_RDONLY | O_CLOEXEC), path, &target.file, &err))
		fail("program", &err);
}

int main(int argc, char **argv)
{
	static double ns[STATES][ROUNDS_MAX];
	struct braid_bpf *skel;

	parse(argc, argv);
	start_target();
	open_file();
	if (options.eval || !find_usdt()) {
		options.eval = true;
		find_eval();
	}
	skel = load();
	for (int i = 0; i < options.n_rounds; i++)
		for (int state = 0; state < STATES; state++)
			ns[state][i] = measure(skel, state);
	print_work(skel);
	for (int state = 0; state < STATES; state++)
		qsort(ns[state], options.n_rounds, sizeof(*ns[state]), compare);
	program_times__open(skel->obj);
	for (int state = EMPTY; state < STATES; state++)
		measure(skel, state);
	program_times__print();
	print_figures("median", ns, options.n_rounds / 2);
	print_figures("best  ", ns, 0); /* the one to trust on a busy machine */
	braid_bpf__destroy(skel);
	elf_file__free(target.file);
	kill(target.pid, SIGKILL);
	waitpid(target.pid, NULL, 0);
	return 0;
}
