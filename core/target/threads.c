// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/threads.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/target/target_view.h"

/* --- ids --- */

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Lists the entries of a directory that are numbers, ascending. */
static int list_numbers(const char *path, uint32_t **ret, size_t *ret_n)
{
	uint32_t *list = NULL;
	size_t n = 0, cap = 0;
	struct dirent *entry;
	DIR *dir = opendir(path);
	int code = 0;

	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!code && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		code = array__reserve(&list, &cap, n + 1, sizeof(*list));
		if (!code)
			list[n++] = strtoul(entry->d_name, NULL, 10);
	}
	closedir(dir);
	if (code) {
		free(list);
		return code;
	}
	if (n)
		qsort(list, n, sizeof(*list), compare);
	*ret = list;
	*ret_n = n;
	return 0;
}

int target_dir__threads(const struct target_view *view, uint32_t pid, uint32_t **ret, size_t *ret_n)
{
	char path[PROCFS_PATH_BYTES];

	(void)view;
	snprintf(path, sizeof(path), "%s/%u/task", procfs__root(), pid);
	return list_numbers(path, ret, ret_n);
}

int threads__list(uint32_t pid, uint32_t **ret, size_t *ret_n)
{
	const struct target_view *view = target_view__current();

	return view->threads(view, pid, ret, ret_n);
}

static bool holds(const uint32_t *list, size_t n, uint32_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == pid)
			return true;
	return false;
}

static uint32_t parent_of(uint32_t pid)
{
	struct procfs_info info;

	return procfs__info(pid, &info, NULL) ? 0 : info.parent_pid;
}

int processes__add_children(uint32_t **pids, size_t *n)
{
	uint32_t *all = NULL, *parents = NULL, *more;
	size_t n_all = 0, before;
	int code = list_numbers("/proc", &all, &n_all);

	if (code)
		return code == -ENOMEM ? code : 0; /* later reads fail and report the reason */
	parents = calloc(n_all + 1, sizeof(*parents));
	more = parents ? realloc(*pids, (*n + n_all) * sizeof(*more)) : NULL;
	if (more)
		*pids = more;
	else
		code = -ENOMEM;
	for (size_t i = 0; !code && i < n_all; i++)
		parents[i] = parent_of(all[i]);
	do {
		before = *n;
		for (size_t i = 0; !code && i < n_all; i++)
			if (holds(*pids, *n, parents[i]) && !holds(*pids, *n, all[i]))
				(*pids)[(*n)++] = all[i];
	} while (*n > before);
	free(parents);
	free(all);
	return code;
}

/* --- one thread --- */

static ssize_t read_file(uint32_t pid, uint32_t tid, const char *name, char *buf, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", pid, tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, buf, size - 1);
	close_fd(&fd);
	buf[max_of(n, 0)] = '\0';
	return n;
}

/* Parses "tid (name) state ...": the name may contain any character. The CPU is the 39th field. */
static bool read_stat(uint32_t pid, struct thread_now *ret)
{
	char text[1024], *open, *close;

	if (read_file(pid, ret->tid, "stat", text, sizeof(text)) <= 0)
		return false;
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close || close < open)
		return false;
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(close - open - 1), open + 1);
	return sscanf(close + 1,
		      " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		      "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %u",
		      &ret->state, &ret->cpu) == 2;
}

/* fs/proc/base.c, proc_pid_syscall: "running", "NUMBER ARG*6 SP PC", or "-1 SP PC". */
static void read_call(uint32_t pid, struct thread_now *ret)
{
	uint64_t *args = ret->args;
	char text[256];
	int call;

	if (read_file(pid, ret->tid, "syscall", text, sizeof(text)) <= 0)
		return;
	if (sscanf(text, "-1 0x%" SCNx64 " 0x%" SCNx64, &ret->sp, &ret->pc) == 2) {
		ret->off_cpu = true;
	} else if (sscanf(text,
			  "%d 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64
			  " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64,
			  &call, &args[0], &args[1], &args[2], &args[3], &args[4], &args[5],
			  &ret->sp, &ret->pc) == 9) {
		ret->off_cpu = true;
		ret->call = call;
	}
}

static void read_status(uint32_t pid, struct thread_now *ret)
{
	uint64_t voluntary = 0, involuntary = 0;
	const char *at;
	char text[4096];

	if (read_file(pid, ret->tid, "status", text, sizeof(text)) <= 0)
		return;
	at = strstr(text, "\nvoluntary_ctxt_switches:");
	if (at)
		sscanf(at, "\nvoluntary_ctxt_switches: %" SCNu64, &voluntary);
	at = strstr(text, "\nnonvoluntary_ctxt_switches:");
	if (at)
		sscanf(at, "\nnonvoluntary_ctxt_switches: %" SCNu64, &involuntary);
	ret->switches = voluntary + involuntary;
	at = strstr(text, "\nNSpid:");
	if (at)
		ret->inner_tid = procfs__inner_id(at + 1);
}

bool thread__read(uint32_t pid, uint32_t tid, struct thread_now *ret)
{
	*ret = (struct thread_now) { .tid = tid, .inner_tid = tid, .call = THREAD_NO_CALL };
	if (!read_stat(pid, ret))
		return false;
	read_status(pid, ret);
	read_call(pid, ret);
	return true;
}

bool thread__has_not_run(const struct thread_now *a, const struct thread_now *b)
{
	return a->off_cpu && b->off_cpu && a->switches == b->switches && a->call == b->call &&
	       a->sp == b->sp && a->pc == b->pc && a->state != 'R' && b->state != 'R';
}

void thread__kernel_stack(uint32_t pid, uint32_t tid, char ret[THREAD_KERNEL_BYTES])
{
	read_file(pid, tid, "stack", ret, THREAD_KERNEL_BYTES);
}

/* Reads the time at which the scheduler last began to account for the thread, by the clock of its
 * CPU's run queue (kernel/sched/debug.c, proc_sched_show_task). For a sleeping thread that is the
 * time at which it fell asleep. */
static bool read_exec_start(uint32_t pid, uint32_t tid, uint64_t *ret_ns)
{
	uint64_t ms, ns;
	char text[512];
	const char *at;

	if (read_file(pid, tid, "sched", text, sizeof(text)) <= 0)
		return false;
	at = strstr(text, "se.exec_start");
	at = at ? strchr(at, ':') : NULL;
	if (!at || sscanf(at, ": %" SCNu64 ".%6" SCNu64, &ms, &ns) != 2)
		return false;
	*ret_ns = ms * 1000000 + ns;
	return true;
}

/* Reads the clock of the run queue of @cpu. Programs cannot read that clock directly, and each CPU
 * has its own. So this thread moves to the CPU, and reads its own accounting just after it was
 * scheduled there. */
static bool read_cpu_clock(uint32_t cpu, uint64_t *ret_ns)
{
	cpu_set_t before, there;
	bool good = false;

	if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before))
		return false;
	CPU_ZERO(&there);
	CPU_SET(cpu, &there);
	if (sched_setaffinity(0, sizeof(there), &there))
		return false;
	sched_yield();
	good = read_exec_start(getpid(), gettid(), ret_ns);
	sched_setaffinity(0, sizeof(before), &before);
	return good;
}

uint64_t thread__waited_ns(uint32_t pid, const struct thread_now *thread)
{
	uint64_t since_ns, now;

	if (!read_exec_start(pid, thread->tid, &since_ns) || !read_cpu_clock(thread->cpu, &now))
		return 0;
	return now > since_ns ? now - since_ns : 0;
}
