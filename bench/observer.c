// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/observer.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/record/session.h"
#include "core/target/child.h"

/* A report of the child: one when all is attached, and one at the end. */
struct message {
	int code; /* 0, or the errno of a failure, with the reason in @err */
	struct err err;
	int command_pid;
	uint64_t start_ns;
	struct observation observation;
};

struct observer {
	pid_t pid;		   /* process ID of the child, and its process group */
	int fd;			   /* receives messages */
	int command_pidfd;	   /* readable when the command ended; -1: none */
	uint64_t start_ns, end_ns; /* times of the command; end 0: not seen */
};

/* ----- in the child ----- */

static double cpu_s(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static uint64_t resident_bytes(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss * 1024ULL;
}

/* Returns the kernel memory of the BPF maps and programs that this process has open, in bytes. */
static uint64_t bpf_bytes(void)
{
	char line[128];
	uint64_t sum = 0;
	glob_t paths;

	if (glob("/proc/self/fdinfo/*", 0, NULL, &paths))
		return 0;
	for (size_t i = 0; i < paths.gl_pathc; i++) {
		FILE *file = fopen(paths.gl_pathv[i], "re");
		unsigned long long bytes;

		while (file && fgets(line, sizeof(line), file))
			if (sscanf(line, "memlock: %llu", &bytes) == 1)
				sum += bytes;
		if (file)
			fclose(file);
	}
	globfree(&paths);
	return sum;
}

static void on_source(void *ctx, struct process *process, const struct runtime *runtime,
		      const char *version, const char *source, const char *reason)
{
	struct observation *observation = ctx;
	struct observed_source *free_slot = &observation->sources[observation->n_sources], one = {};

	(void)process;
	snprintf(one.runtime, sizeof(one.runtime), "%s", runtime->name);
	snprintf(one.version, sizeof(one.version), "%s", version);
	snprintf(one.source, sizeof(one.source), "%s", source);
	snprintf(one.reason, sizeof(one.reason), "%s", reason);
	for (size_t i = 0; i < observation->n_sources; i++)
		if (!memcmp(&observation->sources[i], &one, sizeof(one)))
			return;
	if (observation->n_sources < OBSERVED_SOURCES_MAX) {
		*free_slot = one;
		observation->n_sources++;
	}
}

static bool ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), end_size = strlen(end);

	return size >= end_size && !strcmp(text + size - end_size, end);
}

static int count_calls(struct session *session, const char *callee, uint64_t *ret_value,
		       struct err *err)
{
	struct profile *profile;
	int ret = session__calls(session, false, &profile, err);

	for (size_t i = 1; !ret && i < profile->n_nodes; i++) {
		const struct profile_node *node = &profile->nodes[i];
		const char *name = strtab__get(profile->strings, profile->frames[node->frame].name);

		if (!callee || ends_with(name, callee))
			*ret_value += node->calls;
	}
	if (!ret)
		profile__free(profile);
	return ret;
}

static void report(int fd, const struct message *message)
{
	const char *from = (const char *)message;
	size_t left = sizeof(*message);

	while (left) {
		ssize_t n = write(fd, from, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return; /* the parent closed the pipe */
		from += n;
		left -= n;
	}
}

static void observe(const struct observer_opts *opts, int fd, struct message *message)
{
	struct observation *observation = &message->observation;
	bool calls = opts->source == RUNTIME_SOURCE_CALLS;
	struct session_opts session_opts = {
		.runtimes = opts->runtimes,
		.enabled = opts->enabled,
		.pids = &opts->pid,
		.n_pids = !opts->command,
		.command = opts->command,
		.duration_s = opts->duration_s,
		.unwind = opts->unwind,
		.frequency_hz = calls ? 1 : opts->frequency_hz,
		.source = opts->source,
		.on_source = on_source,
		.ctx = observation,
	};
	struct session_summary summary;
	struct session *session;
	struct err err = {};
	int finished;

	message->code = session__open(&session_opts, &session, &message->err);
	message->command_pid = message->code ? 0 : session__command_pid(session);
	message->start_ns = now_ns();
	report(fd, message);
	if (message->code)
		return;
	observation->run_cpu_s = cpu_s(RUSAGE_SELF);
	message->code = session__run(session, &message->err);
	observation->run_cpu_s = cpu_s(RUSAGE_SELF) - observation->run_cpu_s;
	observation->memory_bytes = bpf_bytes();
	finished = session__finish(session, &summary, &err);
	if (!message->code && finished) {
		message->code = finished;
		message->err = err;
	}
	observation->duration_s = summary.duration_s;
	observation->samples = summary.stats->samples;
	observation->complete = summary.stats->complete;
	observation->lost = summary.counters[COUNT_RING_FULL] + summary.counters[COUNT_SCRATCH];
	observation->sampler_runs = summary.sampler_runs;
	observation->sampler_ns = summary.sampler_ns;
	observation->command_status = summary.command_status;
	if (!message->code && calls)
		message->code =
			count_calls(session, opts->callee, &observation->calls, &message->err);
	session__free(session);
}

/* Waits until the command ended or a signal arrived. */
static void wait_for(struct child *child, int *ret_status)
{
	int pidfd = syscall(SYS_pidfd_open, child->pid, 0);
	sigset_t signals;
	struct pollfd polled[2] = { { .fd = pidfd, .events = POLLIN },
				    { .fd = -1, .events = POLLIN } };

	sigprocmask(SIG_BLOCK, NULL, &signals);
	polled[1].fd = signalfd(-1, &signals, SFD_CLOEXEC);
	while (poll(polled, 2, -1) < 0 && errno == EINTR)
		;
	if (polled[0].revents & POLLIN || pidfd < 0)
		waitpid(child->pid, ret_status, 0);
	close_fd(&polled[0].fd);
	close_fd(&polled[1].fd);
}

/* Runs the command alone, started in the same way as by a session. */
static void run_only(const struct observer_opts *opts, int fd, struct message *message)
{
	struct child child = CHILD_NONE;

	message->code = child__fork(&child, &(struct child_opts) { .command = opts->command },
				    &message->err);
	if (!message->code)
		message->code = child__exec(&child, opts->command[0], -1, &message->err);
	if (!message->code)
		hold__release(&child.hold);
	message->command_pid = child.pid;
	message->start_ns = now_ns();
	report(fd, message);
	if (message->code)
		return;
	wait_for(&child, &message->observation.command_status);
	message->observation.duration_s = (now_ns() - message->start_ns) / 1e9;
}

static void become_leader(pid_t parent)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP); /* these signals end sessions */
	sigaddset(&signals, SIGPIPE);
	sigprocmask(SIG_SETMASK, &signals, NULL);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
}

static void __attribute__((noreturn))
run_child(const struct observer_opts *opts, int fd, pid_t parent)
{
	struct message message = {};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	become_leader(parent);
	if (opts->command && (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0))
		_exit(1);
	if (opts->nothing)
		run_only(opts, fd, &message);
	else
		observe(opts, fd, &message);
	message.observation.own_cpu_s = cpu_s(RUSAGE_SELF);
	message.observation.command_cpu_s = cpu_s(RUSAGE_CHILDREN);
	message.observation.memory_bytes += resident_bytes();
	report(fd, &message);
	if (getppid() != parent) /* the parent is gone and cannot end the command */
		kill(0, SIGKILL);
	_exit(0);
}

/* ----- in the parent ----- */

/* Ends the child and the rest of the command. Frees the observer. */
static void end(struct observer *observer)
{
	kill(-observer->pid, SIGKILL);
	kill(observer->pid, SIGKILL); /* the child may not lead its group yet */
	while (waitpid(observer->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close_fd(&observer->fd);
	close_fd(&observer->command_pidfd);
	free(observer);
}

static int receive(const struct observer *observer, struct message *ret, struct err *err)
{
	char *to = (char *)ret;
	size_t left = sizeof(*ret);

	while (left) {
		ssize_t n = read(observer->fd, to, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err__set(err, -ECHILD, "the measured command crashed");
		to += n;
		left -= n;
	}
	if (ret->code)
		*err = ret->err;
	return ret->code;
}

int observer__start(const struct observer_opts *opts, struct observer **ret_observer,
		    struct err *err)
{
	struct observer *observer = calloc(1, sizeof(*observer));
	struct message message;
	pid_t parent = getpid();
	int fds[2], ret;

	if (!observer || pipe2(fds, O_CLOEXEC)) {
		free(observer);
		return err__set(err, -ENOMEM, "cannot begin to measure: no memory, or no files");
	}
	fflush(NULL);
	observer->pid = fork();
	if (!observer->pid)
		run_child(opts, fds[1], parent);
	close(fds[1]);
	observer->fd = fds[0];
	observer->command_pidfd = -1;
	if (observer->pid < 0) {
		ret = err__set(err, -errno, "cannot fork: %s", strerror(errno));
		close(fds[0]);
		free(observer);
		return ret;
	}
	ret = receive(observer, &message, err);
	if (ret) {
		end(observer);
		return ret;
	}
	observer->start_ns = message.start_ns;
	if (message.command_pid)
		observer->command_pidfd = syscall(SYS_pidfd_open, message.command_pid, 0);
	*ret_observer = observer;
	return 0;
}

int observer__wait(struct observer *observer, int signal_fd, struct observation *ret_observation,
		   struct err *err)
{
	struct message message;
	int ret = 0;

	for (;;) {
		struct pollfd polled[] = {
			{ .fd = observer->fd, .events = POLLIN },
			{ .fd = observer->command_pidfd, .events = POLLIN },
			{ .fd = signal_fd, .events = POLLIN },
		};

		if (poll(polled, ARRAY_SIZE(polled), -1) < 0)
			continue;
		if (polled[2].revents) {
			ret = err__set(err, -EINTR, "interrupted");
			break;
		}
		if (polled[1].revents) {
			observer->end_ns = now_ns();
			close_fd(&observer->command_pidfd);
		}
		if (polled[0].revents)
			break;
	}
	if (!ret)
		ret = receive(observer, &message, err);
	if (!ret)
		*ret_observation = message.observation;
	/* The session finishes the recording after the command ended, so the duration is that of
	 * the command. */
	if (!ret && observer->end_ns)
		ret_observation->duration_s = (observer->end_ns - observer->start_ns) / 1e9;
	end(observer);
	return ret;
}

int observer__stop(struct observer *observer, struct observation *ret, struct err *err)
{
	kill(observer->pid, SIGTERM);
	return observer__wait(observer, -1, ret, err);
}

const struct observed_source *observation__source(const struct observation *observation,
						  const char *runtime)
{
	for (size_t i = 0; i < observation->n_sources; i++)
		if (!strcmp(observation->sources[i].runtime, runtime))
			return &observation->sources[i];
	return NULL;
}
