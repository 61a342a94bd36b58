// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel half built for the host reads a core file as it reads a live process: a python3 that
 * waits gives the same stack in both, frame by frame. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/files/memory_core.h"
#include "core/profile/profile.h"
#include "core/target/procfs.h"
#include "tests/replay/pipeline.h"
#include "tests/replay/stops.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

static const char script[] = "import os\n"
			     "class Outer:\n"
			     "    def method(self):\n"
			     "        return sorted([1], key=lambda n: inner(n))\n"
			     "def inner(n):\n"
			     "    print('READY', flush=True)\n"
			     "    os.read(0, n)\n"
			     "Outer().method()\n";

/* The script's functions, outermost first. */
static const char *const functions[] = { "<module>", "Outer.method",
					 "Outer.method.<locals>.<lambda>", "inner" };
static const unsigned lines[] = { 8, 4, 4, 7 };

static pid_t start(void)
{
	int in[2], out[2];
	char byte;
	pid_t pid;

	if (pipe(in) || pipe(out))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		close(in[1]);
		close(out[0]);
		execlp("python3", "python3", "-S", "-c", script, NULL);
		_exit(1);
	}
	close(out[1]);
	return read(out[0], &byte, 1) == 1 ? pid : -1; /* it reaches os.read soon */
}

/* Reads the registers of the process while it waits in a system call that no event ends. */
static bool take_registers(pid_t pid, struct host_thread *ret)
{
	bool good = false;

	for (int i = 0; i < 1000 && !good; i++) {
		struct procfs_info info;

		good = !procfs__info(pid, &info, NULL) && info.state == 'S';
		usleep(good ? 0 : 10000);
	}
	if (!good || ptrace(PTRACE_SEIZE, pid, NULL, NULL) ||
	    ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) || waitpid(pid, NULL, __WALL) != pid)
		return false;
	good = stops__thread(pid, pid, ret);
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return good;
}

static bool run(const struct host_thread *thread, const struct memory *memory,
		struct pipeline_stack *ret)
{
	struct procfs_source source = { "/proc", memory };
	struct pipeline_input input = { .thread = *thread, .memory = memory, .work = workdir };
	struct pipeline *pipeline = NULL;
	struct err err = {};
	bool good;

	procfs__use(&source);
	good = !pipeline__new(&pipeline) && !pipeline__run(pipeline, &input, ret, &err);
	pipeline__free(pipeline);
	procfs__use(NULL);
	if (!good)
		tap__diag("%s", err.text);
	return good;
}

static void check_script(const struct pipeline_stack *stack, const char *what)
{
	size_t n = 0;

	for (size_t i = 0; i < stack->n_frames; i++) {
		const struct pipeline_frame *frame = &stack->frames[i];

		if (frame->kind < KIND_RUNTIME)
			continue;
		if (n < 4) {
			is_str(frame->name, functions[n], "%s: frame %zu", what, n);
			is_int(frame->line, lines[n], "%s: its line", what);
		}
		n++;
	}
	is_int(n, 4, "%s: no other frame", what);
}

static void compare(const struct pipeline_stack *live, const struct pipeline_stack *core)
{
	bool same = live->n_natives == core->n_natives && live->n_frames == core->n_frames &&
		    live->flags == core->flags;

	for (size_t i = 0; same && i < live->n_natives; i++)
		same = !strcmp(live->natives[i].image, core->natives[i].image) &&
		       live->natives[i].vaddr == core->natives[i].vaddr &&
		       live->natives[i].cfa == core->natives[i].cfa;
	ok(same && live->n_natives > 8, "the same %zu native frames", live->n_natives);
	for (size_t i = 0; same && i < live->n_frames; i++) {
		same = !strcmp(live->frames[i].label, core->frames[i].label) &&
		       live->frames[i].hidden == core->frames[i].hidden;
		if (!same)
			tap__diag("live: %s, core: %s", live->frames[i].label,
				  core->frames[i].label);
	}
	ok(same, "the same %zu frames", live->n_frames);
}

int main(void)
{
	struct pipeline_stack live = {}, core = {};
	struct memory *of_live = NULL, *of_core = NULL;
	struct host_thread thread;
	struct err err = {};
	char text[512];
	pid_t pid;

	workdir__make();
	pid = start();
	if (!ok(pid > 0 && take_registers(pid, &thread), "python3 waits"))
		return tap__done();
	snprintf(text, sizeof(text), "cd '%s' && gcore -o core %d >log 2>&1", workdir, pid);
	ok(system(text) == 0, "gcore makes a core file");
	memory__of_process(pid, &of_live);
	snprintf(text, sizeof(text), "%s/core.%d", workdir, pid);
	if (!ok(!memory__of_core(open(text, O_RDONLY | O_CLOEXEC), text, &of_core, &err),
		"it can be read"))
		return tap__done();
	if (ok(run(&thread, of_live, &live), "a sample of the process") &&
	    ok(run(&thread, of_core, &core), "a sample of the core file")) {
		check_script(&live, "live");
		check_script(&core, "core");
		compare(&live, &core);
	}
	pipeline__done(&live);
	pipeline__done(&core);
	memory__free(of_live);
	memory__free(of_core);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return tap__done();
}
