// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/hold.h"

#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/target/procfs.h"
#include "core/target/restart.h"
#include "core/target/thread_base.h"
#include "core/target/threads.h"

#define OPTIONS	    (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC)
#define FOLLOWING   (OPTIONS | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK)
#define SYSCALL_SIG (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */

/* Limits of the data that a process can make braid read. */
#define PROGRAM_HEADERS_MAX 64
#define DYNAMIC_MAX	    512

/* Maximum number of system calls of a linker (about those for a thousand libraries). After more, it
 * does not count as a linker. */
#define CALLS_MAX 100000

#define STOP_MS 100 /* time for a running process to stop */

#define ARCH_SET_FS 0x1002 /* asm/prctl.h */

/* --- the dynamic linker --- */

struct auxv {
	uint64_t base, headers, n_headers;
};

static int read_auxv(int pid, struct auxv *ret)
{
	uint64_t pair[2];
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (fread(pair, sizeof(pair), 1, file) == 1)
		if (pair[0] == AT_BASE)
			ret->base = pair[1];
		else if (pair[0] == AT_PHDR)
			ret->headers = pair[1];
		else if (pair[0] == AT_PHNUM)
			ret->n_headers = pair[1];
	fclose(file);
	return 0;
}

/* Returns the address of DT_DEBUG's value in the program's dynamic section; 0: there is none. */
static uint64_t find_debug(int pid, uint64_t dynamic, uint64_t bytes)
{
	size_t n = min_of(bytes / sizeof(Elf64_Dyn), (uint64_t)DYNAMIC_MAX), i;
	Elf64_Dyn list[DYNAMIC_MAX];

	if (!procfs__read_memory(pid, dynamic, list, n * sizeof(*list)))
		return 0;
	for (i = 0; i < n && list[i].d_tag != DT_NULL; i++)
		if (list[i].d_tag == DT_DEBUG)
			return dynamic + i * sizeof(*list) + offsetof(Elf64_Dyn, d_un);
	return 0;
}

static void read_headers(struct hold *hold, const struct auxv *auxv)
{
	size_t n = min_of(auxv->n_headers, (uint64_t)PROGRAM_HEADERS_MAX), i;
	Elf64_Phdr headers[PROGRAM_HEADERS_MAX];
	const Elf64_Phdr *dynamic = NULL, *relro = NULL;
	uint64_t bias = 0;

	if (!n || !procfs__read_memory(hold->pid, auxv->headers, headers, n * sizeof(*headers)))
		return;
	for (i = 0; i < n; i++)
		if (headers[i].p_type == PT_PHDR)
			bias = auxv->headers - headers[i].p_vaddr;
		else if (headers[i].p_type == PT_DYNAMIC)
			dynamic = &headers[i];
		else if (headers[i].p_type == PT_GNU_RELRO)
			relro = &headers[i];
	if (dynamic)
		hold->debug_at = find_debug(hold->pid, bias + dynamic->p_vaddr, dynamic->p_memsz);
	if (!relro)
		return;
	hold->relro_end = bias + relro->p_vaddr + relro->p_memsz;
	hold->relro_start = (bias + relro->p_vaddr) & ~(uint64_t)(sysconf(_SC_PAGESIZE) - 1);
}

/* Finds the linker's code: the first executable mapping at or above AT_BASE. */
static void find_linker(struct hold *hold)
{
	struct procfs_mappings mappings = {};
	struct auxv auxv = {};

	hold->is_valid = true;
	hold->linker_start = hold->linker_end = hold->debug_at = 0;
	hold->relro_start = hold->relro_end = 0;
	hold->n_calls = hold->n_maps = hold->n_pointers = 0;
	if (read_auxv(hold->pid, &auxv) || !auxv.base || procfs__mappings(hold->pid, &mappings))
		return;
	for (size_t i = 0; i < mappings.n && !hold->linker_end; i++)
		if (mappings.list[i].start >= auxv.base && !mappings.list[i].anonymous) {
			hold->linker_start = mappings.list[i].start;
			hold->linker_end = mappings.list[i].end;
		}
	procfs_mappings__done(&mappings);
	read_headers(hold, &auxv);
}

/* struct r_debug of <link.h>, in which dynamic linkers report to debuggers. */
struct link_report {
	int32_t version, pad;
	uint64_t map, breakpoint;
	int32_t state, pad2;
};

#define LINK_CONSISTENT 0 /* RT_CONSISTENT */

/* Returns true if the linker has reported that everything is linked. Before that it runs no
 * constructor. */
static bool has_linked(const struct hold *hold)
{
	struct link_report report;
	uint64_t at;

	return procfs__read_memory(hold->pid, hold->debug_at, &at, sizeof(at)) && at &&
	       procfs__read_memory(hold->pid, at, &report, sizeof(report)) && report.version > 0 &&
	       report.map && report.state == LINK_CONSISTENT;
}

/* --- stops --- */

static bool maps_code(const struct __ptrace_syscall_info *call)
{
	return call->entry.nr == SYS_mmap && call->entry.args[2] & PROT_EXEC &&
	       (int)call->entry.args[4] >= 0;
}

/* Returns true at the system call that follows the mapping of all libraries.
 *
 * The size of thread-local storage is fixed when all libraries are mapped. The thread pointer is
 * set before they are relocated, as relocations may need it. A linker that is the C library itself
 * (musl) sets an early thread pointer first, and may set no other. The program is relocated after
 * its libraries, and then its RELRO range is protected. */
static bool has_mapped_all(struct hold *hold, const struct __ptrace_syscall_info *call)
{
#ifdef __x86_64__
	if (call->entry.nr == SYS_arch_prctl && call->entry.args[0] == ARCH_SET_FS)
		return hold->n_pointers++ || hold->n_maps;
#endif
	return call->entry.nr == SYS_mprotect && call->entry.args[2] == PROT_READ &&
	       call->entry.args[0] >= hold->relro_start && call->entry.args[0] < hold->relro_end;
}

static bool is_left(const struct hold *hold, const struct __ptrace_syscall_info *call)
{
	if (!hold->linker_end || hold->n_calls > CALLS_MAX)
		return true;
	if (hold->debug_at)
		return has_linked(hold);
	return call->instruction_pointer < hold->linker_start ||
	       call->instruction_pointer > hold->linker_end;
}

/* Returns true if all libraries are mapped at this entry or exit of a system call. */
static bool is_linked_at(struct hold *hold)
{
	struct __ptrace_syscall_info call = {};

	if (ptrace(PTRACE_GET_SYSCALL_INFO, hold->pid, sizeof(call), &call) <= 0)
		return true;
	if (call.op != PTRACE_SYSCALL_INFO_ENTRY)
		return false;
	hold->n_calls++;
	hold->n_maps += maps_code(&call);
	return has_mapped_all(hold, &call) || is_left(hold, &call);
}

static void resume(struct hold *hold, long signal)
{
	hold->is_stopped = false;
	/* No system call is needed before the exec, nor after the link. */
	ptrace(hold->is_valid && !hold->is_following ? PTRACE_SYSCALL : PTRACE_CONT, hold->pid,
	       NULL, signal);
}

static enum hold_state take_fork(struct hold *hold)
{
	unsigned long pid;

	if (ptrace(PTRACE_GETEVENTMSG, hold->pid, NULL, &pid)) {
		resume(hold, 0);
		return HOLD_RUNS;
	}
	hold->forked = pid;
	return HOLD_FORKED;
}

static enum hold_state take_stop(struct hold *hold, int status)
{
	int event = status >> 16, signal = WSTOPSIG(status);

	if (event == PTRACE_EVENT_EXEC) {
		hold->is_following = hold->is_linked = false;
		find_linker(hold);
		return HOLD_EXECUTED;
	}
	if (event == PTRACE_EVENT_STOP && signal == SIGTRAP && hold->is_interrupted) {
		hold->is_interrupted = false;
		return HOLD_EXECUTED;
	}
	if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK)
		return take_fork(hold);
	if (hold->is_following && !event &&
	    (now_ns() >= hold->until_ns || ++hold->n_signals > HOLD_SIGNALS_MAX)) {
		hold->signal = signal;
		hold->is_stopped = true;
		hold__release(hold);
		return HOLD_OVER;
	}
	if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) {
		ptrace(PTRACE_LISTEN, hold->pid, NULL, NULL); /* a stopped job */
		return HOLD_RUNS;
	}
	if (signal == SYSCALL_SIG && is_linked_at(hold)) {
		hold->is_linked = true;
		return HOLD_LINKED;
	}
	resume(hold, event || signal == SYSCALL_SIG ? 0 : signal);
	return HOLD_RUNS;
}

/* Gets the next status of the process. Returns 1: a stop; 0: none yet; -1: the process has ended.
 */
static int next_status(const struct hold *hold, int *ret_status)
{
	siginfo_t info = {};
	int flags = WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL;

	if (waitid(P_PID, hold->pid, &info, flags))
		return errno == EINTR ? 0 : -1;
	if (!info.si_pid)
		return 0;
	if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED) {
		if (!hold->is_child) /* lets its parent see the status */
			waitpid(hold->pid, ret_status, WNOHANG | __WALL);
		return -1;
	}
	return waitpid(hold->pid, ret_status, WNOHANG | __WALL) == hold->pid ? 1 : 0;
}

enum hold_state hold__next(struct hold *hold)
{
	enum hold_state state = HOLD_RUNS;
	int status = 0, found = 1;

	if (!hold->pid)
		return HOLD_OVER;
	while (state == HOLD_RUNS && !hold->is_stopped && (found = next_status(hold, &status)) > 0)
		state = take_stop(hold, status);
	hold->is_stopped |= state != HOLD_RUNS && state != HOLD_OVER;
	if (found < 0) {
		*hold = (struct hold) {};
		return HOLD_OVER;
	}
	return state;
}

enum hold_state hold__wait(struct hold *hold, int signal_fd, int timeout_ms)
{
	struct pollfd polled = { .fd = signal_fd, .events = POLLIN };
	enum hold_state state = hold__next(hold);
	struct signalfd_siginfo info;

	if (state != HOLD_RUNS || poll(&polled, 1, timeout_ms) <= 0)
		return state;
	while (read(signal_fd, &info, sizeof(info)) == sizeof(info))
		;
	return hold__next(hold);
}

bool hold__seize(struct hold *hold, int pid)
{
	*hold = (struct hold) {};
	if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)OPTIONS))
		return false;
	hold->pid = pid;
	hold->is_child = true;
	return true;
}

bool hold__interrupt(struct hold *hold, int pid)
{
	*hold = (struct hold) { .pid = pid };
	find_linker(hold);
	/* A program's own code may be in a call that a stop would end (epoll_wait), so it is not
	 * stopped. */
	if (!hold->debug_at || !hold->linker_end || has_linked(hold) ||
	    ptrace(PTRACE_SEIZE, pid, NULL, (void *)OPTIONS)) {
		*hold = (struct hold) {};
		return false;
	}
	hold->is_interrupted = !ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	return true;
}

bool hold__has_linker(const struct hold *hold)
{
	return hold->linker_end;
}

bool hold__has_run(const struct hold *hold)
{
	return !hold->debug_at || has_linked(hold);
}

void hold__go_on(struct hold *hold)
{
	if (hold->pid)
		resume(hold, 0);
}

void hold__follow(struct hold *hold, uint64_t until_ns)
{
	if (!hold->pid)
		return;
	hold->is_following = true;
	hold->until_ns = until_ns;
	ptrace(PTRACE_SETOPTIONS, hold->pid, NULL, (void *)FOLLOWING);
	resume(hold, 0);
}

void hold__adopt(struct hold *hold, int pid, uint64_t until_ns)
{
	*hold = (struct hold) { .pid = pid, .is_following = true, .until_ns = until_ns };
}

static bool is_writable(void *ctx, uint64_t address, size_t size)
{
	const struct hold *hold = ctx;
	struct thread_bases *bases = NULL;
	bool writable;

	if (thread_bases__new(hold->pid, NULL, &bases))
		return false;
	writable = thread_bases__can_write(bases, address, size);
	thread_bases__free(bases);
	return writable;
}

/* Returns true if the program cannot notice a stop now: it runs, or waits in a call that a stop
 * does not end. */
static bool may_stop(struct hold *hold)
{
	struct thread_now now;
	struct restart_wait wait = { .pid = hold->pid,
				     .tid = hold->pid,
				     .args = now.args,
				     .is_writable = is_writable,
				     .ctx = hold };

	if (!thread__read(hold->pid, hold->pid, &now))
		return false;
	if (!now.off_cpu) /* running, or unreadable */
		return now.state == 'R';
	wait.call = now.call;
	return now.state != 'D' && restart__is_invisible(&wait);
}

void hold__expire(struct hold *hold)
{
	if (hold->pid && hold->is_following && !hold->is_stopped && now_ns() >= hold->until_ns &&
	    may_stop(hold))
		hold__release(hold);
}

/* Stops the process, as only a stopped process can be detached. A process in an uninterruptible
 * wait (a file system that does not answer) is detached when this process ends. */
static void stop(struct hold *hold)
{
	int status;

	if (ptrace(PTRACE_INTERRUPT, hold->pid, NULL, NULL)) /* the PID was reused */
		return;
	for (int i = 0; i < STOP_MS && !hold->is_stopped; i++) {
		int found = next_status(hold, &status);

		if (found < 0)
			return;
		hold->is_stopped = found;
		if (!found)
			usleep(1000);
	}
	hold->signal = hold->is_stopped && !(status >> 16) && WSTOPSIG(status) != SYSCALL_SIG
			       ? WSTOPSIG(status)
			       : 0;
}

void hold__release(struct hold *hold)
{
	if (hold->pid && !hold->is_stopped)
		stop(hold);
	if (hold->pid)
		ptrace(PTRACE_DETACH, hold->pid, NULL, (long)hold->signal);
	*hold = (struct hold) {};
}
