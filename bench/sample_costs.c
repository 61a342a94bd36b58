// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/sample_costs.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/observer.h"
#include "core/base/util.h"

/* The sampler's time for a tick in a task that is not profiled, in ns. The cost of an empty program
 * in `braid bench` confirms its magnitude. */
#define OTHER_TICK_NS 60

/* Runs a chain of @depth calls with unwind tables and frame pointers, and @thousands * 1000
 * additions at its end. */
void bench_spin(uint64_t depth, uint64_t thousands);
asm(".pushsection .text\n.balign 16\n.globl bench_spin\n.type bench_spin,@function\n"
    "bench_spin:\n.cfi_startproc\n"
    "push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbp,-16\n"
    "mov %rsp,%rbp\n.cfi_def_cfa_register %rbp\n"
    "sub $16,%rsp\n"
    "sub $1,%rdi\njbe 1f\n"
    "call bench_spin\n"
    "jmp 2f\n"
    "1: imul $1000,%rsi,%rsi\n"
    "3: sub $1,%rsi\nja 3b\n"
    "2: leave\n.cfi_def_cfa %rsp,8\nret\n.cfi_endproc\n.size bench_spin,.-bench_spin\n"
    ".popsection");

static int measure(const struct sample_cost_opts *opts, uint32_t pid, struct sample_cost *ret_cost,
		   struct err *err)
{
	struct observer_opts observer = { .runtimes = opts->runtimes,
					  .enabled = opts->enabled,
					  .pid = pid,
					  .unwind = opts->unwind,
					  .frequency_hz = opts->frequency_hz,
					  .source = RUNTIME_SOURCE_WALK,
					  .duration_s = opts->duration_s };
	int statistics = bpf_enable_stats(BPF_STATS_RUN_TIME), ret;
	struct observation seen = {};
	struct observer *observing;
	uint64_t others;

	if (statistics < 0)
		return err__set(err, -errno,
				"cannot switch on the kernel's statistics of BPF programs: %s",
				strerror(errno));
	ret = observer__start(&observer, &observing, err);
	if (!ret)
		ret = observer__wait(observing, -1, &seen, err);
	close(statistics);
	if (ret)
		return ret;
	if (!seen.samples || !seen.sampler_runs)
		return err__set(err, -ENODATA, "PID %u used no CPU time", pid);
	others = seen.sampler_runs - min_of(seen.samples, seen.sampler_runs);
	ret_cost->samples = seen.samples;
	ret_cost->kernel_ns =
		max_of(((double)seen.sampler_ns - OTHER_TICK_NS * others) / seen.samples, 0);
	ret_cost->user_ns = seen.run_cpu_s * NSEC_PER_SEC / seen.samples;
	return 0;
}

int sample_cost__of_native(const struct sample_cost_opts *opts, struct sample_cost *ret_cost,
			   struct err *err)
{
	pid_t parent = getpid(), pid = fork();
	int ret;

	if (pid < 0)
		return err__set(err, -errno, "cannot fork: %s", strerror(errno));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent)
			bench_spin(opts->depth, UINT32_MAX);
		_exit(1);
	}
	ret = measure(opts, pid, ret_cost, err);
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return ret;
}

int sample_cost__of_interpreter(const struct sample_cost_opts *opts, const struct interpreter *of,
				struct sample_cost *ret_cost, struct err *err)
{
	struct workload *workload;
	int ret = workload__start(of, NULL, &workload, err);

	if (ret)
		return ret;
	ret = workload__deepen(workload, opts->depth, err);
	if (!ret)
		ret = measure(opts, workload__pid(workload), ret_cost, err);
	workload__stop(workload);
	return ret;
}
