/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_TOOLS_CALL_BENCH_H
#define BRAID_TESTS_TOOLS_CALL_BENCH_H

/* What the tools have in common that measure what a call costs in an interpreter, in turns: as it
 * is, with empty programs on its pair of probes, and with those that keep the shadow stack. The
 * interpreter runs a program that says READY, and answers each line, a number of calls, with the
 * nanoseconds of CPU time that they took. */

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/braid.skel.h"
#include "core/elf_file.h"
#include "core/util.h"
#include "probes/attach.h"
#include "probes/usdt.h"
#include "tests/tools/program_time.h"

#define ROUNDS_MAX 100

enum { NOTHING, EMPTY, SHADOW, STATES };

static struct call_bench {
	const char *tool;
	const char *prefix;		/* of the line with the number of calls */
	const char *nothing, *shadow;	/* what these states are called */
	int n_calls, n_spans, n_rounds; /* of each round the best of so many spans counts */
	double ns[STATES][ROUNDS_MAX];
	pid_t pid;
	FILE *in, *out;
	struct elf_file *file; /* with the interpreter */
	uint64_t bias;	       /* where it is mapped; 0: not looked for */
} bench = { .prefix = "", .n_calls = 500, .n_spans = 200, .n_rounds = 5 };

static void fail(const char *what, const struct err *err)
{
	fprintf(stderr, "%s: %s%s%s\n", bench.tool, what, err ? ": " : "", err ? err->text : "");
	exit(1);
}

/* -n CALLS, -p SPANS, -r ROUNDS; other options are wrong ones. */
static inline void call_bench__option(int opt, const char *arg)
{
	if (opt == 'n')
		bench.n_calls = max_of(atoi(arg), 1);
	else if (opt == 'p')
		bench.n_spans = max_of(atoi(arg), 1);
	else if (opt == 'r')
		bench.n_rounds = max_of(min_of(atoi(arg), ROUNDS_MAX), 1);
	else
		exit(2);
}

/* `root`: where the program is looked up; NULL: here. */
static inline void call_bench__start(char *const *arguments, const char *root)
{
	int to[2], from[2];
	char line[32];

	if (pipe(to) || pipe(from))
		fail("pipe", NULL);
	bench.pid = fork();
	if (!bench.pid) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		close(to[1]);
		close(from[0]);
		if (root && (chroot(root) || chdir("/")))
			_exit(1);
		execvp(arguments[0], arguments);
		_exit(1);
	}
	close(to[0]);
	close(from[1]);
	bench.in = fdopen(to[1], "w");
	bench.out = fdopen(from[0], "r");
	if (!fgets(line, sizeof(line), bench.out))
		fail("the program does not start", NULL);
}

static inline double ns_per_call(void)
{
	char line[32] = "";

	fprintf(bench.in, "%s%d\n", bench.prefix, bench.n_calls);
	fflush(bench.in);
	if (!fgets(line, sizeof(line), bench.out))
		fail("the program ended", NULL);
	return atof(line) / bench.n_calls;
}

/* The file with the interpreter: a library ("/libjvm.so", or the beginning of its name), or the
 * program. */
static inline void call_bench__open_file(const char *library)
{
	char path[64], line[512];
	unsigned long start, end;
	struct err err = {};
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", bench.pid);
	maps = fopen(path, "r");
	snprintf(path, sizeof(path), "/proc/%d/exe", bench.pid);
	while (maps && !bench.bias && fgets(line, sizeof(line), maps))
		if (strstr(line, library) && sscanf(line, "%lx-%lx", &start, &end) == 2) {
			snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", bench.pid, start,
				 end);
			bench.bias = start;
		}
	if (maps)
		fclose(maps);
	if (elf_file__open(open(path, O_RDONLY | O_CLOEXEC), path, &bench.file, &err))
		fail("the interpreter's file", &err);
}

/* These programs (NULL-terminated) and an empty one, with room for `n_sites`. */
static inline struct braid_bpf *call_bench__load(const char *const *names, uint32_t n_sites,
						 bool calls)
{
	struct braid_bpf *skel = braid_bpf__open();
	struct bpf_program *program;

	if (!skel)
		fail("cannot open the BPF object", NULL);
	bpf_object__for_each_program (program, skel->obj)
		bpf_program__set_autoload(program, false);
	bpf_program__set_autoload(skel->progs.nothing, true);
	for (; *names; names++)
		bpf_program__set_autoload(bpf_object__find_program_by_name(skel->obj, *names),
					  true);
	bpf_map__set_max_entries(skel->maps.probe_recs, n_sites);
	bpf_map__set_max_entries(skel->maps.probe_hits, n_sites);
	skel->rodata->cfg_shadows = 64;
	bpf_map__set_max_entries(skel->maps.shadows, 64);
	skel->rodata->cfg_calls = calls;
	skel->rodata->cfg_nodes = 4096;
	bpf_map__set_max_entries(skel->maps.call_nodes, 4096);
	bpf_map__set_max_entries(skel->maps.call_stats, 4096);
	if (braid_bpf__load(skel))
		fail("cannot load the BPF object", NULL);
	return skel;
}

/* Sites of either name with a program that does nothing. */
static inline struct probe_links *call_bench__attach_empty(const struct braid_bpf *skel,
							   const char *entry, const char *ret)
{
	struct probe_links *links = probe_links__new();
	struct usdt_sites sites = {};
	struct err err = {};

	if (usdt__read(bench.file, &sites, &err))
		fail("sites", &err);
	for (size_t i = 0; i < sites.n; i++) {
		const struct usdt_site *site = &sites.list[i];
		struct probe_point point = { .file = bench.file,
					     .pc_vaddr = site->pc_vaddr,
					     .semaphore_vaddr = site->semaphore_vaddr };

		if (strcmp(site->name, entry) && strcmp(site->name, ret))
			continue;
		if (probe_links__attach(links, skel->progs.nothing, bench.pid, &point, 1, &err))
			fail("attach", &err);
	}
	usdt_sites__done(&sites);
	return links;
}

/* The best span, ns a call. */
static inline double call_bench__span(void)
{
	double ns = ns_per_call();

	program_times__look();
	for (int i = 0; i < bench.n_spans; i++) {
		ns = min_of(ns, ns_per_call());
		program_times__look();
	}
	return ns;
}

/* Attaches what belongs to the state, takes call_bench__span, detaches. */
typedef double (*call_bench_fn)(const struct braid_bpf *skel, int state);

static inline void call_bench__measure(const struct braid_bpf *skel, call_bench_fn measure)
{
	for (int i = 0; i < bench.n_rounds; i++)
		for (int state = 0; state < STATES; state++)
			bench.ns[state][i] = measure(skel, state);
}

static inline int call_bench__compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static inline void call_bench__print(const char *what, int at)
{
	printf("%s ns a call: %.0f %s, %.0f with empty programs, %.0f %s: ratio %.3f\n", what,
	       bench.ns[NOTHING][at], bench.nothing, bench.ns[EMPTY][at], bench.ns[SHADOW][at],
	       bench.shadow, bench.ns[SHADOW][at] / bench.ns[EMPTY][at]);
}

/* The figures of the rounds, and what the programs take; then the end of all. */
static inline void call_bench__conclude(struct braid_bpf *skel, call_bench_fn measure)
{
	for (int state = 0; state < STATES; state++)
		qsort(bench.ns[state], bench.n_rounds, sizeof(*bench.ns[state]),
		      call_bench__compare);
	program_times__open(skel->obj);
	for (int state = EMPTY; state < STATES; state++)
		measure(skel, state);
	program_times__print();
	call_bench__print("median", bench.n_rounds / 2);
	call_bench__print("best  ", 0); /* the one to trust on a busy machine */
	braid_bpf__destroy(skel);
	elf_file__free(bench.file);
	kill(bench.pid, SIGKILL);
	waitpid(bench.pid, NULL, 0);
}

#endif
