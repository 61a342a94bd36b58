// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/thread_stop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "core/base/util.h"
#include "core/target/restart.h"

#define HOLD_NS		 50000000ULL
#define USER32_CS	 0x23 /* __USER32_CS */
#define EVENT_OF(status) ((status) >> 16)

static int preceded_signal; /* signal whose delivery the stop preceded; 0: none */

/* Blocks SIGCHLD, which reports the stop and can be waited for only while blocked. */
static void block(sigset_t *ret_before)
{
	static const struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t child;

	sigaction(SIGCHLD, &usual, NULL); /* the parent of braid may have left it ignored */
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, ret_before);
}

/* Waits for a status of the thread. Returns 1; 0: none within HOLD_NS; or -ESRCH. */
static int wait_for(uint32_t tid, int *ret_status)
{
	uint64_t end_ns = now_ns() + HOLD_NS, now;
	sigset_t child;
	pid_t got;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	for (;;) {
		struct timespec left = {};

		got = waitpid(tid, ret_status, __WALL | WNOHANG);
		if (got)
			return got < 0 ? -ESRCH : 1;
		now = now_ns();
		if (now >= end_ns)
			return 0;
		left.tv_nsec = end_ns - now;
		sigtimedwait(&child, NULL, &left);
	}
}

static int read_registers(uint32_t tid, struct stopped_thread *ret)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs))
		return -errno;
	*ret = (struct stopped_thread) {
		.regs = { regs.rax, regs.rdx, regs.rcx, regs.rbx, regs.rsi, regs.rdi, regs.rbp,
			  regs.rsp, regs.r8, regs.r9, regs.r10, regs.r11, regs.r12, regs.r13,
			  regs.r14, regs.r15, regs.rip },
		.fs_base = regs.fs_base,
		.call = (int64_t)regs.orig_rax,
		.compat = regs.cs == USER32_CS,
	};
	return 0;
}

/* Repeats a call that returned EINTR because of the stop, as after a stop that the kernel itself
 * hides (include/linux/errno.h). If a handler runs first, the call still returns EINTR. */
#define ERESTARTNOHAND 514

static void repair(uint32_t tid)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs) || (int64_t)regs.rax != -EINTR ||
	    regs.cs == USER32_CS || !restart__may_repeat((int64_t)regs.orig_rax))
		return;
	regs.rax = -ERESTARTNOHAND;
	ptrace(PTRACE_SETREGS, tid, NULL, &regs);
}

/* Threads in an uninterruptible wait stay seized, as only a stopped thread can be detached. Each
 * stops when its wait ends, and is on this list until then. When this process ends, the kernel
 * detaches them. */
#define LEFT_MAX 256
static uint32_t left[LEFT_MAX];
static unsigned n_left;

static void leave(uint32_t tid)
{
	if (n_left < LEFT_MAX)
		left[n_left++] = tid;
}

void threads__let_go(void)
{
	int status;
	pid_t got;

	for (unsigned i = 0; i < n_left; i++) {
		got = waitpid(left[i], &status, __WALL | WNOHANG);
		if (!got)
			continue;
		if (got > 0 && WIFSTOPPED(status) && EVENT_OF(status) == PTRACE_EVENT_STOP)
			repair(left[i]);
		ptrace(PTRACE_DETACH, left[i], NULL, NULL);
		left[i--] = left[--n_left];
	}
}

int thread__hold(uint32_t tid, struct stopped_thread *ret)
{
	sigset_t before;
	int status, code;

	preceded_signal = 0;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return errno == EPERM ? -EPERM : -errno;
	block(&before);
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL)) {
		code = -errno;
		leave(tid); /* only a thread that stops or ends can be detached */
		goto out;
	}
	code = wait_for(tid, &status);
	if (!code) {
		leave(tid);
		code = -ETIMEDOUT;
		goto out;
	}
	if (code < 0 || !WIFSTOPPED(status)) {
		code = -ESRCH;
		goto out;
	}
	if (EVENT_OF(status) == PTRACE_EVENT_STOP)
		repair(tid);
	else
		preceded_signal = WSTOPSIG(status);
	code = read_registers(tid, ret);
	if (code)
		thread__release(tid);
	else
		ret->since_ns = now_ns();
out:
	sigprocmask(SIG_SETMASK, &before, NULL);
	return code;
}

void thread__release(uint32_t tid)
{
	ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)preceded_signal);
}
