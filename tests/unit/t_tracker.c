// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/tracker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/kernel/spaces.h"
#include "core/target/tracker_state.h"
#include "tests/tap.h"

/* Two neighbours, then a gap. */
static struct mapped mapped[] = { { .start = 0x1000, .end = 0x3000 },
				  { .start = 0x3000, .end = 0x4000 },
				  { .start = 0x8000, .end = 0x9000 } };

static const struct {
	uint64_t address;
	int at; /* -1: not found */
} cases[] = { { 0, -1 },     { 0xfff, -1 }, { 0x1000, 0 },  { 0x2fff, 0 },
	      { 0x3000, 1 }, { 0x3fff, 1 }, { 0x4000, -1 }, { 0x7fff, -1 },
	      { 0x8000, 2 }, { 0x8fff, 2 }, { 0x9000, -1 }, { UINT64_MAX, -1 } };

static void test_find(void)
{
	struct process process = { .mapped = mapped, .n_mapped = ARRAY_SIZE(mapped) };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct mapped *found = process__find(&process, cases[i].address);

		is_int(found ? found - mapped : -1, cases[i].at, "mapping of %#llx",
		       (unsigned long long)cases[i].address);
	}
	process.n_mapped = 0;
	ok(!process__find(&process, 0x1000), "nothing mapped");
}

#define NOBODY 0x7ffffff0 /* above the highest PID: no such process */

/* An exec makes another row of the recording, which shares no data with the previous program. */
static void test_exec(void)
{
	static const struct runtime *const none[] = { NULL };
	static const struct images_opts no_images = { .files_fd = -1, .runtimes = none };
	const struct rec_program rec = { .type = REC_EXEC,
					 .tgid = NOBODY,
					 .program = 3,
					 .command_len = 17,
					 .comm = "a\033name",
					 .command = "/bin/a\0-x\0\033[2J\0y" };
	struct tracker tracker = { .opts.runtimes = none, .targets_fd = -1, .last_serial = 7 };
	struct process process = { .pid = NOBODY,
				   .pidfd = -1,
				   .state = PROCESS_STARTING,
				   .serial = 5,
				   .mapped = calloc(1, sizeof(*process.mapped)),
				   .n_mapped = 1 };

	images__new(&no_images, &tracker.opts.images);
	ok(!tracker__on_exec(&tracker, &process, &rec), "exec");
	is_str(process.info.name, "a?name", "its name, which cannot steer a terminal");
	is_str(process.info.command, "/bin/a -x ?[2J y", "its arguments");
	is_int(process.program, 3, "its number");
	is_int(process.serial, 8,
	       "it is another one: nothing that is kept under its old number is its own");
	is_int(process.n_mapped, 0, "nothing is mapped");
	is_int(process.state, PROCESS_NEW, "it has begun");
	images__free(tracker.opts.images);
}

/* Returns true if process__enter() refuses the transition, by an assertion. */
static bool is_refused(struct process from, enum process_state to)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		const struct rlimit none = {};

		setrlimit(RLIMIT_CORE, &none);
		freopen("/dev/null", "w", stderr);
		process__enter(&from, to);
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGABRT;
}

static void test_states(void)
{
	struct space space = {};
	struct process process = {};

	process__hold(&process);
	is_int(process.state, PROCESS_HELD, "a new process is held at its exec");
	ok(is_refused(process, PROCESS_STARTING), "a held process cannot start again");
	ok(is_refused(process, PROCESS_PUBLISHED), "a process is known by its space only");
	process__let_run(&process);
	is_int(process.state, PROCESS_NEW, "released before its mappings are known");
	process__hold(&process);
	process__take_space(&process, &space);
	is_int(process.state, PROCESS_HELD, "mappings do not release it");
	process__let_run(&process);
	is_int(process.state, PROCESS_PUBLISHED, "released with its mappings");
	ok(is_refused(process, PROCESS_NEW), "a process with a space is not new");
	process__enter(&process, PROCESS_ENDING);
	process__hold(&process);
	process__let_run(&process);
	is_int(process.state, PROCESS_ENDING, "the tracer does not revive a process");
	for (int state = 0; state < PROCESS_STATES; state++)
		ok(state == PROCESS_ENDED || is_refused(process, state), "ENDING to %d: refused",
		   state);
	process__enter(&process, PROCESS_ENDED);
	for (int state = 0; state < PROCESS_STATES; state++)
		ok(is_refused(process, state), "GONE to %d: refused", state);
}

/* A late record of an exec finds a process that was already marked as ended. */
static void test_late_exec(void)
{
	static const struct runtime *const none[] = { NULL };
	static const struct images_opts no_images = { .files_fd = -1, .runtimes = none };
	const struct rec_program rec = { .type = REC_EXEC, .tgid = NOBODY, .program = 3 };
	struct tracker tracker = { .opts.runtimes = none, .targets_fd = -1 };
	struct process process = { .pid = NOBODY, .pidfd = -1, .state = PROCESS_ENDING };

	images__new(&no_images, &tracker.opts.images);
	ok(!tracker__on_exec(&tracker, &process, &rec), "exec of a process that is ending");
	is_int(process.state, PROCESS_ENDING, "it is ending still");
	process.state = PROCESS_HELD;
	ok(!tracker__on_exec(&tracker, &process, &rec), "exec of a process that is held at it");
	is_int(process.state, PROCESS_HELD, "it is held");
	images__free(tracker.opts.images);
}

int main(void)
{
	test_states();
	test_late_exec();
	test_find();
	test_exec();
	return tap__done();
}
