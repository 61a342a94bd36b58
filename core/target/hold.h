/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_HOLD_H
#define BRAID_HOLD_H

#include <stdbool.h>
#include <stdint.h>

/* A process that is traced from its exec until its dynamic linker has mapped its libraries.
 *
 * Tables, walkers and probes have to be in place before a program runs. The first moment at which
 * all its libraries are mapped lies inside the dynamic linker: behind the last mmap, before the
 * first relocation, and so before any constructor. A breakpoint at the entry point would come
 * after the constructors, and would be inherited by whatever they fork. Debug registers do not
 * fire on some virtual machines. So nothing is written into the process: it is stopped at its
 * system calls (PTRACE_SYSCALL), of which the linker makes a few dozen, and is left alone from
 * there on.
 *
 *   state      entered by                             left by
 *   RUNS       hold__go_on, hold__seize, _interrupt   a stop that hold__next takes
 *   EXECUTED   the exec of a program, or just behind  hold__go_on, hold__release
 *   LINKED     libraries are mapped, or the linker    hold__follow, hold__release
 *              turns out to be left
 *   FORKED     a fork of what is followed             hold__follow
 *   OVER       hold__release, end of the process      -
 *
 * If this process dies, the kernel detaches the other, which runs on. Signals are passed on, and a
 * stopped job stays stopped (PTRACE_LISTEN). All functions are for one thread, the tracer. */

enum hold_state {
	HOLD_RUNS,     /* nothing to see; SIGCHLD announces the next stop */
	HOLD_EXECUTED, /* stopped: a program was executed, and its linker has not done its work */
	HOLD_LINKED,   /* stopped: its libraries are mapped, or it has none */
	HOLD_FORKED,   /* stopped: it has forked hold.forked, which is traced, too: hold__adopt */
	HOLD_OVER,     /* not traced */
};

/* Signals that a followed process gets, each of which stops it, before it is let go. */
#define HOLD_SIGNALS_MAX 64

struct hold {
	int pid;	/* 0: none */
	bool is_child;	/* of this process: its exit status is left for who reaps it */
	bool is_linked; /* HOLD_LINKED was reported */
	bool is_stopped;
	bool is_interrupted; /* by hold__interrupt, and has not stopped yet */
	int signal;	     /* to be delivered when it is released; 0: none */

	/* --- what is followed: a program that is linked, and may execute another one --- */
	bool is_following;
	uint64_t until_ns;
	unsigned n_signals;
	int forked;

	/* --- the dynamic linker of what it executes --- */
	bool is_known;			      /* the following was read */
	uint64_t linker_start, linker_end;    /* its code; 0: there is none */
	uint64_t relro_start, relro_end;      /* of the program; 0: none */
	uint64_t debug_at;		      /* of DT_DEBUG's value; 0: not known */
	unsigned n_calls, n_maps, n_pointers; /* system calls; that map code; that set the TLS */
};

/* Traces a child of this process that runs, up to its exec and onwards. False: not permitted. */
bool hold__seize(struct hold *hold, int pid);

/* Stops a process that has just executed a program while its dynamic linker is at work. False: it
 * is past that, has none, or may not be traced. It may take a moment to stop: hold__wait. */
bool hold__interrupt(struct hold *hold, int pid);

/* Takes the next stop, if there is one, without waiting. Stops that mean nothing are passed over.
 */
enum hold_state hold__next(struct hold *hold);

/* As hold__next, but waits up to `timeout_ms` for a stop. `signal_fd`: a signalfd of SIGCHLD. */
enum hold_state hold__wait(struct hold *hold, int signal_fd, int timeout_ms);

/* Has what it executes a dynamic linker? Of one that is stopped at its exec. */
bool hold__has_linker(const struct hold *hold);

/* Returns true if a process that was stopped by hold__interrupt() has run code of its own since its
 * exec: the linker was done before the stop. */
bool hold__has_run(const struct hold *hold);

/* Lets it run to its next stop. */
void hold__go_on(struct hold *hold);

/* Lets it run to its next exec or fork, and no further than `until_ns`, from where on it runs
 * untraced as soon as that disturbs nothing: hold__expire. */
void hold__follow(struct hold *hold, uint64_t until_ns);

/* The same for one that was forked by what is followed. */
void hold__adopt(struct hold *hold, int pid, uint64_t until_ns);

void hold__expire(struct hold *hold);

/* Lets it run, untraced. Idempotent. */
void hold__release(struct hold *hold);

#endif
