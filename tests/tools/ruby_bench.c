// SPDX-License-Identifier: GPL-2.0-or-later
/* ruby_bench [-c] [-s] [-n CALLS] [-p SPANS] [-r ROUNDS] RUBY...: what a call of a method costs in
 * CRuby with the hook that its probes fire with, with empty programs on the probes, and with those
 * that keep the shadow stack and count (-s: without counting; -c: of a method in C). Rounds are
 * interleaved; of each the best of SPANS times CALLS calls counts. RUBY: the program and its
 * options, with RUBYOPT=-rbraid_hook and RUBYLIB=build/share/braid in the environment. */
#include "bpf/probe_rec.h"
#include "runtimes/ruby_probing.h"
#include "tests/tools/call_bench.h"

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

static bool of_c;
static struct ruby_probing *probing;

static void start_target(char **ruby)
{
	char *arguments[16], script[2048];
	int n = 0;

	snprintf(script, sizeof(script), "ARGV_METHOD = :%s\n%s", of_c ? "c" : "ruby", workload);
	while (ruby[n] && n < 12) {
		arguments[n] = ruby[n];
		n++;
	}
	arguments[n++] = (char *)"-e";
	arguments[n++] = script;
	arguments[n] = NULL;
	call_bench__start(arguments, NULL);
}

static double measure(const struct braid_bpf *skel, int state)
{
	struct runtime_target of = { .pid = bench.pid, .space = 1, .file = bench.file };
	struct probe_links *links = NULL;
	struct runtime_probing by;
	struct err err = {};
	double ns;

	if (state == EMPTY)
		links = call_bench__attach_empty(skel, of_c ? "cmethod__entry" : "method__entry",
						 of_c ? "cmethod__return" : "method__return");
	if (state == SHADOW && ruby_probing__attach(probing, &of, RUNTIME_SOURCE_CALLS, &by, &err))
		fail("attach", &err);
	ns = call_bench__span();
	probe_links__free(links);
	ruby_probing__detach(probing, bench.pid);
	return ns;
}

int main(int argc, char **argv)
{
	static const char *const programs[] = { "ruby_method_entry", "ruby_method_return",
						"ruby_cmethod_entry", "ruby_cmethod_return", NULL };
	bool stacks_only = false;
	struct braid_bpf *skel;
	struct err err = {};
	int opt;

	bench.tool = "ruby_bench";
	bench.nothing = "with the hook alone";
	bench.shadow = "counted";
	while ((opt = getopt(argc, argv, "+csn:p:r:")) > 0)
		if (opt == 'c')
			of_c = true;
		else if (opt == 's')
			stacks_only = true;
		else
			call_bench__option(opt, optarg);
	if (!argv[optind])
		fail("which ruby?", NULL);
	start_target(argv + optind);
	call_bench__open_file("/libruby");
	skel = call_bench__load(programs, PROBE_SITES_MAX, !stacks_only);
	if (ruby_probing__new(skel->obj, &probing, &err))
		fail("probes", &err);
	call_bench__measure(skel, measure);
	call_bench__conclude(skel, measure);
	ruby_probing__free(probing);
	return 0;
}
