// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/target/procfs.h"

#define THREADS_MAX   4096
#define OPTIONS_BYTES (256 << 10) /* bytes of a command line or an environment */

/* HotSpot's names for its threads, as the kernel truncates them: "Signal Dispatch", or from Java
 * 26 on "Signal ..atcher". HotSpot creates the second thread after the first, and after it has
 * begun to catch SIGQUIT (Threads::create_vm). From Java 19 on, it catches SIGQUIT earlier, but
 * ignores it then. */
#define DISPATCHER_PREFIX "Signal "
#define LATER_THREAD	  "Service Thread"

/* Reads /proc/PID/status; `ret_phase` or `ret_process` may be NULL. */
static int read_status(int proc_fd, struct jvm_process *ret_process, struct jvm_phase *ret_phase)
{
	const unsigned long long quit = 1ULL << (SIGQUIT - 1);
	struct jvm_process process = {};
	struct jvm_phase phase = {};
	unsigned long long mask;
	char *line = NULL, state = 'Z';
	size_t size = 0;
	FILE *file;
	int fd = openat(proc_fd, "status", O_RDONLY | O_CLOEXEC);

	file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!file) {
		close_fd(&fd);
		return errno == ENOENT ? -ESRCH : -errno;
	}
	while (getline(&line, &size, file) > 0) {
		if (sscanf(line, "State: %c", &state) == 1)
			phase.is_stopped = state == 'T' || state == 't';
		else if (sscanf(line, "SigCgt: %llx", &mask) == 1)
			phase.catches_quit = mask & quit;
		else if (sscanf(line, "ShdPnd: %llx", &mask) == 1)
			phase.has_quit_pending = mask & quit;
		else if (!strncmp(line, "NStgid:", 7))
			process.ns_pid = procfs__inner_id(line);
		else if (sscanf(line, "Uid: %*u %u", &process.uid) != 1)
			sscanf(line, "Gid: %*u %u", &process.gid);
	}
	free(line);
	fclose(file);
	if (ret_phase)
		*ret_phase = phase;
	if (ret_process) {
		ret_process->ns_pid = process.ns_pid;
		ret_process->uid = process.uid;
		ret_process->gid = process.gid;
	}
	return process.ns_pid && state != 'Z' && state != 'X' ? 0 : -ESRCH;
}

int jvm_process__open(uint32_t pid, struct jvm_process *ret, struct err *err)
{
	struct jvm_process process = { .proc_fd = -1, .root_fd = -1 };
	struct procfs_info info;
	char path[32];
	int code = procfs__target(pid, &info, err);

	if (code)
		return code == -EINVAL ? -ESRCH : code;
	process.pid = info.pid;
	snprintf(path, sizeof(path), "/proc/%u", procfs__living(info.pid));
	process.proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	code = process.proc_fd < 0 ? -errno : read_status(process.proc_fd, &process, NULL);
	if (!code) {
		process.root_fd = openat(process.proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
		code = process.root_fd < 0 ? -errno : 0;
	}
	if (code == -EACCES || code == -EPERM)
		code = err__set(err, -EPERM, "cannot access the files of PID %u (%s). Run as root",
				info.pid, info.name);
	else if (code)
		code = err__set(err, -ESRCH, "PID %u (%s) has ended", info.pid, info.name);
	if (code)
		jvm_process__close(&process);
	else
		*ret = process;
	return code;
}

void jvm_process__close(struct jvm_process *process)
{
	close_fd(&process->proc_fd);
	close_fd(&process->root_fd);
}

/* Updates the phase from a thread's name. */
static void see_thread(int task_fd, const char *tid, struct jvm_phase *phase)
{
	char path[32], name[32] = "";
	int fd;

	if (!isdigit((unsigned char)tid[0]))
		return;
	snprintf(path, sizeof(path), "%.16s/comm", tid);
	fd = openat(task_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (read(fd, name, sizeof(name) - 1) > 0)
		name[strcspn(name, "\n")] = '\0';
	close(fd);
	phase->has_dispatcher |= !strncmp(name, DISPATCHER_PREFIX, strlen(DISPATCHER_PREFIX));
	phase->is_started |= !strcmp(name, LATER_THREAD);
}

/* Updates the phase from the threads' names. The kernel lists threads in the order of their
 * creation, so that these threads come early. */
static void see_threads(int proc_fd, struct jvm_phase *phase)
{
	int fd = openat(proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
	DIR *task = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!task) {
		close_fd(&fd);
		return;
	}
	while (!phase->is_started && n++ < THREADS_MAX && (entry = readdir(task)))
		see_thread(dirfd(task), entry->d_name, phase);
	closedir(task);
}

int jvm_process__phase(const struct jvm_process *process, struct jvm_phase *ret)
{
	struct jvm_phase threads = {}, phase;
	int code;

	/* The threads are read first: if the later thread exists, SIGQUIT was caught before. */
	see_threads(process->proc_fd, &threads);
	code = read_status(process->proc_fd, NULL, &phase);
	if (code)
		return -ESRCH;
	phase.has_dispatcher = threads.has_dispatcher;
	phase.is_started = threads.is_started;
	*ret = phase;
	return 0;
}

/* Reads the beginning of a file, with a NUL at the end; owned. NULL: unreadable. */
static char *read_text(int proc_fd, const char *name, size_t *ret_len)
{
	char *text = malloc(OPTIONS_BYTES + 1);
	int fd = openat(proc_fd, name, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 0;

	while (text && fd >= 0 && len < OPTIONS_BYTES &&
	       (n = read(fd, text + len, OPTIONS_BYTES - len)) > 0)
		len += n;
	close_fd(&fd);
	if (text)
		text[len] = '\0';
	*ret_len = text ? len : 0;
	return text;
}

static void see_option(const char *word, bool *disabled)
{
	if (!strcmp(word, "-XX:+DisableAttachMechanism"))
		*disabled = true;
	else if (!strcmp(word, "-XX:-DisableAttachMechanism"))
		*disabled = false;
}

/* Sees the JVM's options in a command line. These come before the main class. */
static void see_command(const char *text, size_t len, bool *disabled)
{
	const char *word = text + strlen(text) + 1;
	bool is_value = false;

	for (; word < text + len; word += strlen(word) + 1) {
		if (!is_value && word[0] != '-' && word[0] != '@')
			break;
		is_value = !is_value &&
			   (!strcmp(word, "-cp") || !strcmp(word, "-classpath") ||
			    !strcmp(word, "-p") || (!strncmp(word, "--", 2) && !strchr(word, '=')));
		see_option(word, disabled);
	}
}

/* Sees the JVM's options in the variable's value. Modifies @text. */
static void see_variable(char *text, size_t len, const char *name, bool *disabled)
{
	size_t name_len = strlen(name);
	char *at, *word, *rest;

	for (at = text; at < text + len; at += strlen(at) + 1)
		if (!strncmp(at, name, name_len) && at[name_len] == '=')
			break;
	if (at >= text + len)
		return;
	for (word = strtok_r(at + name_len + 1, " \t\r\n\v\f", &rest); word;
	     word = strtok_r(NULL, " \t\r\n\v\f", &rest))
		see_option(word, disabled);
}

bool jvm_process__is_attach_disabled(const struct jvm_process *process)
{
	size_t command_len, variables_len;
	char *command = read_text(process->proc_fd, "cmdline", &command_len);
	char *variables = read_text(process->proc_fd, "environ", &variables_len);
	bool disabled = false;

	/* In the order in which the JVM reads them; the last option wins. */
	if (variables) {
		see_variable(variables, variables_len, "JAVA_TOOL_OPTIONS", &disabled);
		see_variable(variables, variables_len, "JDK_JAVA_OPTIONS", &disabled);
	}
	if (command)
		see_command(command, command_len, &disabled);
	if (variables)
		see_variable(variables, variables_len, "_JAVA_OPTIONS", &disabled);
	free(command);
	free(variables);
	return disabled;
}

int jvm_process__become_user(const struct jvm_process *process, struct err *err)
{
	uid_t uid = process->uid;
	gid_t gid = process->gid;

	if (geteuid() == uid && getegid() == gid)
		return 0;
	if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		return err__set(
			err, -EPERM,
			"PID %u belongs to another user (UID %u). Run as root or as that user",
			process->pid, uid);
	return 0;
}
