/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DUMP_H
#define BRAID_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "core/base/err.h"
#include "core/target/procfs.h"
#include "core/target/threads.h"
#include "runtimes/runtime.h"

/* What the threads of a process do now: one merged stack of each, with what it waits for. Nothing
 * is attached, nothing loaded into the kernel: what may trace a process may dump it. */
struct dump;

struct dump_opts {
	const struct runtime *const *runtimes; /* all known, NULL-terminated */
	uint32_t enabled;		       /* bit n: runtimes[n] is wanted */
	bool nonblocking;		       /* no thread is ever stopped */
	bool native;			       /* interpreters' own frames, too */
};

struct dump_frame {
	char *function;
	char *file;    /* full path as the target has it; "": unknown */
	char *image;   /* path of the file with the machine code; NULL: none, or unknown */
	uint32_t line; /* 0: unknown */
	int kind;      /* core/profile/profile.h: KIND_KERNEL, ..., KIND_RUNTIME + number */
};

/* How what is known of a thread was read. */
enum dump_way {
	DUMP_STILL,   /* it did not run meanwhile, and was not stopped either */
	DUMP_STOPPED, /* for `held_ns` */
	DUMP_SAMPLED, /* the kernel half has read it at one instant */
	DUMP_TWICE,   /* it runs, but what was read of it twice in a row was the same */
	DUMP_RUNNING, /* the same, and it was not: it may be of several instants */
};

#define DUMP_NAME_BYTES	 128
#define DUMP_DOING_BYTES 32

struct dump_thread {
	uint32_t tid;
	char name[DUMP_NAME_BYTES]; /* as the program gave it, else the kernel's; hostile */
	char state; /* as /proc tells: 'R' runs, 'S' sleeps, 'D' the same without being wakeable by
		     * signals, 'T' stopped, 't' traced; 0: of a core file */
	int signal; /* that it had got, of a core file; 0: none */
	enum dump_way way;
	bool pending; /* not read yet */
	uint64_t held_ns;
	int call;	    /* system call; below 0: none, or not known */
	uint64_t args[6];   /* of the call, if it is known */
	uint64_t waited_ns; /* since it left the CPU; 0: not known */

	uint8_t lock;	       /* enum lock_state, of `lock_name` */
	const char *lock_name; /* "the GIL", "a mutex"; NULL: nothing is known of locks */
	uint64_t lock_address; /* 0: not known */
	uint32_t holder;       /* the thread that has it, of the same process; 0: not known */
	uint64_t stack_start, stack_end; /* 0: not known */
	uint64_t fs_base;		 /* 0: not known */
	struct thread_now look;		 /* the thread when it was read; .tid 0: it ran meanwhile */
	uint64_t regs[UNWIND_REGS];	 /* its registers as of that look */
	bool idle;			 /* its wait fits a rule of runtimes/idle.h */
	bool deadlocked;		 /* it waits for one that waits ... for it: */
	uint32_t circle;		 /* the lowest id of these */
	/* Of a task: */
	char waits_for[DUMP_NAME_BYTES]; /* another one's name; "": none is known */
	const char *sort;		 /* what people call it: "fiber" */
	char doing[DUMP_DOING_BYTES];	 /* the runtime's word for its state; "": it waits */
	uint32_t of_thread;		 /* that it belongs to; 0: none */

	bool complete;		   /* the frames reach the thread's outermost one */
	const char *why_cut;	   /* else: a part of a sentence; NULL: not known */
	struct dump_frame *frames; /* innermost first */
	size_t n_frames, cap_frames;
};

struct dump_source { /* where the frames of one runtime came from */
	const struct runtime *runtime;
	char version[RUNTIME_VERSION_BYTES];
	char source[16]; /* "walk", "none" */
	char reason[RUNTIME_REASON_BYTES];
};

struct dump_process {
	struct procfs_info info;
	struct dump_thread *threads;
	size_t n_threads;
	struct dump_thread *tasks; /* that wait outside of threads: names and frames only; those
				    * of a thread are next to each other, the threads as above */
	size_t n_tasks, cap_tasks;
	bool is_core;
	char note[1024]; /* what makes this worth less; "": nothing */
	struct dump_source *sources;
	size_t n_sources, cap_sources;
};

int dump__new(const struct dump_opts *opts, struct dump **ret, struct err *err);
void dump__free(struct dump *dump); /* NULL is fine */

/* One process, with all its threads. A negative errno comes with the sentence: -ESRCH, -EINVAL for
 * what has no threads to be looked at, -EPERM, -ENOTSUP for 32-bit programs. */
int dump__process(struct dump *dump, uint32_t pid, struct dump_process *ret, struct err *err);

/* The same of a process that has left a core file. `root`: below which the files are that it had
 * mapped ("/"). -EBADMSG, -ENOTSUP, errors of open. */
int dump__core(struct dump *dump, const char *path, const char *root, struct dump_process *ret,
	       struct err *err);
void dump_process__done(struct dump_process *process); /* idempotent */

#endif
