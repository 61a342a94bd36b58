// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/workload.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "core/util.h"

#define PATIENCE_MS   120000
#define ARGUMENTS_MAX 8
#define ANSWER_BYTES  128
#define TRIED_MAX     64

extern const char asset_workload_py_start[], asset_workload_rb_start[];
extern const char asset_Workload_java_start[], asset_Workload_java_end[];

struct kind {
	const char *runtime;
	const char *missing; /* what to say if there is none */
	/* Patterns of names, to be looked for in PATH and, those with a '/', at home. */
	const char *names[4];
	const char *beside;		      /* needed in the program's directory; NULL: nothing */
	const char *lacks;		      /* what to say if that is not there */
	const char *arguments[ARGUMENTS_MAX]; /* "%s": the workload's text, "%f": a file of it */
	const char *start, *end;
};

static const struct kind kinds[] = {
	{ .runtime = "python",
	  .missing = "there is no python3 in PATH",
	  .names = { "python3", "python3.[0-9]*", ".pyenv/versions/3.*/bin/python3" },
	  .arguments = { "-I", "-S", "-c", "%s" },
	  .start = asset_workload_py_start },
	{ .runtime = "ruby",
	  .missing = "there is no ruby in PATH",
	  .names = { "ruby" },
	  .arguments = { "-e", "%s" },
	  .start = asset_workload_rb_start },
	{ .runtime = "jvm",
	  .missing = "there is no java in PATH",
	  .names = { "java" },
	  .beside = "javac",
	  .lacks = "is a JRE: a JDK is needed to run the bundled source file",
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

/* --- running one --- */

/* The text as a file without a name: nothing is left behind. Inherited by the program. */
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
	setpgid(0, 0); /* Ctrl-C is not for it */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(null, STDERR_FILENO);
	if (prepare && prepare->prepare_command)
		prepare->prepare_command((char *const *)arguments);
	execv(program, (char *const *)arguments);
	_exit(127);
}

/* A line of the answer, without its end. */
static int read_line(struct workload *workload, struct err *err)
{
	size_t n = 0;

	while (n + 1 < sizeof(workload->line)) {
		struct pollfd polled = { .fd = workload->from, .events = POLLIN };
		int ready = poll(&polled, 1, PATIENCE_MS);

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready == 0)
			return err__set(err, -ETIMEDOUT, "the workload does not answer");
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
			 const struct runtime *prepare, struct workload **ret, struct err *err)
{
	struct workload *workload = calloc(1, sizeof(*workload));
	int to[2] = { -1, -1 }, from[2] = { -1, -1 }, code = 0;
	pid_t parent = getpid();

	if (!workload || pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		code = err__set(err, -ENOMEM, "cannot start %s: no memory, or no files", program);
	if (!code)
		workload->pid = fork();
	if (!code && !workload->pid) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		run_program(program, kind, prepare, parent);
	}
	if (!code && workload->pid < 0)
		code = err__set(err, -errno, "cannot fork: %s", strerror(errno));
	close_fd(&to[0]);
	close_fd(&from[1]);
	if (code) {
		close_fd(&to[1]);
		close_fd(&from[0]);
		free(workload);
		return code;
	}
	workload->to = to[1];
	workload->from = from[0];
	code = read_line(workload, err);
	if (!code && strncmp(workload->line, "READY ", 6))
		code = err__set(err, -ENOTSUP, "it does not begin as it should");
	if (code) {
		workload__stop(workload);
		return err__prefix(err, -ENOTSUP, "%s cannot run the workload", program);
	}
	*ret = workload;
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
	int code;

	sigaction(SIGPIPE, &ignore, &old);
	code = dprintf(workload->to, "%s %llu\n", task, (unsigned long long)n) < 0
		       ? err__set(err, -EPIPE, "the workload has ended")
		       : read_line(workload, err);
	sigaction(SIGPIPE, &old, NULL);
	if (code)
		return code;
	if (sscanf(workload->line, "%llu %llu", &ns, &calls) != 2)
		return err__set(err, -EPIPE, "the workload gives no sensible answer");
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

/* --- finding them --- */

struct search {
	const struct kind *kind;
	struct interpreter *list;
	size_t n, most;
	char *tried[TRIED_MAX]; /* real paths, owned */
	size_t n_tried;
	struct err *err;
};

/* Was it not yet? */
static bool is_new(struct search *search, const char *path)
{
	char *real = realpath(path, NULL);

	for (size_t i = 0; real && i < search->n_tried; i++)
		if (!strcmp(search->tried[i], real)) {
			free(real);
			return false;
		}
	if (!real || search->n_tried == TRIED_MAX) {
		free(real);
		return false;
	}
	search->tried[search->n_tried++] = real;
	return true;
}

static bool is_complete(struct search *search, const char *path)
{
	const char *real = search->tried[search->n_tried - 1], *slash = strrchr(real, '/');
	char beside[PATH_MAX];

	if (!search->kind->beside)
		return true;
	snprintf(beside, sizeof(beside), "%.*s/%s", (int)(slash - real), real,
		 search->kind->beside);
	if (!access(beside, X_OK))
		return true;
	err__set(search->err, -ENOTSUP, "%s %s", path, search->kind->lacks);
	return false;
}

/* Starts it once, to see what it is. */
static void try_program(struct search *search, const char *path)
{
	struct interpreter one = { .runtime = search->kind->runtime };
	unsigned major = 0, minor = 0, patch = 0;
	struct workload *workload;
	char link[64], real[PATH_MAX];

	if (search->n == search->most || access(path, X_OK) || !is_new(search, path) ||
	    !is_complete(search, path) ||
	    start_program(path, search->kind, NULL, &workload, search->err))
		return;
	snprintf(one.version, sizeof(one.version), "%.31s", workload->line + strlen("READY "));
	/* What starts another program (a shim) is as good as that. */
	snprintf(link, sizeof(link), "/proc/%d/exe", workload->pid);
	if (!realpath(link, real))
		snprintf(real, sizeof(real), "%s", path);
	workload__stop(workload);
	if (strlen(real) >= sizeof(one.program) ||
	    sscanf(one.version, "%u.%u.%u", &major, &minor, &patch) < 1)
		return;
	strcpy(one.program, real);
	one.order =
		(min_of(major, 1000U) * 1000 + min_of(minor, 999U)) * 1000 + min_of(patch, 999U);
	for (size_t i = 0; i < search->n; i++)
		if (!strcmp(search->list[i].program, one.program))
			return;
	search->list[search->n++] = one;
	is_new(search, one.program);
}

static void try_pattern(struct search *search, const char *directory, const char *name)
{
	char pattern[PATH_MAX];
	glob_t paths;

	if (snprintf(pattern, sizeof(pattern), "%s/%s", directory, name) >= PATH_MAX ||
	    glob(pattern, 0, NULL, &paths))
		return;
	for (size_t i = 0; i < paths.gl_pathc; i++)
		if (!strstr(paths.gl_pathv[i], "-config"))
			try_program(search, paths.gl_pathv[i]);
	globfree(&paths);
}

/* Names with a '/' are looked for at home only, others in directories of PATH only. */
static void try_names(struct search *search, const char *directory, bool at_home)
{
	const char *const *names = search->kind->names;

	for (size_t i = 0; i < ARRAY_SIZE(search->kind->names) && names[i]; i++)
		if (!strchr(names[i], '/') == !at_home)
			try_pattern(search, directory, names[i]);
}

static int newer_first(const void *a, const void *b)
{
	const struct interpreter *x = a, *y = b;

	return x->order > y->order ? -1 : x->order < y->order;
}

size_t workload__find(const char *runtime, size_t most, struct interpreter *ret, struct err *err)
{
	struct search search = {
		.kind = find_kind(runtime), .list = ret, .most = most, .err = err
	};
	const char *home = getenv("HOME"), *path = getenv("PATH");
	char *directories, *rest, *directory;

	if (!search.kind) {
		err__set(err, -ENOTSUP, "no workload is bundled for %s", runtime);
		return 0;
	}
	err__set(err, -ENOENT, "%s", search.kind->missing);
	directories = rest = strdup(path ? path : "/usr/bin:/bin");
	while (rest && (directory = strsep(&rest, ":")))
		if (*directory)
			try_names(&search, directory, false);
	if (home)
		try_names(&search, home, true);
	free(directories);
	for (size_t i = 0; i < search.n_tried; i++)
		free(search.tried[i]);
	qsort(ret, search.n, sizeof(*ret), newer_first);
	return search.n;
}
