// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/workload.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "core/base/util.h"

#define PATIENCE_MS   120000
#define ARGUMENTS_MAX 8
#define ANSWER_BYTES  128

extern const char asset_workload_py_start[], asset_workload_rb_start[];
extern const char asset_workload_pl_start[], asset_workload_js_start[];
extern const char asset_workload_php_start[], asset_workload_php_end[];
extern const char asset_Workload_java_start[], asset_Workload_java_end[];

struct kind {
	const char *runtime;
	const char *program; /* searched in PATH */
	const char *beside;  /* file required in the program's directory; NULL: none */
	const char *lacks;   /* end of the message if that file is missing */
	const char *arguments[ARGUMENTS_MAX]; /* "%s": the workload's text, "%f": a file of it */
	const char *start, *end;
};

static const struct kind kinds[] = {
	{ .runtime = "python",
	  .program = "python3",
	  .arguments = { "-I", "-S", "-c", "%s" },
	  .start = asset_workload_py_start },
	{ .runtime = "ruby",
	  .program = "ruby",
	  .arguments = { "-e", "%s" },
	  .start = asset_workload_rb_start },
	{ .runtime = "perl",
	  .program = "perl",
	  .arguments = { "-e", "%s" },
	  .start = asset_workload_pl_start },
	{ .runtime = "php",
	  .program = "php",
	  .arguments = { "-n", "-f", "%f" },
	  .start = asset_workload_php_start,
	  .end = asset_workload_php_end },
	{ .runtime = "node",
	  .program = "node",
	  .arguments = { "-e", "%s" },
	  .start = asset_workload_js_start },
	{ .runtime = "jvm",
	  .program = "java",
	  .beside = "javac",
	  .lacks = "is a JRE. Running the bundled source file requires a JDK",
	  .arguments = { "--source", "11", "%f" },
	  .start = asset_Workload_java_start,
	  .end = asset_Workload_java_end },
};

struct workload {
	pid_t pid;
	int to, from;
	char line[ANSWER_BYTES];
};

static const struct kind *find_kind(const char *runtime)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i].runtime, runtime))
			return &kinds[i];
	return NULL;
}

/* --- running a workload --- */

/* Returns a file without a name with the workload's text, so that no file remains, or -1. The
 * program inherits it. */
static int text_file(const struct kind *kind)
{
	int fd = memfd_create("workload", 0);
	size_t size = kind->end - kind->start;

	return fd >= 0 && write(fd, kind->start, size) == (ssize_t)size ? fd : -1;
}

static void __attribute__((noreturn)) run_program(const char *program, const struct kind *kind,
						  const struct runtime *prepare, pid_t parent)
{
	const char *arguments[ARGUMENTS_MAX + 2] = { program };
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	char file[32] = "";
	sigset_t none;

	for (size_t i = 0; i < ARGUMENTS_MAX && kind->arguments[i]; i++) {
		const char *argument = kind->arguments[i];

		if (!strcmp(argument, "%f"))
			snprintf(file, sizeof(file), "/proc/self/fd/%d", text_file(kind));
		arguments[i + 1] = !strcmp(argument, "%s")   ? kind->start
				   : !strcmp(argument, "%f") ? file
							     : argument;
	}
	setpgid(0, 0); /* Ctrl-C must not reach the workload */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(null, STDERR_FILENO);
	if (prepare && runtime__has(prepare, probes, prepare_command))
		prepare->probes->prepare_command((char *const *)arguments);
	execv(program, (char *const *)arguments);
	_exit(127);
}

/* Reads a line of the answer, without its end. */
static int read_line(struct workload *workload, struct err *err)
{
	size_t n = 0;

	while (n + 1 < sizeof(workload->line)) {
		struct pollfd polled = { .fd = workload->from, .events = POLLIN };
		int ready = poll(&polled, 1, PATIENCE_MS);

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready == 0)
			return err__set(err, -ETIMEDOUT, "the workload does not respond");
		if (read(workload->from, workload->line + n, 1) != 1)
			return err__set(err, -EPIPE, "the workload has ended");
		if (workload->line[n] == '\n')
			break;
		n++;
	}
	workload->line[n] = 0;
	return 0;
}

static int start_program(const char *program, const struct kind *kind,
			 const struct runtime *prepare, struct workload **ret_workload,
			 struct err *err)
{
	struct workload *workload = calloc(1, sizeof(*workload));
	int to[2] = { -1, -1 }, from[2] = { -1, -1 }, ret = 0;
	pid_t parent = getpid();

	if (!workload || pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		ret = err__set(err, -ENOMEM, "cannot start %s: no memory, or no files", program);
	if (!ret)
		workload->pid = fork();
	if (!ret && !workload->pid) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		run_program(program, kind, prepare, parent);
	}
	if (!ret && workload->pid < 0)
		ret = err__set(err, -errno, "cannot fork: %s", strerror(errno));
	close_fd(&to[0]);
	close_fd(&from[1]);
	if (ret) {
		close_fd(&to[1]);
		close_fd(&from[0]);
		free(workload);
		return ret;
	}
	workload->to = to[1];
	workload->from = from[0];
	ret = read_line(workload, err);
	if (!ret && strncmp(workload->line, "READY ", 6))
		ret = err__set(err, -ENOTSUP, "its first line is not the expected one");
	if (ret) {
		workload__stop(workload);
		return err__prefix(err, -ENOTSUP, "%s cannot run the workload", program);
	}
	*ret_workload = workload;
	return 0;
}

int workload__start(const struct interpreter *interpreter, const struct runtime *prepare,
		    struct workload **ret, struct err *err)
{
	return start_program(interpreter->program, find_kind(interpreter->runtime), prepare, ret,
			     err);
}

void workload__stop(struct workload *workload)
{
	if (!workload)
		return;
	kill(workload->pid, SIGKILL);
	while (waitpid(workload->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close_fd(&workload->to);
	close_fd(&workload->from);
	free(workload);
}

pid_t workload__pid(const struct workload *workload)
{
	return workload->pid;
}

static int ask(struct workload *workload, const char *task, uint64_t n, double *ret_ns,
	       uint64_t *ret_calls, struct err *err)
{
	unsigned long long ns, calls;
	struct sigaction ignore = { .sa_handler = SIG_IGN }, old;
	int ret;

	sigaction(SIGPIPE, &ignore, &old);
	ret = dprintf(workload->to, "%s %llu\n", task, (unsigned long long)n) < 0
		      ? err__set(err, -EPIPE, "the workload has ended")
		      : read_line(workload, err);
	sigaction(SIGPIPE, &old, NULL);
	if (ret)
		return ret;
	if (sscanf(workload->line, "%llu %llu", &ns, &calls) != 2)
		return err__set(err, -EPIPE, "the workload's answer is malformed");
	*ret_ns = ns;
	*ret_calls = calls;
	return 0;
}

int workload__run(struct workload *workload, enum workload_task task, uint64_t n, double *ret_ns,
		  uint64_t *ret_calls, struct err *err)
{
	static const char *const names[WORKLOAD_TASKS_N] = { "calls", "work" };

	return ask(workload, names[task], n, ret_ns, ret_calls, err);
}

int workload__deepen(struct workload *workload, unsigned depth, struct err *err)
{
	uint64_t calls;
	double ns;

	return ask(workload, "deep", depth, &ns, &calls, err);
}

/* --- finding an interpreter --- */

/* Checks that the required file is there: a JRE cannot run a source file. */
static int check_complete(const struct kind *kind, const char *path, struct err *err)
{
	char real[PATH_MAX], beside[PATH_MAX + 32];
	const char *slash;

	if (!kind->beside || !realpath(path, real))
		return 0;
	slash = strrchr(real, '/');
	snprintf(beside, sizeof(beside), "%.*s/%s", (int)(slash - real), real, kind->beside);
	return access(beside, X_OK) ? err__set(err, -ENOTSUP, "%s %s", path, kind->lacks) : 0;
}

/* Starts the program once, to get its version and its real path: a shim starts another program. */
static int look_at(const struct kind *kind, const char *path, struct interpreter *ret_interpreter,
		   struct err *err)
{
	char link[64], real[PATH_MAX];
	struct workload *workload;
	int ret = check_complete(kind, path, err);

	if (!ret)
		ret = start_program(path, kind, NULL, &workload, err);
	if (ret)
		return ret;
	*ret_interpreter = (struct interpreter) { .runtime = kind->runtime };
	snprintf(ret_interpreter->version, sizeof(ret_interpreter->version), "%.31s",
		 workload->line + strlen("READY "));
	snprintf(link, sizeof(link), "/proc/%d/exe", workload->pid);
	if (!realpath(link, real) || strlen(real) >= sizeof(ret_interpreter->program))
		ret = err__set(err, -ENOTSUP, "the path of %s is too long", path);
	else
		strcpy(ret_interpreter->program, real);
	workload__stop(workload);
	return ret;
}

int workload__find(const char *runtime, struct interpreter *ret_interpreter, struct err *err)
{
	const struct kind *kind = find_kind(runtime);
	const char *path = getenv("PATH");
	char *directories, *rest, *directory, file[PATH_MAX];
	int ret = -ENOENT;

	if (!kind)
		return err__set(err, -ENOTSUP, "no workload is bundled for %s", runtime);
	err__set(err, -ENOENT, "cannot find %s in PATH", kind->program);
	directories = rest = strdup(path ? path : "/usr/bin:/bin");
	while (ret && rest && (directory = strsep(&rest, ":"))) {
		snprintf(file, sizeof(file), "%s/%s", directory, kind->program);
		if (*directory && !access(file, X_OK))
			ret = look_at(kind, file, ret_interpreter, err);
	}
	free(directories);
	return ret;
}
