// SPDX-License-Identifier: GPL-2.0-or-later
/* Kernel memory of all maps, by the number of CPUs. It depends on the CPUs online, and runtimes
 * without a process only cost their records. The maps are sized as for a session, and are not
 * created. */
#include <string.h>

#include "core/base/util.h"
#include "core/kernel/kernel_half_state.h"
#include "core/kernel/kernel_subset.h"
#include "runtimes/registry.h"
#include "tests/tap.h"

#define MB	 (1024 * 1024)
#define POSSIBLE 128

struct session {
	const char *name;
	bool probes, all_events;
};

static uint64_t bytes_of(const struct session *session, int online, uint32_t seen)
{
	struct kernel_half half = { .n_cpus = POSSIBLE, .n_slots_cpus = online };
	uint64_t ret = 0;

	half.opts.runtimes = runtimes;
	half.opts.enabled = UINT32_MAX;
	half.opts.shadows = session->probes ? 64 : 0;
	half.opts.ring_bytes = session->all_events ? 0 : 8 * MB; /* as core/record requests */
	half.opts.events.of_type[CHAIN_TICK] = 1U << 1;
	half.opts.numbers[EVENT_OFF_CPU] = session->all_events ? 2 : 0;
	half.opts.numbers[EVENT_ALLOC] = session->all_events ? 3 : 0;
	if (session->all_events) {
		half.opts.events.of_type[CHAIN_TRACEPOINT] = 1U << 2;
		half.opts.events.of_type[CHAIN_UPROBE] = 1U << 3;
	}
	half.skel = kernel_subset__open_whole();
	if (ok(half.skel && !kernel_half__configure(&half), "%s, %d CPUs online: maps are sized",
	       session->name, online))
		ret = kernel_half__map_bytes(&half, seen);
	chains__done(&half.chains);
	braid_bpf__destroy(half.skel);
	return ret;
}

static uint32_t bit_of(const char *name)
{
	uint32_t i = 0;

	while (strcmp(runtimes[i]->name, name) != 0)
		i++;
	return 1U << i;
}

int main(void)
{
	static const struct session cpu = { "cpu", true, false };
	static const struct session all = { "cpu, off-cpu and alloc", true, true };
	uint64_t two = bytes_of(&cpu, 2, 0), eight = bytes_of(&cpu, 8, 0);
	uint64_t most = bytes_of(&cpu, POSSIBLE, 0), python = bytes_of(&cpu, 8, bit_of("python"));
	uint64_t some = bytes_of(&all, 8, UINT32_MAX), every = bytes_of(&all, POSSIBLE, UINT32_MAX);

	tap__diag("MB: cpu, 2 online %.1f, 8 %.1f, and Python %.1f, 128 %.1f; all, 8 "
		  "online and all runtimes %.1f, 128 %.1f",
		  two / 1048576.0, eight / 1048576.0, python / 1048576.0, most / 1048576.0,
		  some / 1048576.0, every / 1048576.0);
	ok(two && eight > two && eight <= 64 * MB, "cpu on 8 of 128 CPUs: at most 64 MB");
	ok(python > eight && python <= 64 * MB, "and with Python");
	ok(most > eight && most <= 64 * MB, "cpu on 128 CPUs: at most 64 MB");
	ok(some && some <= 256 * MB, "everything on 8 of 128 CPUs: at most 256 MB");
	return tap__done();
}
