// SPDX-License-Identifier: GPL-2.0-or-later
/* Options of a JVM as read from its process. The test plays the JVM: it executes itself with a
 * command line and an environment, and waits. */
#include "runtimes/jvm/jvm_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/util.h"
#include "tests/tap.h"

#define OFF "-XX:+DisableAttachMechanism"
#define ON  "-XX:-DisableAttachMechanism"

static bool is_disabled(char *const *command, const char *variable)
{
	char *const environment[] = { "OTHER_JAVA_TOOL_OPTIONS=" OFF, (char *)variable,
				      "Z=", NULL };
	struct jvm_process process;
	bool disabled = false;
	int pid, ready[2];
	char byte;

	if (pipe2(ready, O_CLOEXEC))
		exit(1);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execve("/proc/self/exe", command, environment);
		_exit(1);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1)) /* closed by exec */
		exit(1);
	close(ready[0]);
	if (ok(!jvm_process__open(pid, &process, NULL), "options: opened")) {
		is_int(process.ns_pid, pid, "options: its own PID");
		disabled = jvm_process__is_attach_disabled(&process);
		jvm_process__close(&process);
		jvm_process__close(&process);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return disabled;
}

static void test_options(void)
{
	static const struct {
		const char *variable;
		bool disabled;
		char *command[8];
	} cases[] = {
		{ "A=", false, { "java", "-cp", "x", "Main" } },
		{ "A=", true, { "java", "-cp", "x", OFF, "Main" } },
		{ "A=", false, { "java", OFF, ON, "Main" } },
		{ "A=", true, { "java", ON, "--add-modules", "all", OFF, "Main" } },
		{ "A=", true, { "java", "@file", OFF, "-jar", "x.jar" } },
		{ "A=", false, { "java", "-cp", "x", "Main", OFF } },
		{ "A=", false, { "java", "-jar", "x.jar", OFF } },
		{ "A=", false, { "java" } },
		{ "A=", false, { OFF } },
		{ "JAVA_TOOL_OPTIONS=-Xmx1g " OFF, true, { "java", "Main" } },
		{ "JAVA_TOOL_OPTIONS=" OFF "x", false, { "java", "Main" } },
		{ "JDK_JAVA_OPTIONS=" OFF, true, { "java", "Main" } },
		{ "JAVA_TOOL_OPTIONS=" OFF, false, { "java", ON, "Main" } },
		{ "_JAVA_OPTIONS=" ON, false, { "java", OFF, "Main" } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		is_int(is_disabled(cases[i].command, cases[i].variable), cases[i].disabled,
		       "options %zu", i);
}

static void test_phase(void)
{
	struct jvm_process process;
	struct jvm_phase phase;
	int pid;

	signal(SIGQUIT, SIG_DFL); /* a background job of a shell ignores SIGQUIT */
	pid = fork();
	while (!pid)
		pause();
	if (!ok(!jvm_process__open(pid, &process, NULL), "phase: opened"))
		return;
	is_int(process.uid, geteuid(), "phase: its user");
	is_int(process.gid, getegid(), "phase: its group");
	is_int(jvm_process__phase(&process, &phase), 0, "phase: of a process that waits");
	ok(!phase.is_stopped && !phase.catches_quit && !phase.has_quit_pending &&
		   !phase.has_dispatcher && !phase.is_started,
	   "phase: it is no JVM");
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	kill(pid, SIGQUIT);
	is_int(jvm_process__phase(&process, &phase), 0, "phase: of one that is stopped");
	ok(phase.is_stopped && phase.has_quit_pending, "phase: it is, with SIGQUIT pending");
	kill(pid, SIGKILL);
	waitid(P_PID, pid, NULL, WEXITED | WNOWAIT);
	is_int(jvm_process__phase(&process, &phase), -ESRCH, "phase: of a zombie");
	waitpid(pid, NULL, 0);
	is_int(jvm_process__phase(&process, &phase), -ESRCH, "phase: of one that has ended");
	jvm_process__close(&process);
	is_int(jvm_process__open(pid, &process, NULL), -ESRCH, "phase: it cannot be opened");
}

int main(void)
{
	if (getenv("Z")) /* executed by is_disabled */
		for (;;)
			pause();
	test_options();
	test_phase();
	return tap__done();
}
