// SPDX-License-Identifier: GPL-2.0-or-later
/* ruby_bench [-c] [-s] [-n CALLS] [-p SPANS] [-r ROUNDS] RUBY...: what a call of a method costs in
 * CRuby with the hook that its probes fire with, with empty programs on the probes, and with those
 * that keep the shadow stack and count (-s: without counting; -c: of a method in C). Rounds are
 * interleaved; of each the best of SPANS times CALLS calls counts. RUBY: the program and its
 * options, with RUBYOPT=-rbraid_hook and RUBYLIB=build/share/braid in the environment. */
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
#include "runtimes/ruby_probing.h"
#include "tests/tools/program_time.h"

#define ROUNDS_MAX 100

/* Each line on standard input is a number of calls; the answer is nanoseconds of CPU time. */
static const char workload[] =
	"$stdout.sync = true\n"
	"def callee; end\n"
	"def ruby(n) i = 0; while i < n; callee; i += 1; end; end\n"
	"def c(n) i = 0; list = []; while i < n; list.clear; i += 1; end; end\n"
	"puts 'READY'\n"
	"while line = gets\n"
	"  t = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)\n"
	"  send(ARGV_METHOD, line.to_i)\n"
	"  puts Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond) - t\n"
	"end\n";

static bool of_c, stacks_only;
static int n_calls = 500, n_spans = 200, n_rounds = 5;

static struct {
	pid_t pid;
	FILE *in, *out;
	struct elf_file *file;
} target;

enum { NOTHING, EMPTY, SHADOW, STATES };

static void fail(const char *what, const struct err *err)
{
	fprintf(stderr, "ruby_bench: %s%s%s\n", what, err ? ": " : "", err ? err->text : "");
	exit(1);
}

static void start_target(char **ruby)
{
	char *arguments[16], script[2048], line[32];
	int to[2], from[2], n = 0;

	snprintf(script, sizeof(script), "ARGV_METHOD = :%s\n%s", of_c ? "c" : "ruby", workload);
	while (ruby[n] && n < 12) {
		arguments[n] = ruby[n];
		n++;
	}
	arguments[n++] = (char *)"-e";
	arguments[n++] = script;
	arguments[n] = NULL;
	if (pipe(to) || pipe(from))
		fail("pipe", NULL);
	target.pid = fork();
	if (!target.pid) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		close(to[1]);
		close(from[0]);
		execvp(arguments[0], arguments);
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

	fprintf(target.in, "%d\n", n_calls);
	fflush(target.in);
	if (!fgets(line, sizeof(line), target.out))
		fail("the program ended", NULL);
	return atof(line) / n_calls;
}

/* The file with the interpreter: a libruby, or the program. */
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
		if (strstr(line, "/libruby") && sscanf(line, "%lx-%lx", &start, &end) == 2)
			snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", target.pid,
				 start, end);
	if (maps)
		fclose(maps);
	if (elf_file__open(open(path, O_RDONLY | O_CLOEXEC), path, &target.file, &err))
		fail("program", &err);
}

static struct braid_bpf *load(void)
{
	static const char *const programs[] = { "ruby_method_entry", "ruby_method_return",
						"ruby_cmethod_entry", "ruby_cmethod_return" };
	struct braid_bpf *skel = braid_bpf__open();
	struct bpf_program *program;

	if (!skel)
		fail("cannot open the BPF object", NULL);
	bpf_object__for_each_program (program, skel->obj)
		bpf_program__set_autoload(program, false);
	bpf_program__set_autoload(skel->progs.nothing, true);
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		bpf_program__set_autoload(bpf_object__find_program_by_name(skel->obj, programs[i]),
					  true);
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

/* All sites that the shadow stack is fed by, with a program that does nothing. */
static struct probe_links *attach_empty(const struct braid_bpf *skel)
{
	struct probe_links *links = probe_links__new();
	struct usdt_sites sites = {};
	struct err err = {};

	if (usdt__read(target.file, &sites, &err))
		fail("sites", &err);
	for (size_t i = 0; i < sites.n; i++) {
		const struct usdt_site *site = &sites.list[i];
		struct probe_point point = { .file = target.file,
					     .pc_vaddr = site->pc_vaddr,
					     .semaphore_vaddr = site->semaphore_vaddr };

		if (strcmp(site->name, of_c ? "cmethod__entry" : "method__entry") &&
		    strcmp(site->name, of_c ? "cmethod__return" : "method__return"))
			continue;
		if (probe_links__attach(links, skel->progs.nothing, target.pid, &point, 1, &err))
			fail("attach", &err);
	}
	usdt_sites__done(&sites);
	return links;
}

static double measure(const struct braid_bpf *skel, struct ruby_probing *probing, int state)
{
	struct runtime_target of = { .pid = target.pid, .space = 1, .file = target.file };
	struct probe_links *links = state == EMPTY ? attach_empty(skel) : NULL;
	struct runtime_probing by;
	struct err err = {};
	double ns;

	if (state == SHADOW && ruby_probing__attach(probing, &of, RUNTIME_SOURCE_CALLS, &by, &err))
		fail("attach", &err);
	ns = ns_per_call();
	program_times__look();
	for (int i = 0; i < n_spans; i++) {
		ns = min_of(ns, ns_per_call());
		program_times__look();
	}
	probe_links__free(links);
	ruby_probing__detach(probing, target.pid);
	return ns;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print_figures(const char *what, double ns[STATES][ROUNDS_MAX], int at)
{
	printf("%s ns a call: %.0f with the hook alone, %.0f with empty programs, %.0f counted: "
	       "ratio %.3f\n",
	       what, ns[NOTHING][at], ns[EMPTY][at], ns[SHADOW][at],
	       ns[SHADOW][at] / ns[EMPTY][at]);
}

int main(int argc, char **argv)
{
	static double ns[STATES][ROUNDS_MAX];
	struct ruby_probing *probing;
	struct braid_bpf *skel;
	struct err err = {};
	int opt;

	while ((opt = getopt(argc, argv, "+csn:p:r:")) > 0) {
		if (opt == 'c')
			of_c = true;
		else if (opt == 's')
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
		fail("which ruby?", NULL);
	start_target(argv + optind);
	open_file();
	skel = load();
	if (ruby_probing__new(skel->obj, &probing, &err))
		fail("probes", &err);
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
	ruby_probing__free(probing);
	braid_bpf__destroy(skel);
	elf_file__free(target.file);
	kill(target.pid, SIGKILL);
	waitpid(target.pid, NULL, 0);
	return 0;
}
