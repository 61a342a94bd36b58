// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/kernel_half_state.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bpf/host/host.h"
#include "bpf/host/programs.h"
#include "bpf/waiting.h"
#include "core/base/privilege.h"
#include "core/base/util.h"
#include "core/kernel/kernel_subset.h"
#include "core/kernel/libbpf_warning.h"
#include "core/kernel/maps.h"
#include "core/kernel/uprobe_multi.h"
#include <stdlib.h>

#define ONLINE_BYTES 4096

/* Programs that are attached while there may be shadow stacks: each end of a thread must be
 * seen. */
static const char *const followers[KERNEL_HALF_FOLLOWERS + 1] = { "shadow_on_fork",
								  "shadow_on_exec",
								  "shadow_on_exit", NULL };

/* Opens the object of the probes. Runtimes find their programs in it before it is loaded. */
static int open_probes(struct kernel_half *half)
{
	const struct kernel_subset_map none = {};
	const char *const nothing[] = { "nothing", NULL };
	int ret = kernel_subset__beside(half->skel->obj, nothing, &none, &half->probes);

	for (int i = 0; !ret && half->opts.runtimes[i]; i++) {
		const struct runtime_probes *probes = half->opts.runtimes[i]->probes;

		if (probes && half->opts.enabled & 1U << i)
			ret = kernel_subset__select(half->probes, probes->programs, true);
	}
	return ret ? ret : kernel_subset__select(half->probes, followers, true);
}

/* Returns true if uprobes are attached by uprobe_multi: the kernel must support it. Functions of
 * the kernel need links of perf events, and all programs of the type must then use these. */
static bool takes_multi(const struct kernel_half_opts *opts)
{
	return opts->events.of_type[CHAIN_UPROBE] && !opts->events.functions &&
	       uprobe_multi__works();
}

/* Opens, sizes and loads the object. @sees_ends: includes the program that sees the end of
 * published mappings. A kernel without its tracepoint refuses the program. */
static int load_skeleton(struct kernel_half *half, bool sees_ends)
{
	int ret;

	libbpf_warning__begin();
	half->skel = kernel_subset__open_whole();
	if (!half->skel)
		return -errno;
	ret = kernel_half__configure(half);
	bpf_program__set_autoload(half->skel->progs.on_address, sees_ends);
	return ret ? ret : braid_bpf__load(half->skel);
}

/* Returns the number of CPUs with slots, up to the highest one that is online. Samples on a CPU
 * that comes online later are counted as lost (COUNT_SCRATCH). */
static int n_slots_cpus(int possible)
{
	char text[ONLINE_BYTES] = "", *at = text;
	FILE *file = fopen("/sys/devices/system/cpu/online", "re");
	size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	long last = -1;

	if (file)
		fclose(file);
	if (!n || n == sizeof(text) - 1)
		return possible;
	while (*at >= '0' && *at <= '9') {
		last = strtol(at, &at, 10);
		at += *at == '-' || *at == ',';
	}
	return last < 0 || last >= possible ? possible : last + 1;
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
	half->n_slots_cpus = n_slots_cpus(half->n_cpus);
	libbpf_warning__keep();
	rc = load_skeleton(half, true);
	if (rc == -ESRCH || rc == -ENOENT || rc == -EINVAL) {
		chains__done(&half->chains);
		braid_bpf__destroy(half->skel);
		half->n_late = 0;
		rc = load_skeleton(half, false);
	}
	if (!rc)
		rc = chains__load(&half->chains);
	if (!rc && opts->shadows)
		rc = open_probes(half);
	if (rc)
		kernel_subset__explain(rc, err);
	if (rc)
		kernel_half__free(half);
	else
		*ret = half;
	return rc;
}

/* Returns the descriptor of a map that was created late, or -ENOENT. */
static int created_fd(const struct kernel_half *half, const char *name)
{
	for (size_t i = 0; i < half->n_created; i++)
		if (!strcmp(half->created[i].name, name))
			return half->created[i].fd;
	return -ENOENT;
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

/* Creates the maps of a runtime unless they exist. Returns 0 or a negative errno. */
static int create_maps(struct kernel_half *half, int i)
{
	for (size_t k = 0; k < half->n_late; k++) {
		const struct late_map *late = &half->late[k];
		LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = bpf_map__map_flags(late->like));
		struct kernel_subset_map *created = &half->created[half->n_created];
		const char *name = bpf_map__name(late->like);

		if (late->runtime != i || created_fd(half, name) >= 0)
			continue;
		created->fd = bpf_map_create(bpf_map__type(late->like), name,
					     bpf_map__key_size(late->like),
					     bpf_map__value_size(late->like), late->entries, &opts);
		if (created->fd < 0)
			return created->fd;
		created->name = name;
		half->n_created++;
	}
	return 0;
}

/* Creates the maps that the probes of runtimes share with their walkers. */
static int create_probes_maps(struct kernel_half *half)
{
	int ret = 0;

	for (int i = 0; !ret && half->opts.runtimes[i]; i++)
		if (half->opts.runtimes[i]->probes && half->opts.enabled & 1U << i)
			ret = create_maps(half, i);
	return ret ? ret : kernel_subset__replace_maps(half->probes, half->created);
}

static int load_probes(struct kernel_half *half)
{
	const struct chain_stage walker = { "walk_shadow", WALKER_SHADOW };
	int ret;

	libbpf_warning__begin();
	ret = create_probes_maps(half);
	if (!ret)
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
		return kernel_subset__explain(-ENOTSUP, err);
	if (!half->probes_tried)
		half->probes_code = load_probes(half);
	half->probes_tried = true;
	return half->probes_code ? kernel_subset__explain(half->probes_code, err) : 0;
}

static int load_runtime(struct kernel_half *half, int i, struct err *err)
{
	const struct runtime_walker *walker = half->opts.runtimes[i]->walker;
	struct chain_stage stages[] = { {}, { "unwind_stack", STAGE_UNWIND } };
	int ret;

	if (!walker || half->loaded & 1U << i)
		return 0;
	stages[0] = (struct chain_stage) { walker->program, walker->slot };
	libbpf_warning__begin();
	ret = create_maps(half, i);
	if (!ret)
		ret = chains__add(&half->chains, stages, walker->tableless ? 2 : 1,
				  walker->tableless ? 1U << walker->slot : 0);
	if (ret)
		return kernel_subset__explain(ret, err);
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
	if (bpf_program__autoload(half->skel->progs.on_address)) /* optional */
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
	while (half->n_created)
		close(half->created[--half->n_created].fd);
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

void kernel_half__end_allocs(struct kernel_half *half)
{
	__atomic_store_n(&half->skel->bss->allocs_over, 1, __ATOMIC_RELEASE);
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
	bool seen = half->skel->bss->off_cpu_without_rseq == 1;

	if (seen)
		half->skel->bss->off_cpu_without_rseq = 2;
	return seen;
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
	const struct kernel_subset_map none = {};

	return kernel_subset__beside(half->skel->obj, programs, &none, ret);
}

struct bpf_object *kernel_half__object(struct kernel_half *half)
{
	return half->probes ? half->probes : half->skel->obj;
}

int kernel_half__map_fd(const struct kernel_half *half, const char *name)
{
	int fd = created_fd(half, name);

	if (half->on_host)
		return maps__of_host(name);
	return fd >= 0 ? fd : bpf_object__find_map_fd_by_name(half->skel->obj, name);
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
