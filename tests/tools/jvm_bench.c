// SPDX-License-Identifier: GPL-2.0-or-later
/* jvm_bench [-s] [-n CALLS] [-p SPANS] [-r ROUNDS] JAVA...: what a call of a method costs in
 * HotSpot with -XX:+DTraceMethodProbes alone, with empty programs on the probes, and with those
 * that keep the shadow stack and count (-s: without counting). Rounds are interleaved; of each the
 * best of SPANS times CALLS calls counts. JAVA: the program, its options and
 * fixtures/java/calls/Workload as it is compiled:
 *     jvm_bench java -XX:+DTraceMethodProbes -cp DIRECTORY Workload */
#include "bpf/probe_rec.h"
#include "runtimes/jvm_probing.h"
#include "tests/tools/call_bench.h"

#define WARM_UPS 3

static struct jvm_probing *probing;

static double measure(const struct braid_bpf *skel, int state)
{
	struct runtime_target of = {
		.pid = bench.pid, .space = 1, .bias = bench.bias, .file = bench.file
	};
	struct probe_links *links = NULL;
	struct runtime_probing by;
	struct err err = {};
	double ns;

	if (state == EMPTY)
		links = call_bench__attach_empty(skel, "method__entry", "method__return");
	if (state == SHADOW && jvm_probing__attach(probing, &of, RUNTIME_SOURCE_CALLS, &by, &err))
		fail("attach", &err);
	ns = call_bench__span();
	probe_links__free(links);
	jvm_probing__detach(probing, bench.pid);
	return ns;
}

int main(int argc, char **argv)
{
	static const char *const programs[] = { "jvm_method_entry", "jvm_method_return", NULL };
	bool stacks_only = false;
	struct braid_bpf *skel;
	struct err err = {};
	int opt;

	bench.tool = "jvm_bench";
	bench.prefix = "bench ";
	bench.nothing = "with the flag alone";
	bench.shadow = "counted";
	while ((opt = getopt(argc, argv, "+sn:p:r:")) > 0)
		if (opt == 's')
			stacks_only = true;
		else
			call_bench__option(opt, optarg);
	if (!argv[optind])
		fail("which java?", NULL);
	call_bench__start(argv + optind, NULL);
	call_bench__open_file("/libjvm.so");
	skel = call_bench__load(programs, PROBE_SITES_MAX, !stacks_only);
	if (jvm_probing__new(skel->obj, &probing, &err))
		fail("probes", &err);
	for (int i = 0; i < WARM_UPS; i++)
		ns_per_call();
	call_bench__measure(skel, measure);
	call_bench__conclude(skel, measure);
	jvm_probing__free(probing);
	return 0;
}
