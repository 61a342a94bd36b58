/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_HOLD_H
#define BRAID_HOLD_H

#include <stdbool.h>
#include <stdint.h>

/* A process that is traced from its exec until its dynamic linker has mapped its libraries.
 *
 * Tables, walkers and probes must be in place before a program runs. The first moment at which all
 * its libraries are mapped lies inside the dynamic linker: after the last mmap, before the first
 * relocation, and so before any constructor. A breakpoint at the entry point would come after the
 * constructors, and their children would inherit the breakpoint. Debug registers do not fire on
 * some virtual machines. So nothing is written into the process. It is stopped at its system calls
 * (PTRACE_SYSCALL), of which the linker makes a few dozen, and runs freely after that.
 *
 *   state      entered by                             left by
 *   RUNS       hold__go_on, hold__seize, _interrupt   a stop that hold__next takes
 *   EXECUTED   the exec of a program, or just after   hold__go_on, hold__release
 *   LINKED     libraries are mapped, or the pc is     hold__follow, hold__release
 *              outside the linker
 *   FORKED     a fork of a followed process           hold__follow
 *   OVER       hold__release, end of the process      -
 *
 * If the tracer dies, the kernel detaches the traced process, which runs on. Signals are forwarded,
 * and a stopped job stays stopped (PTRACE_LISTEN). All functions must be called by one thread, the
 * tracer. */

enum hold_state {
	HOLD_RUNS,     /* no stop to report; SIGCHLD announces the next one */
	HOLD_EXECUTED, /* stopped: a program was executed, and its linker has not finished */
	HOLD_LINKED,   /* stopped: its libraries are mapped, or it has none */
	HOLD_FORKED,   /* stopped after a fork of hold.forked, which is traced, too (hold__adopt) */
	HOLD_OVER,     /* not traced */
};

/* Signals that stop a followed process before it is released. */
#define HOLD_SIGNALS_MAX 64

struct hold {
	int pid;	/* 0: none */
	bool is_child;	/* a child of this process, whose exit status is left for its reaper */
	bool is_linked; /* HOLD_LINKED was reported */
	bool is_stopped;
	bool is_interrupted; /* interrupted by hold__interrupt(), and not stopped yet */
	int signal;	     /* signal to deliver at the release; 0: none */

	/* --- following: a linked program, which may execute another one --- */
	bool is_following;
	uint64_t until_ns;
	unsigned n_signals;
	int forked;

	/* --- the dynamic linker of the executed program --- */
	bool is_valid;			      /* the following fields are valid */
	uint64_t linker_start, linker_end;    /* address range of its code; 0: no linker */
	uint64_t relro_start, relro_end;      /* RELRO range of the program; 0: none */
	uint64_t debug_at;		      /* address of DT_DEBUG's value; 0: unknown */
	unsigned n_calls, n_maps, n_pointers; /* system calls; mmaps of code; sets of the TLS */
};

/* Traces a running child of this process until its exec and after it. Returns false if not
 * permitted. */
bool hold__seize(struct hold *hold, int pid);

/* Stops a process that has just executed a program while its dynamic linker works. Returns false if
 * the linker has finished, if there is none, or if tracing is not permitted. The process may stop
 * later; hold__wait() waits for that. */
bool hold__interrupt(struct hold *hold, int pid);

/* Takes the next stop, if any, without waiting. Skips stops without meaning. */
enum hold_state hold__next(struct hold *hold);

/* As hold__next(), but waits up to @timeout_ms for a stop. @signal_fd is a signalfd of SIGCHLD. */
enum hold_state hold__wait(struct hold *hold, int signal_fd, int timeout_ms);

/* Returns true if the executed program has a dynamic linker. The process must be stopped at its
 * exec. */
bool hold__has_linker(const struct hold *hold);

/* Returns true if a process that was stopped by hold__interrupt() has run code of its own since its
 * exec: the linker was done before the stop. */
bool hold__has_run(const struct hold *hold);

/* Lets the process run to its next stop. */
void hold__go_on(struct hold *hold);

/* Lets the process run to its next exec or fork, until @until_ns at most. After that it runs
 * untraced as soon as a detach disturbs nothing: hold__expire(). */
void hold__follow(struct hold *hold, uint64_t until_ns);

/* As hold__follow(), for a process that was forked by a followed one. */
void hold__adopt(struct hold *hold, int pid, uint64_t until_ns);

void hold__expire(struct hold *hold);

/* Lets the process run untraced. Idempotent. */
void hold__release(struct hold *hold);

#endif
