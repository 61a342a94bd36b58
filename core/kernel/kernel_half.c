// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/kernel_half_state.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "bpf/host/host.h"
#include "bpf/host/programs.h"
#include "bpf/waiting.h"
#include "core/base/privilege.h"
#include "core/base/util.h"
#include "core/kernel/kernel_part.h"
#include "core/kernel/libbpf_warning.h"
#include "core/kernel/maps.h"
#include "core/kernel/uprobe_multi.h"
#include <stdlib.h>

/* Attached as long as there may be shadow stacks: threads must not end unseen. */
static const char *const followers[KERNEL_HALF_FOLLOWERS + 1] = { "shadow_on_fork",
								  "shadow_on_exec",
								  "shadow_on_exit", NULL };

/* Not loaded yet: runtimes find their programs in it. */
static int open_probes(struct kernel_half *half)
{
	const struct kernel_part_map none = {};
	const char *const nothing[] = { "nothing", NULL };
	int ret = kernel_part__beside(half->skel->obj, nothing, &none, &half->probes);

	for (int i = 0; !ret && half->opts.runtimes[i]; i++) {
		const char *const *programs = half->opts.runtimes[i]->probe_programs;

		if (programs && half->opts.enabled & 1U << i)
			ret = kernel_part__select(half->probes, programs, true);
	}
	return ret ? ret : kernel_part__select(half->probes, followers, true);
}

/* Places in programs are probed by uprobe_multi where the kernel has it. Functions of the kernel
 * have perf's links, and then all of the type have. */
static bool takes_multi(const struct kernel_half_opts *opts)
{
	return opts->events.of_type[CHAIN_UPROBE] && !opts->events.functions &&
	       uprobe_multi__works();
}

/* Opens, sizes and loads the object. @sees_ends: with the program that sees published mappings end,
 * which a kernel without that tracepoint refuses. */
static int load_skeleton(struct kernel_half *half, bool sees_ends)
{
	int ret;

	libbpf_warning__begin();
	half->skel = kernel_part__open_whole();
	if (!half->skel)
		return -errno;
	ret = kernel_half__configure(half);
	bpf_program__set_autoload(half->skel->progs.on_address, sees_ends);
	return ret ? ret : braid_bpf__load(half->skel);
}

int kernel_half__load(const struct kernel_half_opts *opts, struct kernel_half **ret,
		      struct err *err)
{
	struct kernel_half *half = calloc(1, sizeof(*half));
	int rc;

	if (!half)
		return err__set(err, -ENOMEM, "out of memory");
	half->opts = *opts;
	half->opts.events.multi = takes_multi(opts);
	half->n_cpus = libbpf_num_possible_cpus();
	libbpf_warning__keep();
	rc = load_skeleton(half, true);
	if (rc == -ESRCH || rc == -ENOENT || rc == -EINVAL) {
		chains__done(&half->chains);
		braid_bpf__destroy(half->skel);
		rc = load_skeleton(half, false);
	}
	if (!rc)
		rc = chains__load(&half->chains);
	if (!rc && opts->shadows)
		rc = open_probes(half);
	if (rc)
		kernel_part__explain(rc, err);
	if (rc)
		kernel_half__free(half);
	else
		*ret = half;
	return rc;
}

int kernel_half__on_host(struct kernel_half **ret)
{
	struct kernel_half *half = calloc(1, sizeof(*half));

	if (!half)
		return -ENOMEM;
	half->on_host = true;
	host_programs__open();
	*ret = half;
	return 0;
}

static int load_probes(struct kernel_half *half)
{
	const struct chain_stage walker = { "walk_shadow", WALKER_SHADOW };
	int ret;

	libbpf_warning__begin();
	ret = bpf_object__load(half->probes);
	if (!ret)
		ret = chains__add(&half->chains, &walker, 1, 0);
	for (size_t i = 0; !ret && followers[i]; i++) {
		half->follower_links[i] = bpf_program__attach(
			bpf_object__find_program_by_name(half->probes, followers[i]));
		ret = half->follower_links[i] ? 0 : -errno;
	}
	return ret;
}

int kernel_half__load_probes(struct kernel_half *half, struct err *err)
{
	if (!half->probes)
		return kernel_part__explain(-ENOTSUP, err);
	if (!half->probes_tried)
		half->probes_code = load_probes(half);
	half->probes_tried = true;
	return half->probes_code ? kernel_part__explain(half->probes_code, err) : 0;
}

static int load_runtime(struct kernel_half *half, int i, struct err *err)
{
	const struct runtime *runtime = half->opts.runtimes[i];
	const struct chain_stage stages[] = { { runtime->program, runtime->walker },
					      { "unwind_stack", STAGE_UNWIND } };
	int ret;

	if (!runtime->program || half->loaded & 1U << i)
		return 0;
	libbpf_warning__begin();
	ret = chains__add(&half->chains, stages, runtime->tableless ? 2 : 1,
			  runtime->tableless ? 1U << runtime->walker : 0);
	if (ret)
		return kernel_part__explain(ret, err);
	half->loaded |= 1U << i;
	return 0;
}

int kernel_half__load_runtime(struct kernel_half *half, int i, struct err *err)
{
	return half->on_host ? 0 : load_runtime(half, i, err);
}

const struct bpf_program *kernel_half__trigger(const struct kernel_half *half, enum chain_type type,
					       uint32_t event)
{
	return chains__trigger(&half->chains, type, event);
}

const struct bpf_program *kernel_half__begin(const struct kernel_half *half, uint32_t event)
{
	return chains__begin(&half->chains, event);
}

const struct bpf_program *kernel_half__program(const struct kernel_half *half,
					       const struct chain_program *program)
{
	return chains__program(&half->chains, program);
}

int kernel_half__attach(struct kernel_half *half, struct err *err)
{
	libbpf_warning__begin();
	half->skel->links.on_fork = bpf_program__attach(half->skel->progs.on_fork);
	half->skel->links.on_exec = bpf_program__attach(half->skel->progs.on_exec);
	half->skel->links.on_end = bpf_program__attach(half->skel->progs.on_end);
	if (half->opts.scope & SCOPE_NAME)
		half->skel->links.on_rename = bpf_program__attach(half->skel->progs.on_rename);
	if (bpf_program__autoload(half->skel->progs.on_address)) /* user space can do without */
		half->skel->links.on_address = bpf_program__attach(half->skel->progs.on_address);
	if (!half->skel->links.on_fork || !half->skel->links.on_exec || !half->skel->links.on_end ||
	    (half->opts.scope & SCOPE_NAME && !half->skel->links.on_rename))
		return err__set(err, -errno, "cannot attach to process events: %s (%s)",
				strerror(errno), libbpf_warning__first());
	return 0;
}

void kernel_half__detach(struct kernel_half *half)
{
	if (!half)
		return;
	for (size_t i = 0; followers[i]; i++) {
		bpf_link__destroy(half->follower_links[i]);
		half->follower_links[i] = NULL;
	}
	if (half->skel)
		braid_bpf__detach(half->skel);
}

void kernel_half__free(struct kernel_half *half)
{
	if (!half)
		return;
	kernel_half__detach(half);
	if (half->on_host)
		host__done();
	bpf_object__close(half->probes);
	chains__done(&half->chains);
	braid_bpf__destroy(half->skel);
	free(half);
}

void kernel_half__sample_from(struct kernel_half *half, uint64_t time_ns)
{
	__atomic_store_n(&half->skel->bss->sample_from_ns, time_ns, __ATOMIC_RELEASE);
}

void kernel_half__set_cgroup(struct kernel_half *half, uint64_t id)
{
	__atomic_store_n(&half->skel->bss->scope_cgroup, id, __ATOMIC_RELAXED);
	__atomic_fetch_add(&half->skel->bss->scope_changes, 1, __ATOMIC_RELEASE);
}

void kernel_half__sample_until(struct kernel_half *half, uint64_t time_ns)
{
	__u64 *until_ns = &half->skel->bss->sample_until_ns;
	__u64 before = __atomic_load_n(until_ns, __ATOMIC_RELAXED);

	while ((!before || time_ns < before) &&
	       !__atomic_compare_exchange_n(until_ns, &before, time_ns, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

void kernel_half__take_calls(struct kernel_half *half, bool taken)
{
	__atomic_store_n(&half->skel->bss->calls_taken, taken, __ATOMIC_RELEASE);
}

volatile struct alloc_window *kernel_half__alloc_window(struct kernel_half *half)
{
	return (volatile struct alloc_window *)&half->skel->bss->alloc_window;
}

uint64_t kernel_half__sampled_until(const struct kernel_half *half, uint64_t now_ns)
{
	uint64_t until_ns = __atomic_load_n(&half->skel->bss->sample_until_ns, __ATOMIC_ACQUIRE);

	return until_ns && until_ns < now_ns ? until_ns : now_ns;
}

void kernel_half__end_probes(struct kernel_half *half)
{
	__atomic_store_n(&half->skel->bss->probes_over, 1, __ATOMIC_RELEASE);
}

int kernel_half__sampler_fd(const struct kernel_half *half)
{
	const struct bpf_program *program = NULL;

	for (int type = 0; !program && type < CHAIN_TYPES_N; type++)
		program = chains__trigger(&half->chains, type, 1);
	return program ? bpf_program__fd(program) : -ENOENT;
}

bool kernel_half__waits_without_rseq(const struct kernel_half *half)
{
	bool met = half->skel->bss->off_cpu_without_rseq == 1;

	if (met)
		half->skel->bss->off_cpu_without_rseq = 2;
	return met;
}

uint32_t kernel_half__take_codes(const struct kernel_half *half, uint32_t n)
{
	return __atomic_fetch_add(&half->skel->bss->last_code, n, __ATOMIC_RELAXED);
}

void kernel_half__return_codes(const struct kernel_half *half, uint32_t first, uint32_t n,
			       uint32_t used)
{
	uint32_t last = first + n;

	__atomic_compare_exchange_n(&half->skel->bss->last_code, &last, first + used, false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

int kernel_half__beside(const struct kernel_half *half, const char *const *programs,
			struct bpf_object **ret)
{
	const struct kernel_part_map none = {};

	return kernel_part__beside(half->skel->obj, programs, &none, ret);
}

struct bpf_object *kernel_half__object(struct kernel_half *half)
{
	return half->probes ? half->probes : half->skel->obj;
}

int kernel_half__map_fd(const struct kernel_half *half, const char *name)
{
	return half->on_host ? maps__of_host(name)
			     : bpf_object__find_map_fd_by_name(half->skel->obj, name);
}

void kernel_half__set_plain(struct kernel_half *half, uint32_t image, bool plain)
{
	if (!half->on_host && image < IMAGE_FILES_MAX)
		half->skel->bss->plain_images[image] = plain;
}

void kernel_half__counters(const struct kernel_half *half, uint64_t ret_counters[COUNTERS_N])
{
	int fd = bpf_map__fd(half->skel->maps.counters), cpu;
	uint64_t *values = calloc(half->n_cpus, sizeof(*values));
	uint32_t key;

	for (key = 0; key < COUNTERS_N; key++) {
		ret_counters[key] = 0;
		if (!values || bpf_map_lookup_elem(fd, &key, values))
			continue;
		for (cpu = 0; cpu < half->n_cpus; cpu++)
			ret_counters[key] += values[cpu];
	}
	free(values);
}

uint32_t kernel_half__call_nodes(const struct kernel_half *half)
{
	return min_of(half->skel->bss->call_nodes_used, CALL_NODES - 1);
}
