// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/doctor.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/maps_line.h"
#include "core/base/privilege.h"
#include "core/base/util.h"
#include "core/elf/kallsyms.h"
#include "core/events/events.h"
#include "core/kernel/cpu_clock.h"
#include "core/kernel/kernel_half.h"
#include "core/kernel/trap.h"
#include "core/unwind/unwind_table.h"

static int check_machine(char *detail, size_t size)
{
	struct utsname uts;

	uname(&uts);
	snprintf(detail, size, "Linux %s on %s", uts.release, uts.machine);
	return strcmp(uts.machine, "x86_64") ? -ENOTSUP : 0;
}

#define TO_RECORD (1U << PRIVILEGE_LOAD | 1U << PRIVILEGE_EVENTS)

static int check_privilege(char *detail, size_t size)
{
	uint32_t missing = privilege__missing(TO_RECORD);
	char names[100];
	size_t length;

	privilege__own(detail, size);
	if (!missing)
		return 0;
	privilege__names(missing, names, sizeof(names));
	length = strlen(detail);
	snprintf(detail + length, size - length, ": it lacks %s, without which %s", names,
		 privilege__need(PRIVILEGE_LOAD)->without);
	return -EPERM;
}

/* Returns 0 if the process has the capability. */
static int check_capability(enum privilege privilege, char *detail, size_t size)
{
	bool missing = privilege__missing(1U << privilege);
	char name[100];

	privilege__names(1U << privilege, name, sizeof(name));
	if (missing)
		snprintf(detail, size, "user %u lacks %s, without which %s", geteuid(), name,
			 privilege__need(privilege)->without);
	else
		snprintf(detail, size, "%s, for %s", name, privilege__need(privilege)->purpose);
	return missing ? -EPERM : 0;
}

/* Starts a process until it is killed. It is not dumpable, so that its /proc files are as protected
 * as those of another user. */
static pid_t start_hidden(void)
{
	int ready[2];
	pid_t child;
	char c;

	if (pipe2(ready, O_CLOEXEC))
		return -1;
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_DUMPABLE, 0);
		close(ready[0]);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (child > 0 && read(ready[0], &c, 1) != 0) { /* the end of file is expected */
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		child = -1;
	}
	close(ready[0]);
	return child;
}

/* Since about Linux 6.15, CAP_PERFMON suffices for mappings. */
static bool reads_mappings_of_others(void)
{
	pid_t child = start_hidden();
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/maps", child);
	fd = child < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static int check_processes(char *detail, size_t size)
{
	int ret = check_capability(PRIVILEGE_PROCESSES, detail, size);

	if (ret && !reads_mappings_of_others())
		snprintf(detail, size,
			 "user %u lacks CAP_SYS_PTRACE, without which code of other users' "
			 "processes has no names on this kernel, and stacks end there",
			 geteuid());
	return ret;
}

static int check_unreadable(char *detail, size_t size)
{
	return check_capability(PRIVILEGE_READ, detail, size);
}

static int check_statistics(char *detail, size_t size)
{
	int fd = bpf_enable_stats(BPF_STATS_RUN_TIME), code = fd < 0 ? -errno : 0;

	close_fd(&fd);
	if (code != -EPERM || !check_capability(PRIVILEGE_STATISTICS, detail, size))
		snprintf(detail, size, "%s", code ? strerror(-code) : "available");
	return code;
}

static int check_probes(char *detail, size_t size)
{
	struct trap_costs costs;
	struct err err = {};
	int ret = trap__measure(1U << TRAP_NOP, &costs, &err);

	if (ret != -EPERM || !check_capability(PRIVILEGE_PROBES, detail, size))
		snprintf(detail, size, "%s", ret ? err.text : "attached for a moment");
	return ret;
}

/* Reads "none [integrity] confidentiality", if the kernel supports lockdown. */
static int check_lockdown(char *detail, size_t size)
{
	FILE *file = fopen("/sys/kernel/security/lockdown", "re");
	char line[100] = "[none]";
	bool forbidden;

	if (file && !fgets(line, sizeof(line), file))
		line[0] = '\0';
	if (file)
		fclose(file);
	forbidden = strstr(line, "[confidentiality]");
	snprintf(detail, size, "%s",
		 forbidden ? "confidentiality: BPF programs may not read the kernel's memory"
		 : strstr(line, "[integrity]") ? "integrity, which does not limit braid"
					       : "none");
	return forbidden ? -EPERM : 0;
}

static int check_btf(char *detail, size_t size)
{
	struct btf *btf = btf__load_vmlinux_btf();

	if (!btf || libbpf_get_error(btf)) {
		snprintf(detail, size, "/sys/kernel/btf/vmlinux is absent or unreadable");
		return -ENOENT;
	}
	snprintf(detail, size, "%u types", btf__type_cnt(btf));
	btf__free(btf);
	return 0;
}

static void denied(int code, uint32_t privileges, const char *what, char *detail, size_t size)
{
	struct err err = {};

	if (code == -EPERM || code == -EACCES)
		privilege__explain(privileges, what, &err);
	else
		err__set(&err, code, "%s", strerror(-code));
	snprintf(detail, size, "%s", err.text);
}

static int check_perf_event(char *detail, size_t size)
{
	int fd = cpu_clock__open(0, 10000000), code = 0;

	if (fd < 0) {
		code = fd;
		denied(code, 1U << PRIVILEGE_EVENTS, "to sample all CPUs", detail, size);
	} else {
		snprintf(detail, size, "cpu-clock on every CPU");
		close(fd);
	}
	return code;
}

static int check_ring_buffer(char *detail, size_t size)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "doctor", 0, 0, 4096, NULL), code = 0;

	if (fd < 0) {
		code = -errno;
		denied(code, 1U << PRIVILEGE_LOAD, "to create BPF maps", detail, size);
	} else {
		snprintf(detail, size, "available");
		close(fd);
	}
	return code;
}

/* Checks that the kernel permits probing: libbpf treats a refusal as the absence of a helper. */
static int may_ask(void)
{
	static const struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "doctor", "GPL", nothing,
			       ARRAY_SIZE(nothing), NULL);
	int ret = fd < 0 ? -errno : 0;

	close_fd(&fd);
	return ret;
}

static int check_helper(enum bpf_func_id id, const char *name, char *detail, size_t size)
{
	int ret = may_ask();

	if (ret) {
		denied(ret, TO_RECORD, "to load BPF programs", detail, size);
		return ret;
	}
	ret = libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, id, NULL);
	snprintf(detail, size, "%s %s", name, ret == 1 ? "available" : "missing");
	return ret == 1 ? 0 : ret < 0 ? ret : -ENOTSUP;
}

static int check_loop(char *detail, size_t size)
{
	return check_helper(BPF_FUNC_loop, "bpf_loop", detail, size);
}

static int check_user_regs(char *detail, size_t size)
{
	return check_helper(BPF_FUNC_task_pt_regs, "bpf_task_pt_regs", detail, size);
}

static int check_load(char *detail, size_t size)
{
	static const struct runtime *const none[] = { NULL };
	struct kernel_half_opts opts = { .runtimes = none };
	struct event_list cpu = {};
	struct kernel_half *half = NULL;
	struct events *events = NULL;
	struct err err = {};
	int ret = event_list__parse(event_cpu.name, &cpu, &err);

	event_list__configure(&cpu, &(struct event_rates) { .frequency_hz = 99 }, &opts);
	if (!ret)
		ret = kernel_half__load(&opts, &half, &err);
	if (!ret)
		ret = kernel_half__attach(half, &err);
	if (!ret) {
		events = events__new(&cpu, half, 99, 0);
		ret = events ? events__attach(events, false, NULL, &err)
			     : err__set(&err, -ENOMEM, "out of memory");
	}
	events__free(events);
	snprintf(detail, size, "%s", ret ? err.text : "loaded, verified and attached for a moment");
	kernel_half__free(half);
	return ret;
}

static int check_kallsyms(char *detail, size_t size)
{
	struct kallsyms *kallsyms = NULL;
	struct err err = {};
	int ret = kallsyms__load("/proc/kallsyms", &kallsyms, &err);

	if (ret != -EPERM)
		snprintf(detail, size, "%s", ret ? err.text : "readable");
	else if (!check_capability(PRIVILEGE_SYMBOLS, detail, size))
		privilege__why_hidden(detail, size);
	kallsyms__free(kallsyms);
	return ret;
}

static int check_map_files(char *detail, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct maps_line first = {};
	char name[64], *line = NULL;
	int ret = 0, fd = -1;
	size_t capacity = 0;

	if (!maps || getline(&line, &capacity, maps) <= 0 || !maps_line__parse(line, &first))
		ret = -EIO;
	free(line);
	if (maps)
		fclose(maps);
	snprintf(name, sizeof(name), "/proc/self/map_files/%" PRIx64 "-%" PRIx64, first.start,
		 first.end);
	if (!ret)
		fd = open(name, O_RDONLY | O_CLOEXEC);
	if (!ret && fd < 0)
		ret = -errno;
	close_fd(&fd);
	if (ret != -EPERM || !check_capability(PRIVILEGE_FILES, detail, size))
		snprintf(detail, size, "%s", ret ? strerror(-ret) : "can be opened");
	return ret;
}

static int check_cache(char *detail, size_t size)
{
	char *dir = unwind_table__default_dir();
	int ret = dir && !access(dir, W_OK) ? 0 : -EACCES;

	snprintf(detail, size, "%s", dir ? dir : "no directory");
	free(dir);
	return ret;
}

#define WITH_CAPABILITY "run as root (sudo), or add this capability (docs/reference/privileges.md)"

const struct doctor_check doctor_checks[] = {
	{ "machine", check_machine, "braid runs on x86-64 Linux", true },
	{ "privilege", check_privilege,
	  "run as root (sudo), or give the program the capabilities that recording takes at least: "
	  "setcap cap_bpf,cap_perfmon+ep PATH/TO/braid",
	  true },
	{ "lockdown", check_lockdown,
	  "boot without lockdown=confidentiality; lockdown=integrity does not limit "
	  "braid",
	  true },
	{ "kernel BTF", check_btf,
	  "a kernel built with CONFIG_DEBUG_INFO_BTF=y (Debian 12, Ubuntu 22.04 and later have it)",
	  true },
	{ "perf events", check_perf_event,
	  "run as root, or with CAP_PERFMON and, on Debian's kernels, sysctl "
	  "kernel.perf_event_paranoid=2; in a container, allow perf_event_open in its seccomp "
	  "profile",
	  true },
	{ "ring buffer", check_ring_buffer, "Linux 5.8 or later, and CAP_BPF", true },
	{ "BPF loops", check_loop, "Linux 5.17 or later, and the privilege above", true },
	{ "user registers", check_user_regs, "Linux 5.15 or later, and the privilege above", true },
	{ "BPF programs", check_load,
	  "follow the remedies above; if there are none, report this text", true },
	{ "probes", check_probes, WITH_CAPABILITY, false },
	{ "BPF statistics", check_statistics, WITH_CAPABILITY, false },
	{ "other users", check_processes, WITH_CAPABILITY, false },
	{ "unreadable files", check_unreadable, WITH_CAPABILITY, false },
	{ "deleted files", check_map_files, WITH_CAPABILITY, false },
	{ "kernel symbols", check_kallsyms,
	  WITH_CAPABILITY ", and sysctl kernel.kptr_restrict=1 or 0", false },
	{ "table cache", check_cache,
	  "set XDG_CACHE_HOME to a directory that you can write; until then unwind tables are "
	  "built "
	  "at every start",
	  false },
};
const size_t doctor_checks_n = ARRAY_SIZE(doctor_checks);
