// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/procfs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>

#include "core/base/memory.h"
#include "core/base/privilege.h"
#include "core/base/util.h"

#define KERNEL_THREAD_FLAG 0x00200000 /* PF_KTHREAD, include/linux/sched.h */
#define MAPPINGS_READ_MAX  65536

static const struct procfs_source *source; /* NULL: the live system */

void procfs__use(const struct procfs_source *stand_in)
{
	source = stand_in;
}

bool procfs__is_recorded(void)
{
	return source != NULL;
}

const char *procfs__root(void)
{
	return source ? source->root : "/proc";
}

/* Whole small file, NUL-terminated. Number of bytes or a negative errno. */
static ssize_t read_file(uint32_t pid, const char *name, char *buf, size_t size)
{
	char path[PROCFS_PATH_BYTES];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%u/%s", procfs__root(), pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
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

static void read_command(uint32_t pid, struct procfs_info *ret)
{
	char arguments[sizeof(ret->command)];
	ssize_t n = read_file(pid, "cmdline", arguments, sizeof(arguments));

	procfs__join_arguments(arguments, n > 0 ? n : 0, ret);
}

/* /proc/PID/status. The innermost PID comes last. */
static bool parse_status(const char *text, struct procfs_info *ret)
{
	const char *tgid = strstr(text, "\nTgid:"), *uid = strstr(text, "\nUid:");
	const char *inner = strstr(text, "\nNStgid:"), *next;

	if (!tgid || sscanf(tgid, "\nTgid: %u", &ret->pid) != 1)
		return false;
	if (uid)
		sscanf(uid, "\nUid: %*u %u", &ret->uid);
	ret->inner_pid = ret->pid;
	for (; inner && (next = strpbrk(inner + 1, "\t\n")) && *next == '\t'; inner = next)
		ret->inner_pid = strtoul(next + 1, NULL, 10);
	return true;
}

/* It is nowhere, or /proc hides it (hidepid), or is that of other PIDs. */
static int no_process(uint32_t id, struct err *err)
{
	if (!source && (!kill(id, 0) || errno == EPERM))
		return err__set(err, -ESRCH,
				"PID %u cannot be looked at, as it is not in this /proc: it may be "
				"mounted with hidepid (then this takes CAP_SYS_PTRACE), or in "
				"another PID namespace",
				id);
	return err__set(err, -ESRCH, "no process with PID %u", id);
}

int procfs__info(uint32_t id, struct procfs_info *ret, struct err *err)
{
	struct procfs_info info = {};
	char text[4096];
	ssize_t n = read_file(id, "status", text, sizeof(text));

	if (n == -ENOENT || n == -ESRCH)
		return no_process(id, err);
	if (n < 0)
		return err__set(err, n, "cannot read /proc/%u/status: %s", id, strerror(-n));
	if (!parse_status(text, &info))
		return err__set(err, -EBADMSG, "/proc/%u/status names no thread group", id);
	if (read_stat(info.pid, &info))
		return err__set(err, -ESRCH, "process %u has just ended", id);
	read_command(info.pid, &info);
	*ret = info;
	return 0;
}

int procfs__cgroup(uint32_t pid, char *ret, size_t size)
{
	char path[PROCFS_PATH_BYTES], *line = NULL;
	size_t room = 0;
	int code = -ENOENT;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%u/cgroup", procfs__root(), pid);
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

char procfs__thread_state(uint32_t tid)
{
	struct procfs_info info = {};

	return read_stat(tid, &info) ? '\0' : info.state;
}

uint32_t procfs__parent(uint32_t pid)
{
	struct procfs_info info = {};

	return read_stat(pid, &info) ? 0 : info.parent_pid;
}

int procfs__check_numbers(struct err *err)
{
	char self[16];
	ssize_t n;

	if (source)
		return 0;
	n = readlink("/proc/self", self, sizeof(self) - 1);
	if (n < 0)
		return err__set(err, -errno, "cannot read /proc/self: %s (is /proc mounted?)",
				strerror(errno));
	self[n] = '\0';
	if (atoi(self) == getpid())
		return 0;
	return err__set(err, -EINVAL,
			"/proc is that of another PID namespace, so that PIDs in it are not those "
			"that braid sees: mount its own there (mount -t proc proc /proc), or run "
			"braid outside");
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
				"PID %u (%s) is a kernel thread: it has no user code to profile",
				id, info.name);
	if (info.state == 'Z' || info.state == 'X')
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
	char path[PROCFS_PATH_BYTES];
	int fd;

	snprintf(path, sizeof(path), "%s/%u/root", procfs__root(), pid);
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

/* Memory that nobody can access, behind the code of a compiler, is where its next code will be: it
 * reserves a range and opens it page by page. So that is taken for code, too. */
static void extend(struct procfs_mapping *code, const char *line)
{
	uint64_t start, end, inode;
	char perms[5];

	if (code->path[0] || sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %*x:%*x %" SCNu64,
				    &start, &end, perms, &inode) != 4)
		return;
	if (!strcmp(perms, "---p") && !inode && start == code->end && start < end)
		code->end = end;
}

/* Shared memory without a name: while a compiler writes code there (PHP's opcache), none of it is
 * executable, though threads are about to return to it. */
static bool may_hold_code(const char *perms, const char *path)
{
	return perms[3] == 's' && !strncmp(path, "/dev/zero", strlen("/dev/zero"));
}

static bool parse_line(char *line, struct procfs_mapping *ret)
{
	static const char deleted[] = " (deleted)";
	uint64_t start, end, offset, inode;
	unsigned dev_major, dev_minor;
	char perms[5], *path;
	int at = 0;
	size_t len;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &start,
		   &end, perms, &offset, &dev_major, &dev_minor, &inode, &at) != 7 ||
	    !at || start >= end)
		return false;
	path = line + at;
	if (perms[2] != 'x' && !may_hold_code(perms, path))
		return false;
	len = strlen(path);
	if (len >= strlen(deleted) && !strcmp(path + len - strlen(deleted), deleted))
		path[len - strlen(deleted)] = '\0';
	*ret = (struct procfs_mapping) { .start = start,
					 .end = end,
					 .offset = offset,
					 .inode = inode,
					 .dev_major = dev_major,
					 .dev_minor = dev_minor,
					 .anonymous = path[0] != '/',
					 .vdso = !strcmp(path, "[vdso]") };
	if (!strcmp(path, "[vsyscall]"))
		return false;
	ret->path = strdup(path);
	return ret->path;
}

int procfs__parse_mappings(FILE *maps, struct procfs_mappings *ret)
{
	struct procfs_mappings mappings = {};
	struct procfs_mapping mapping;
	char *line = NULL;
	size_t size = 0;
	int err = 0;

	while (mappings.n < MAPPINGS_READ_MAX && getline(&line, &size, maps) > 0) {
		if (!parse_line(line, &mapping)) {
			if (mappings.n)
				extend(&mappings.list[mappings.n - 1], line);
			continue;
		}
		err = array__reserve(&mappings.list, &mappings.cap, mappings.n + 1,
				     sizeof(*mappings.list));
		if (err) {
			free(mapping.path);
			break;
		}
		if (mappings.n && mapping.start < mappings.list[mappings.n - 1].end) {
			free(mapping.path); /* the kernel sorts; what does not fit is no maps file
					     */
			continue;
		}
		mappings.list[mappings.n++] = mapping;
	}
	free(line);
	if (err)
		procfs_mappings__done(&mappings);
	else
		*ret = mappings;
	return err;
}

int procfs__mappings(uint32_t pid, struct procfs_mappings *ret)
{
	char path[PROCFS_PATH_BYTES], first;
	FILE *maps;
	int err;

	snprintf(path, sizeof(path), "%s/%u/maps", procfs__root(), pid);
	maps = fopen(path, "re");
	if (!maps)
		return errno == ENOENT ? -ESRCH : -errno;
	err = procfs__parse_mappings(maps, ret);
	if (!err &&
	    pread(fileno(maps), &first, 1, 0) != 1) { /* it ended meanwhile, and so did the text */
		procfs_mappings__done(ret);
		err = -ESRCH;
	}
	fclose(maps);
	return err;
}

void procfs_mappings__done(struct procfs_mappings *mappings)
{
	size_t i;

	for (i = 0; i < mappings->n; i++)
		free(mappings->list[i].path);
	free(mappings->list);
	*mappings = (struct procfs_mappings) {};
}

int procfs__find_mapping(uint32_t pid, const struct procfs_mapping *mapping,
			 struct target_file *ret)
{
	char path[PROCFS_PATH_BYTES];
	int root, rc;

	snprintf(path, sizeof(path), "%s/%u/map_files/%" PRIx64 "-%" PRIx64, procfs__root(), pid,
		 mapping->start, mapping->end);
	rc = target_file__find_link(path, ret);
	if (!rc || mapping->path[0] != '/')
		return rc;
	root = procfs__open_root(pid);
	rc = root < 0 ? root : target_file__find(root, mapping->path, true, ret);
	close_fd(&root);
	if (!rc || procfs__is_recorded())
		return rc;
	/* With the process its root is gone, which may have been ours. */
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	rc = root < 0 ? -errno : target_file__find(root, mapping->path, true, ret);
	close_fd(&root);
	if (!rc && (ret->ino != mapping->inode ||
		    ret->dev != makedev(mapping->dev_major, mapping->dev_minor))) {
		target_file__done(ret);
		rc = -ESTALE;
	}
	return rc;
}

int procfs__open_mapping(uint32_t pid, const struct procfs_mapping *mapping)
{
	struct target_file file;
	int fd = procfs__find_mapping(pid, mapping, &file);

	if (!fd)
		fd = target_file__open(&file);
	target_file__done(&file);
	return fd;
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
	has = root >= 0 && !target_file__find(root, path, false, &file);
	target_file__done(&file);
	close_fd(&root);
	return has;
}

uint32_t procfs__namespace_tid(uint32_t pid, uint32_t tid)
{
	char path[PROCFS_PATH_BYTES], line[256];
	uint32_t inner = tid;
	const char *last;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%u/task/%u/status", procfs__root(), pid, tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "NSpid:", 6) != 0)
			continue;
		last = strrchr(line, '\t');
		if (last && strtoul(last, NULL, 10))
			inner = strtoul(last, NULL, 10);
		break;
	}
	if (file)
		fclose(file);
	return inner;
}

bool procfs__read_memory(uint32_t pid, uint64_t address, void *to, size_t size)
{
	struct iovec local = { .iov_base = to, .iov_len = size };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)address, .iov_len = size };

	if (source && source->memory)
		return !memory__read(source->memory, address, to, size);
	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}
