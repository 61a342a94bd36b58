// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/samples.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bench/observer.h"
#include "bench/workers.h"
#include "core/util.h"

/* The sampler's time for a tick in a task that is not looked at (docs/performance.md). */
#define OTHER_TICK_NS 60

int sample_cost__measure(const struct sample_cost_opts *opts, uint32_t pid, struct sample_cost *ret,
			 struct err *err)
{
	struct observer_opts observer = { .runtimes = opts->runtimes,
					  .enabled = opts->enabled,
					  .pid = pid,
					  .unwind = opts->unwind,
					  .frequency_hz = opts->frequency_hz,
					  .source = opts->source,
					  .duration_s = opts->duration_s };
	int statistics = bpf_enable_stats(BPF_STATS_RUN_TIME), code;
	struct observation seen = {};
	struct observer *observing;
	uint64_t others;

	if (statistics < 0)
		return err__set(err, -errno,
				"cannot switch on the kernel's statistics of BPF programs: %s",
				strerror(errno));
	code = observer__start(&observer, &observing, err);
	if (!code)
		code = observer__wait(observing, -1, &seen, err);
	close(statistics);
	if (code)
		return code;
	if (!seen.samples || !seen.sampler_runs)
		return err__set(err, -ENODATA, "PID %u used no CPU time", pid);
	others = seen.sampler_runs - min_of(seen.samples, seen.sampler_runs);
	ret->samples = seen.samples;
	ret->kernel_ns = ((double)seen.sampler_ns - OTHER_TICK_NS * others) / seen.samples;
	ret->user_ns = seen.run_cpu_s * 1e9 / seen.samples;
	return 0;
}

int sample_cost__of_depth(const struct sample_cost_opts *opts, unsigned depth,
			  struct sample_cost *ret, struct err *err)
{
	struct workers *workers;
	int code = workers__start(1, &workers, err);

	if (code)
		return code;
	code = workers__begin(workers, WORKER_DEEP, UINT32_MAX, depth, err); /* for ever */
	if (!code)
		code = sample_cost__measure(opts, workers__pid(workers), ret, err);
	workers__stop(workers);
	return code;
}

int sample_cost__of_calls(const struct sample_cost_opts *opts, const struct interpreter *of,
			  unsigned depth, struct sample_cost *ret, struct err *err)
{
	struct workload *workload;
	int code = workload__start(of, NULL, &workload, err);

	if (code)
		return code;
	code = workload__deepen(workload, depth, err);
	if (!code)
		code = sample_cost__measure(opts, workload__pid(workload), ret, err);
	workload__stop(workload);
	return code;
}
