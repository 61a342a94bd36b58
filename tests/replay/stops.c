// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/replay/stops.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/target/procfs.h"

struct thread {
	pid_t tid;
	bool stopped;
	bool marked; /* stopped at the marker, which is not reported yet */
	int signo;   /* signal to be delivered when the thread continues */
};

struct stops {
	pid_t pid; /* pid of the command */
	struct thread *list;
	size_t n, cap;
};

#define OPTIONS                                                                                   \
	(PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | \
	 PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)

static struct thread *find(struct stops *stops, pid_t tid)
{
	for (size_t i = 0; i < stops->n; i++)
		if (stops->list[i].tid == tid)
			return &stops->list[i];
	if (array__reserve(&stops->list, &stops->cap, stops->n + 1, sizeof(*stops->list)))
		abort();
	stops->list[stops->n] = (struct thread) { .tid = tid };
	return &stops->list[stops->n++];
}

static void forget(struct stops *stops, pid_t tid)
{
	for (size_t i = 0; i < stops->n; i++)
		if (stops->list[i].tid == tid)
			stops->list[i--] = stops->list[--stops->n];
}

/* Installs a filter that stops only at the marker. All other code runs at full speed. */
static void filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(code), code };

	/* Needs no PR_SET_NO_NEW_PRIVS, as the recorder is root. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(126);
}

int stops__start(char *const *command, struct stops **ret, struct err *err)
{
	struct stops *stops = calloc(1, sizeof(*stops));
	int go[2];
	char byte = 0;

	if (!stops || pipe2(go, O_CLOEXEC))
		return err__set(err, -ENOMEM, "out of memory");
	stops->pid = fork();
	if (!stops->pid) {
		if (read(go[0], &byte, 1) != 1)
			_exit(125);
		filter();
		execvp(command[0], command);
		_exit(127);
	}
	close(go[0]);
	if (stops->pid < 0 || ptrace(PTRACE_SEIZE, stops->pid, NULL, OPTIONS)) {
		close(go[1]);
		return err__set(err, -errno, "cannot trace: %s", strerror(errno));
	}
	find(stops, stops->pid);
	byte = (char)write(go[1], "", 1);
	close(go[1]);
	*ret = stops;
	return 0;
}

static void go_on(struct thread *thread, int how)
{
	thread->stopped = false;
	ptrace(how, thread->tid, NULL, (void *)(intptr_t)thread->signo);
	thread->signo = 0;
}

/* Clears the trap flag. A thread that was stepped over a `pushf` has the flag on its stack. Its
 * `popf` would begin to step again, endlessly. */
#define TRAP_FLAG 0x100

static void end_steps(pid_t tid)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs) || !(regs.eflags & TRAP_FLAG))
		return;
	regs.eflags &= ~(unsigned long long)TRAP_FLAG;
	ptrace(PTRACE_SETREGS, tid, NULL, &regs);
}

/* Takes one event. Returns false if no further event can occur. */
static bool take_event(struct stops *stops, int flags, struct thread **ret)
{
	int status, event;
	pid_t tid;

	*ret = NULL;
	do
		tid = waitpid(-1, &status, __WALL | flags);
	while (tid < 0 && errno == EINTR);
	if (tid <= 0)
		return tid == 0;
	if (!WIFSTOPPED(status)) {
		forget(stops, tid);
		return true;
	}
	*ret = find(stops, tid);
	(*ret)->stopped = true;
	event = status >> 16;
	if (event == PTRACE_EVENT_SECCOMP)
		(*ret)->marked = true;
	else if (!event && WSTOPSIG(status) == SIGTRAP)
		end_steps(tid);
	else if (!event)
		(*ret)->signo = WSTOPSIG(status);
	return true;
}

static struct thread *find_marked(struct stops *stops)
{
	for (size_t i = 0; i < stops->n; i++)
		if (stops->list[i].marked)
			return &stops->list[i];
	return NULL;
}

static void stop_all(struct stops *stops)
{
	struct thread *thread;
	bool running = true;

	for (size_t i = 0; i < stops->n; i++)
		if (!stops->list[i].stopped)
			ptrace(PTRACE_INTERRUPT, stops->list[i].tid, NULL, NULL);
	while (running) {
		running = false;
		for (size_t i = 0; i < stops->n; i++)
			running |= !stops->list[i].stopped;
		if (running && !take_event(stops, 0, &thread))
			return;
	}
}

static void release_all(struct stops *stops)
{
	for (size_t i = 0; i < stops->n; i++)
		if (stops->list[i].stopped && !stops->list[i].marked)
			go_on(&stops->list[i], PTRACE_CONT);
}

static pid_t process_of(pid_t tid)
{
	char path[64], line[128];
	pid_t pid = 0;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	in = fopen(path, "re");
	while (in && !pid && fgets(line, sizeof(line), in))
		sscanf(line, "Tgid: %d", &pid);
	if (in)
		fclose(in);
	return pid;
}

pid_t stops__find(const struct stops *stops, const char *program)
{
	char path[64], comm[32];

	for (size_t i = 0; i < stops->n; i++) {
		pid_t pid = process_of(stops->list[i].tid);
		FILE *in;

		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		in = fopen(path, "re");
		if (!in || !fgets(comm, sizeof(comm), in))
			comm[0] = '\0';
		if (in)
			fclose(in);
		comm[strcspn(comm, "\n")] = '\0';
		if (!strcmp(comm, program))
			return pid;
	}
	return 0;
}

int stops__next(struct stops *stops, pid_t *ret_pid, pid_t *ret_tid)
{
	struct thread *thread, *marked;

	while (!(marked = find_marked(stops))) {
		release_all(stops);
		/* The recorder may have children that are not traced: core/files/target_helper.h.
		 */
		if (!stops->n || !take_event(stops, 0, &thread))
			return 0;
	}
	stop_all(stops);
	marked = find_marked(stops); /* the list may have moved */
	if (!marked)
		return stops__next(stops, ret_pid, ret_tid);
	marked->marked = false;
	*ret_tid = marked->tid;
	*ret_pid = process_of(marked->tid);
	return 1;
}

#define SLICE_US 500

/* Any other stop of a thread must be taken before the thread is interrupted. Otherwise the stopped
 * thread would be interrupted when it continues, and not move. */
bool stops__run_for(struct stops *stops, unsigned us)
{
	struct thread *thread;

	while (us && stops->n && !find_marked(stops)) {
		unsigned slice = min_of(us, SLICE_US);

		release_all(stops);
		nanosleep(&(struct timespec) { .tv_nsec = slice * 1000 }, NULL);
		while (take_event(stops, WNOHANG, &thread) && thread)
			;
		us -= slice;
	}
	stop_all(stops);
	return stops->n && !find_marked(stops);
}

#define STEP_TRIES 1000

bool stops__step(struct stops *stops, pid_t tid, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct thread *thread = find(stops, tid), *event = NULL;

		go_on(thread, PTRACE_SINGLESTEP);
		for (int k = 0; k < STEP_TRIES && !find(stops, tid)->stopped; k++) {
			if (!take_event(stops, WNOHANG, &event))
				return false;
			if (!event)
				nanosleep(&(struct timespec) { .tv_nsec = 10000 }, NULL);
		}
		if (!find(stops, tid)->stopped) {
			stop_all(stops);
			return false;
		}
		if (find_marked(stops))
			return false;
	}
	return true;
}

bool stops__thread(pid_t pid, pid_t tid, struct host_thread *ret)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs))
		return false;
	*ret = (struct host_thread) {
		.tgid = pid,
		.tid = tid,
		.regs = { regs.rax, regs.rdx, regs.rcx, regs.rbx, regs.rsi, regs.rdi, regs.rbp,
			  regs.rsp, regs.r8, regs.r9, regs.r10, regs.r11, regs.r12, regs.r13,
			  regs.r14, regs.r15, regs.rip },
		.fs_base = regs.fs_base,
		.start_stack = procfs__start_stack(pid),
		.name = "thread",
	};
	return true;
}

void stops__end(struct stops *stops)
{
	struct thread *thread;

	if (!stops)
		return;
	kill(stops->pid, SIGKILL);
	for (size_t i = 0; i < stops->n; i++)
		kill(process_of(stops->list[i].tid), SIGKILL);
	while (stops->n && take_event(stops, 0, &thread))
		if (thread)
			go_on(thread, PTRACE_CONT);
	free(stops->list);
	free(stops);
}
