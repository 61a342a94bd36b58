// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel_half.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "bpf/braid.skel.h"
#include "core/util.h"

#define RING_BYTES	  (16U << 20)
#define RING_WAKEUP_BYTES (2U << 20)
#define PID_NS_INIT_INO	  0xEFFFFFFCU /* PROC_PID_INIT_INO, include/linux/proc_ns.h */

struct kernel_half {
	struct braid_bpf *skel;
	struct kernel_half_opts opts;
	int n_cpus;
	struct bpf_link **links; /* one per CPU that is online */
};

/* libbpf's last complaint, for the sentence; its log goes nowhere else. */
static char last_warning[200];

static int keep_warning(enum libbpf_print_level level, const char *fmt, va_list args)
{
	if (level == LIBBPF_WARN)
		vsnprintf(last_warning, sizeof(last_warning), fmt, args);
	last_warning[strcspn(last_warning, "\n")] = '\0';
	return 0;
}

static int set_cpu_map(struct kernel_half *half, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(half->skel->obj, name);

	return map ? bpf_map__set_max_entries(map, half->n_cpus) : -ENOENT;
}

/* Loads the walkers of enabled runtimes, and creates the maps of no other. */
static int configure_runtime(struct kernel_half *half, const struct runtime *runtime, bool enabled)
{
	struct bpf_program *program;
	const char *const *name;
	struct bpf_map *map;

	if (runtime->program) {
		program = bpf_object__find_program_by_name(half->skel->obj, runtime->program);
		if (!program)
			return -ENOENT;
		bpf_program__set_autoload(program, enabled);
	}
	for (name = runtime->maps; name && *name; name++) {
		map = bpf_object__find_map_by_name(half->skel->obj, *name);
		if (!map)
			return -ENOENT;
		bpf_map__set_autocreate(map, enabled);
	}
	return enabled && runtime->cpu_map ? set_cpu_map(half, runtime->cpu_map) : 0;
}

static int configure_runtimes(struct kernel_half *half)
{
	int i, err = 0;

	for (i = 0; !err && half->opts.runtimes[i]; i++)
		err = configure_runtime(half, half->opts.runtimes[i], half->opts.enabled & 1U << i);
	return err;
}

static int configure(struct kernel_half *half)
{
	struct braid_bpf *skel = half->skel;
	struct stat st;
	int err;

	skel->rodata->cfg_unwind = half->opts.unwind;
	skel->rodata->cfg_ring_wakeup_bytes = RING_WAKEUP_BYTES;
	if (!stat("/proc/self/ns/pid", &st) && st.st_ino != PID_NS_INIT_INO)
		skel->rodata->cfg_pidns_ino = st.st_ino;
	err = bpf_map__set_max_entries(skel->maps.ring, RING_BYTES);
	if (!err)
		err = set_cpu_map(half, "scratches");
	if (!err)
		err = set_cpu_map(half, "copy_slots");
	return err ? err : configure_runtimes(half);
}

static int fill_walkers(struct kernel_half *half)
{
	int walkers_fd = bpf_map__fd(half->skel->maps.walkers);
	const struct runtime *runtime;
	struct bpf_program *program;
	uint32_t slot;
	int fd, i;

	for (i = 0; (runtime = half->opts.runtimes[i]); i++) {
		if (runtime->walker < 0 || !(half->opts.enabled & 1U << i))
			continue;
		program = bpf_object__find_program_by_name(half->skel->obj, runtime->program);
		if (!program)
			return -ENOENT;
		slot = runtime->walker;
		fd = bpf_program__fd(program);
		if (bpf_map_update_elem(walkers_fd, &slot, &fd, BPF_ANY))
			return -errno;
	}
	return 0;
}

static int explain(int code, struct err *err)
{
	if (code == -EPERM || (code == -EACCES && geteuid()))
		return err__set(err, -EPERM,
				"not permitted to load BPF programs: run as root (sudo), or with "
				"CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and "
				"CAP_CHECKPOINT_RESTORE (`braid doctor` tells more)");
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return err__set(err, -ENOTSUP,
				"this kernel has no BTF (/sys/kernel/btf/vmlinux): braid needs "
				"Linux 6.1 or later built with CONFIG_DEBUG_INFO_BTF=y");
	return err__set(err, code, "this kernel does not take the BPF programs: %s (%s)",
			strerror(-code), last_warning);
}

int kernel_half__load(const struct kernel_half_opts *opts, struct kernel_half **ret,
		      struct err *err)
{
	struct kernel_half *half = calloc(1, sizeof(*half));
	int code;

	if (!half)
		return err__set(err, -ENOMEM, "out of memory");
	half->opts = *opts;
	half->n_cpus = libbpf_num_possible_cpus();
	libbpf_set_print(keep_warning);
	half->skel = braid_bpf__open();
	if (!half->skel) {
		code = explain(-errno, err);
		goto out;
	}
	code = configure(half);
	if (!code)
		code = braid_bpf__load(half->skel);
	if (!code)
		code = fill_walkers(half);
	if (code)
		explain(code, err);
out:
	if (code)
		kernel_half__free(half);
	else
		*ret = half;
	return code;
}

static int open_cpu_clock(int cpu, uint32_t frequency_hz)
{
	/* A period, not a frequency: the kernel's limit of sample frequencies does not apply. */
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.size = sizeof(attr),
					.sample_period = NSEC_PER_SEC / frequency_hz,
					.exclude_idle = 1 };
	int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int attach_cpu(struct kernel_half *half, int cpu, struct err *err)
{
	int fd = open_cpu_clock(cpu, half->opts.frequency_hz);

	if (fd == -ENODEV || fd == -ENXIO)
		return 0; /* not online */
	if (fd < 0)
		return err__set(err, fd,
				"cannot open a cpu-clock event on CPU %d: %s (see "
				"kernel.perf_event_paranoid, or run as root)",
				cpu, strerror(-fd));
	half->links[cpu] = bpf_program__attach_perf_event(half->skel->progs.on_sample, fd);
	if (half->links[cpu])
		return 0; /* the link owns fd now */
	close(fd);
	return err__set(err, -errno, "cannot attach to the cpu-clock event of CPU %d: %s", cpu,
			strerror(errno));
}

int kernel_half__attach(struct kernel_half *half, struct err *err)
{
	int cpu, code = 0;

	half->skel->links.on_fork = bpf_program__attach(half->skel->progs.on_fork);
	half->skel->links.on_exec = bpf_program__attach(half->skel->progs.on_exec);
	if (!half->skel->links.on_fork || !half->skel->links.on_exec)
		return err__set(err, -errno, "cannot attach to process events: %s (%s)",
				strerror(errno), last_warning);
	half->links = calloc(half->n_cpus, sizeof(*half->links));
	if (!half->links)
		return err__set(err, -ENOMEM, "out of memory");
	for (cpu = 0; !code && cpu < half->n_cpus; cpu++)
		code = attach_cpu(half, cpu, err);
	return code;
}

void kernel_half__detach(struct kernel_half *half)
{
	int cpu;

	if (!half)
		return;
	for (cpu = 0; half->links && cpu < half->n_cpus; cpu++)
		bpf_link__destroy(half->links[cpu]);
	free(half->links);
	half->links = NULL;
	if (half->skel)
		braid_bpf__detach(half->skel);
}

void kernel_half__free(struct kernel_half *half)
{
	if (!half)
		return;
	kernel_half__detach(half);
	braid_bpf__destroy(half->skel);
	free(half);
}

struct bpf_object *kernel_half__object(struct kernel_half *half)
{
	return half->skel->obj;
}

int kernel_half__map_fd(const struct kernel_half *half, const char *name)
{
	return bpf_object__find_map_fd_by_name(half->skel->obj, name);
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

const char *counter__text(unsigned counter)
{
	static const char *const texts[] = {
#define X(id, text) [COUNT_##id] = text,
		COUNTERS(X)
#undef X
	};

	return counter < ARRAY_SIZE(texts) ? texts[counter] : "";
}
