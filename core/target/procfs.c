// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/procfs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#include "core/base/living_task.h"
#include "core/base/memory.h"
#include "core/base/privilege.h"
#include "core/base/stop.h"
#include "core/base/util.h"
#include "core/target/target_view.h"

#define READS_PER_LOOK	   64
#define KERNEL_THREAD_FLAG 0x00200000 /* PF_KTHREAD, include/linux/sched.h */

static int dir__status(const struct target_view *view, uint32_t id, struct procfs_info *ret,
		       struct err *err);
static ssize_t dir__words(const struct target_view *view, uint32_t pid, const char *name, char *buf,
			  size_t size);
static int dir__memory(const struct target_view *view, uint32_t pid, uint64_t address, void *to,
		       size_t size);
static void dir__root(const struct target_view *view, uint32_t pid, char *ret, size_t size);

static const struct target_view dir = { .status = dir__status,
					.mappings = target_dir__mappings,
					.threads = target_dir__threads,
					.words = dir__words,
					.memory = dir__memory,
					.root = dir__root };
static const struct procfs_source *source; /* replacement of `dir`; NULL: the live system */
static const struct target_view *current = &dir;

void procfs__use(const struct procfs_source *stand_in)
{
	source = stand_in;
}

void target_view__use(const struct target_view *view)
{
	current = view ? view : &dir;
}

const struct target_view *target_view__current(void)
{
	return current;
}

bool procfs__is_recorded(void)
{
	return source || current != &dir;
}

/* A view without such a directory has a root in which no file can exist. */
const char *procfs__root(void)
{
	return current != &dir ? "/dev/null" : source ? source->root : "/proc";
}

uint32_t procfs__living(uint32_t pid)
{
	return procfs__is_recorded() ? pid : living_task__of(pid);
}

static int open_file(uint32_t id, const char *name, int flags)
{
	char path[PROCFS_PATH_BYTES];
	int fd;

	snprintf(path, sizeof(path), "%s/%u/%s", procfs__root(), id, name);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Attempts of procfs__open(): the thread that represents the process may end, and another one be
 * found. */
#define LIVING_TRIES 8

int procfs__open(uint32_t pid, const char *name, int flags)
{
	int fd = open_file(pid, name, flags);
	uint32_t living;

	for (int i = 0; i < LIVING_TRIES && (fd == -ENOENT || fd == -ESRCH); i++) {
		living = procfs__living(pid);
		if (living == pid)
			break;
		fd = open_file(living, name, flags);
	}
	return fd;
}

/* Reads a small file as a whole and terminates it with NUL. Returns the number of bytes or a
 * negative errno. */
static ssize_t read_file(uint32_t pid, const char *name, char *buf, size_t size)
{
	ssize_t n;
	int fd = open_file(pid, name, O_RDONLY);

	if (fd < 0)
		return fd;
	n = read(fd, buf, size - 1);
	if (n < 0)
		n = -errno;
	else
		buf[n] = '\0';
	close(fd);
	return n;
}

void procfs__make_printable(char *text, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (iscntrl((unsigned char)text[i]))
			text[i] = '?';
}

/* /proc/PID/stat: pid (comm) state ppid ...; comm may hold blanks and parentheses. */
static int parse_stat(const char *text, struct procfs_info *ret)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	unsigned long flags;
	uint64_t start, user, system;
	unsigned ppid;
	char state;

	if (!open || !close || close < open ||
	    sscanf(close + 1,
		   " %c %u %*d %*d %*d %*d %lu %*u %*u %*u %*u %" SCNu64 " %" SCNu64
		   " %*d %*d %*d %*d %*d %*d %" SCNu64,
		   &state, &ppid, &flags, &user, &system, &start) != 6)
		return -EBADMSG;
	ret->state = state;
	ret->parent_pid = ppid;
	ret->kernel_thread = flags & KERNEL_THREAD_FLAG;
	ret->start_ticks = start;
	ret->cpu_ticks = user + system;
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(close - open - 1), open + 1);
	procfs__make_printable(ret->name, strlen(ret->name));
	return 0;
}

void procfs__join_arguments(const char *arguments, size_t len, struct procfs_info *ret)
{
	size_t n = min_of(len, sizeof(ret->command) - 1), i;

	while (n && !arguments[n - 1])
		n--;
	for (i = 0; i < n; i++)
		ret->command[i] = arguments[i] ? arguments[i] : ' ';
	ret->command[n] = '\0';
	procfs__make_printable(ret->command, n);
	if (!n)
		snprintf(ret->command, sizeof(ret->command), "%s", ret->name);
}

static int read_stat(uint32_t id, struct procfs_info *ret)
{
	char text[4096];
	ssize_t n = read_file(id, "stat", text, sizeof(text));

	return n < 0 ? n : parse_stat(text, ret);
}

uint64_t procfs__start_stack(uint32_t pid)
{
	char text[4096];
	ssize_t n = read_file(pid, "stat", text, sizeof(text));
	const char *close = n > 0 ? strrchr(text, ')') : NULL;
	uint64_t at = 0;

	if (close)
		sscanf(close + 1,
		       " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d"
		       " %*d %*d %*u %*u %*d %*u %*u %*u %" SCNu64,
		       &at);
	return at;
}

#define KERNEL_NAME_MAX 15 /* TASK_COMM_LEN, include/linux/sched.h */

/* Returns true if the kernel named the process after the file that it executes. */
static bool is_named_by_file(uint32_t pid, const struct procfs_info *info)
{
	char path[PROCFS_PATH_BYTES], target[PATH_MAX], *file;
	ssize_t n;

	if (!strcmp(info->name, "exe")) /* name from /proc/self/exe, as busybox executes itself */
		return true;
	snprintf(path, sizeof(path), "%s/%u/exe", procfs__root(), pid);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	file = strrchr(target, '/');
	return file && !strncmp(file + 1, info->name, KERNEL_NAME_MAX);
}

/* Sets the name to the first argument of a program with several names (busybox, redis-server in
 * redis-check-rdb), whose function depends on it. A title ("nginx: master process nginx -c FILE")
 * is not a name. */
static void take_called_name(uint32_t pid, const char *arguments, size_t len,
			     struct procfs_info *info)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_.+-";
	size_t n = strnlen(arguments, len), n_name;
	const char *name = memrchr(arguments, '/', n);

	if (n == len || memmem(arguments, n, ": ", 2))
		return;
	name = name ? name + 1 : arguments;
	name += *name == '-'; /* prefix of a login shell's name */
	n_name = strlen(name);
	if (!n_name || n_name >= sizeof(info->name) || strspn(name, plain) != n_name ||
	    !strncmp(name, info->name, KERNEL_NAME_MAX) || !is_named_by_file(pid, info))
		return;
	memcpy(info->name, name, n_name + 1);
}

static void read_command(uint32_t pid, struct procfs_info *ret)
{
	char arguments[sizeof(ret->command)];
	ssize_t n = read_file(pid, "cmdline", arguments, sizeof(arguments));

	procfs__join_arguments(arguments, n > 0 ? n : 0, ret);
	take_called_name(pid, arguments, max_of(n, 0), ret);
}

uint32_t procfs__inner_id(const char *line)
{
	const char *last = memrchr(line, '\t', strcspn(line, "\n"));

	return last ? strtoul(last, NULL, 10) : 0;
}

/* Parses /proc/PID/status. */
static bool parse_status(const char *text, struct procfs_info *ret)
{
	const char *tgid = strstr(text, "\nTgid:"), *uid = strstr(text, "\nUid:");
	const char *inner = strstr(text, "\nNStgid:");

	if (!tgid || sscanf(tgid, "\nTgid: %u", &ret->pid) != 1)
		return false;
	if (uid)
		sscanf(uid, "\nUid: %*u %u", &ret->uid);
	ret->inner_pid = (inner ? procfs__inner_id(inner + 1) : 0) ?: ret->pid;
	return true;
}

/* Sets the message: the process does not exist, or is hidden in /proc (hidepid), or /proc is of
 * another PID namespace. */
static int no_process(uint32_t id, struct err *err)
{
	if (!source && (!kill(id, 0) || errno == EPERM))
		return err__set(
			err, -ESRCH,
			"PID %u exists but is not visible in /proc: /proc is mounted with hidepid "
			"(run with CAP_SYS_PTRACE), or the process is in another PID namespace",
			id);
	return err__set(err, -ESRCH, "no process with PID %u", id);
}

/* Reads the facts that the ended first thread of a process does not show, from thread @tid. */
static void read_living(uint32_t tid, struct procfs_info *info)
{
	char state = procfs__thread_state(tid), text[4096];

	if (state)
		info->state = state;
	if (read_file(tid, "status", text, sizeof(text)) > 0)
		parse_status(text, info);
}

static int dir__status(const struct target_view *view, uint32_t id, struct procfs_info *ret,
		       struct err *err)
{
	struct procfs_info info = {};
	uint32_t living;
	char text[4096];
	ssize_t n = read_file(id, "status", text, sizeof(text));

	(void)view;
	if (n == -ENOENT || n == -ESRCH)
		return no_process(id, err);
	if (n < 0)
		return err__set(err, n, "cannot read /proc/%u/status: %s", id, strerror(-n));
	if (!parse_status(text, &info))
		return err__set(err, -EBADMSG, "/proc/%u/status names no thread group", id);
	if (read_stat(info.pid, &info))
		return err__set(err, -ESRCH, "process %u has just ended", id);
	living = state__has_ended(info.state) ? procfs__living(info.pid) : info.pid;
	if (living != info.pid)
		read_living(living, &info);
	read_command(living, &info);
	*ret = info;
	return 0;
}

int procfs__info(uint32_t id, struct procfs_info *ret, struct err *err)
{
	return current->status(current, id, ret, err);
}

int procfs__mappings(uint32_t pid, struct procfs_mappings *ret)
{
	return current->mappings(current, pid, ret);
}

static ssize_t dir__words(const struct target_view *view, uint32_t pid, const char *name, char *buf,
			  size_t size)
{
	int fd = open_file(procfs__living(pid), name, O_RDONLY);
	ssize_t got = fd < 0 ? fd : 1;
	size_t n = 0;

	(void)view;
	while (fd >= 0 && n < size && (got = read(fd, buf + n, size - n)) > 0)
		n += got;
	close_fd(&fd);
	return n ? (ssize_t)n : got;
}

static void dir__root(const struct target_view *view, uint32_t pid, char *ret, size_t size)
{
	(void)view;
	snprintf(ret, size, "%s/%u/root", procfs__root(), procfs__living(pid));
}

/* Reads the facts of the thread alone if the view distinguishes threads. */
static int read_usage(uint32_t id, struct procfs_info *ret)
{
	return current == &dir ? read_stat(id, ret) : current->status(current, id, ret, NULL);
}

int procfs__cgroup(uint32_t pid, char *ret, size_t size)
{
	char path[PROCFS_PATH_BYTES], *line = NULL;
	size_t room = 0;
	int code = -ENOENT;
	FILE *file;

	/* An ended first thread stays in its cgroup when the others are moved. */
	snprintf(path, sizeof(path), "%s/%u/cgroup", procfs__root(), procfs__living(pid));
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (code == -ENOENT && getline(&line, &room, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "0::/", 4))
			code = snprintf(ret, size, "%s", line + 3) < (int)size ? 0 : -ENAMETOOLONG;
	}
	free(line);
	fclose(file);
	return code;
}

int procfs__usage(uint32_t pid, struct procfs_info *ret)
{
	return read_usage(pid, ret);
}

char procfs__thread_state(uint32_t tid)
{
	struct procfs_info info = {};

	return read_usage(tid, &info) ? '\0' : info.state;
}

uint32_t procfs__parent(uint32_t pid)
{
	struct procfs_info info = {};

	return read_usage(pid, &info) ? 0 : info.parent_pid;
}

int procfs__check_numbers(struct err *err)
{
	char self[16];
	ssize_t n;

	if (procfs__is_recorded())
		return 0;
	n = readlink("/proc/self", self, sizeof(self) - 1);
	if (n < 0)
		return err__set(err, -errno, "cannot read /proc/self: %s (is /proc mounted?)",
				strerror(errno));
	self[n] = '\0';
	if (atoi(self) == getpid())
		return 0;
	return err__set(err, -EINVAL,
			"cannot use /proc: it belongs to another PID namespace, whose PIDs differ. "
			"Mount braid's own (mount -t proc proc /proc), or run braid outside");
}

int procfs__target(uint32_t id, struct procfs_info *ret, struct err *err)
{
	struct procfs_info info;
	int ret_code = procfs__check_numbers(err);

	if (!ret_code)
		ret_code = procfs__info(id, &info, err);
	if (ret_code)
		return ret_code;
	if (info.kernel_thread)
		return err__set(err, -EINVAL,
				"PID %u (%s) is a kernel thread, which has no user code to profile",
				id, info.name);
	if (state__has_ended(info.state))
		return err__set(err, -EINVAL,
				"PID %u (%s) is a zombie: it has ended and waits for its parent %u",
				id, info.name, info.parent_pid);
	ret_code = privilege__check_owner(info.pid, info.uid, err);
	if (!ret_code)
		*ret = info;
	return ret_code;
}

int procfs__open_root(uint32_t pid)
{
	char path[PATH_MAX];
	int fd;

	if (current == &dir)
		return procfs__open(pid, "root", O_PATH | O_DIRECTORY);
	current->root(current, pid, path, sizeof(path));
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

double procfs__cpu_s(uint32_t pid)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &time))
		return 0;
	return time.tv_sec + time.tv_nsec / 1e9;
}

uint64_t procfs__thread_exec_ns(uint32_t tid)
{
	char path[PROCFS_PATH_BYTES];
	uint64_t exec_ns;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%u/schedstat", procfs__root(), tid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%" SCNu64, &exec_ns) != 1)
		exec_ns = 0;
	fclose(file);
	return exec_ns;
}

/* Maximum difference between clocks and ticks. */
#define CLOCK_SLACK_S 2

int64_t procfs__begin_s(uint64_t start_ticks)
{
	struct timespec boot, real;

	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_REALTIME, &real);
	return real.tv_sec - boot.tv_sec + (int64_t)(start_ticks / sysconf(_SC_CLK_TCK)) -
	       CLOCK_SLACK_S;
}

bool procfs__has_perf_map(uint32_t pid)
{
	struct target_file file = TARGET_FILE_NONE;
	struct procfs_info info;
	char path[64];
	int root;
	bool has;

	if (procfs__info(pid, &info, NULL))
		return false;
	root = procfs__open_root(info.pid);
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", info.inner_pid);
	has = root >= 0 && !target_file__find(root, path, false, &file) &&
	      file.mtime_ns / (int64_t)NSEC_PER_SEC >= procfs__begin_s(info.start_ticks);
	target_file__done(&file);
	close_fd(&root);
	return has;
}

uint32_t procfs__namespace_tid(uint32_t pid, uint32_t tid)
{
	char path[PROCFS_PATH_BYTES], line[256];
	uint32_t inner = tid;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%u/task/%u/status", procfs__root(), pid, tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "NSpid:", 6) != 0)
			continue;
		inner = procfs__inner_id(line) ?: tid;
		break;
	}
	if (file)
		fclose(file);
	return inner;
}

/* Lists in a target's memory may have no end, so memory counts as unreadable when a stop is due.
 * The check is made at every 64th read, as most reads take less than a microsecond. */
static bool may_read(void)
{
	static __thread unsigned n_reads;
	static __thread bool is_stopped;

	if (is_stopped || n_reads++ % READS_PER_LOOK == READS_PER_LOOK - 1)
		is_stopped = stop__is_due();
	return !is_stopped;
}

static int dir__memory(const struct target_view *view, uint32_t pid, uint64_t address, void *to,
		       size_t size)
{
	struct iovec local = { .iov_base = to, .iov_len = size };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)address, .iov_len = size };
	ssize_t n;

	(void)view;
	if (source && source->memory)
		return memory__read(source->memory, address, to, size);
	n = process__readv(pid, &local, 1, &remote, 1);
	return n == (ssize_t)size ? 0 : n < 0 ? -errno : -EFAULT;
}

bool procfs__read_memory(uint32_t pid, uint64_t address, void *to, size_t size)
{
	if (!may_read()) {
		errno = EINTR;
		return false;
	}
	return !current->memory(current, pid, address, to, size);
}
