// SPDX-License-Identifier: GPL-2.0-or-later
/* jvm_bench [-s] [-n CALLS] [-p SPANS] [-r ROUNDS] JAVA...: what a call of a method costs in
 * HotSpot with -XX:+DTraceMethodProbes alone, with empty programs on the probes, and with those
 * that keep the shadow stack and count (-s: without counting). Rounds are interleaved; of each the
 * best of SPANS times CALLS calls counts. JAVA: the program, its options and
 * fixtures/java/calls/Workload as it is compiled:
 *     jvm_bench java -XX:+DTraceMethodProbes -cp DIRECTORY Workload */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/braid.skel.h"
#include "bpf/probe_rec.h"
#include "bpf/shadow.h"
#include "core/util.h"
#include "probes/attach.h"
#include "probes/usdt.h"
#include "runtimes/jvm_probing.h"
#include "tests/tools/program_time.h"

#define ROUNDS_MAX 100
#define WARM_UPS   3

static bool stacks_only;
static int n_calls = 500, n_spans = 200, n_rounds = 5;

static struct {
	pid_t pid;
	FILE *in, *out;
	struct elf_file *file;
	uint64_t bias;
} target;

enum { NOTHING, EMPTY, SHADOW, STATES };

static void fail(const char *what, const struct err *err)
{
	fprintf(stderr, "jvm_bench: %s%s%s\n", what, err ? ": " : "", err ? err->text : "");
	exit(1);
}

static void start_target(char **java)
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
		execvp(java[0], java);
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

	fprintf(target.in, "bench %d\n", n_calls);
	fflush(target.in);
	if (!fgets(line, sizeof(line), target.out))
		fail("the program ended", NULL);
	return atof(line) / n_calls;
}

static void open_file(void)
{
	char path[64], line[512];
	struct err err = {};
	unsigned long start, end;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", target.pid);
	maps = fopen(path, "r");
	while (maps && !target.bias && fgets(line, sizeof(line), maps))
		if (strstr(line, "/libjvm.so") && sscanf(line, "%lx-%lx", &start, &end) == 2) {
			snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", target.pid,
				 start, end);
			target.bias = start;
		}
	if (maps)
		fclose(maps);
	if (elf_file__open(open(path, O_RDONLY | O_CLOEXEC), path, &target.file, &err))
		fail("libjvm.so", &err);
}

static struct braid_bpf *load(void)
{
	struct braid_bpf *skel = braid_bpf__open();
	struct bpf_program *program;

	if (!skel)
		fail("cannot open the BPF object", NULL);
	bpf_object__for_each_program (program, skel->obj)
		bpf_program__set_autoload(program, false);
	bpf_program__set_autoload(skel->progs.nothing, true);
	bpf_program__set_autoload(skel->progs.jvm_method_entry, true);
	bpf_program__set_autoload(skel->progs.jvm_method_return, true);
	bpf_map__set_max_entries(skel->maps.probe_recs, PROBE_SITES_MAX);
	skel->rodata->cfg_shadows = 64;
	bpf_map__set_max_entries(skel->maps.shadows, 64);
	skel->rodata->cfg_calls = !stacks_only;
	skel->rodata->cfg_nodes = 4096;
	bpf_map__set_max_entries(skel->maps.call_nodes, 4096);
	bpf_map__set_max_entries(skel->maps.call_stats, 4096);
	if (braid_bpf__load(skel))
		fail("cannot load the BPF object", NULL);
	return skel;
}

/* Both sites with a program that does nothing. */
static struct probe_links *attach_empty(const struct braid_bpf *skel)
{
	struct probe_links *links = probe_links__new();
	struct usdt_sites sites = {};
	struct err err = {};

	if (usdt__read(target.file, &sites, &err))
		fail("sites", &err);
	for (size_t i = 0; i < sites.n; i++) {
		const struct usdt_site *site = &sites.list[i];
		struct probe_point point = { .file = target.file, .pc_vaddr = site->pc_vaddr };

		if (strcmp(site->name, "method__entry") && strcmp(site->name, "method__return"))
			continue;
		if (probe_links__attach(links, skel->progs.nothing, target.pid, &point, 1, &err))
			fail("attach", &err);
	}
	usdt_sites__done(&sites);
	return links;
}

static double measure(const struct braid_bpf *skel, struct jvm_probing *probing, int state)
{
	struct runtime_target of = {
		.pid = target.pid, .space = 1, .bias = target.bias, .file = target.file
	};
	struct probe_links *links = state == EMPTY ? attach_empty(skel) : NULL;
	struct runtime_probing by;
	struct err err = {};
	double ns;

	if (state == SHADOW && jvm_probing__attach(probing, &of, RUNTIME_SOURCE_CALLS, &by, &err))
		fail("attach", &err);
	ns = ns_per_call();
	program_times__look();
	for (int i = 0; i < n_spans; i++) {
		ns = min_of(ns, ns_per_call());
		program_times__look();
	}
	probe_links__free(links);
	jvm_probing__detach(probing, target.pid);
	return ns;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print_figures(const char *what, double ns[STATES][ROUNDS_MAX], int at)
{
	printf("%s ns a call: %.0f with the flag alone, %.0f with empty programs, %.0f counted: "
	       "ratio %.3f\n",
	       what, ns[NOTHING][at], ns[EMPTY][at], ns[SHADOW][at],
	       ns[SHADOW][at] / ns[EMPTY][at]);
}

int main(int argc, char **argv)
{
	static double ns[STATES][ROUNDS_MAX];
	struct jvm_probing *probing;
	struct braid_bpf *skel;
	struct err err = {};
	int opt;

	while ((opt = getopt(argc, argv, "+sn:p:r:")) > 0) {
		if (opt == 's')
			stacks_only = true;
		else if (opt == 'n')
			n_calls = max_of(atoi(optarg), 1);
		else if (opt == 'p')
			n_spans = max_of(atoi(optarg), 1);
		else if (opt == 'r')
			n_rounds = max_of(min_of(atoi(optarg), ROUNDS_MAX), 1);
		else
			exit(2);
	}
	if (!argv[optind])
		fail("which java?", NULL);
	start_target(argv + optind);
	open_file();
	skel = load();
	if (jvm_probing__new(skel->obj, &probing, &err))
		fail("probes", &err);
	for (int i = 0; i < WARM_UPS; i++)
		ns_per_call();
	for (int i = 0; i < n_rounds; i++)
		for (int state = 0; state < STATES; state++)
			ns[state][i] = measure(skel, probing, state);
	for (int state = 0; state < STATES; state++)
		qsort(ns[state], n_rounds, sizeof(*ns[state]), compare);
	program_times__open(skel->obj);
	for (int state = EMPTY; state < STATES; state++)
		measure(skel, probing, state);
	program_times__print();
	print_figures("median", ns, n_rounds / 2);
	print_figures("best  ", ns, 0); /* the one to trust on a busy machine */
	jvm_probing__free(probing);
	braid_bpf__destroy(skel);
	elf_file__free(target.file);
	kill(target.pid, SIGKILL);
	waitpid(target.pid, NULL, 0);
	return 0;
}
