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

/* A dump of the threads of a process: one merged stack of each, with its wait. Nothing is attached
 * to the process or loaded into the kernel. The right to trace a process is sufficient to dump it.
 */
struct dump;

struct dump_opts {
	const struct runtime *const *runtimes; /* all runtimes, NULL-terminated */
	uint32_t enabled;		       /* bit n: runtimes[n] is enabled */
	bool nonblocking;		       /* never stop a thread */
	bool native;			       /* include interpreters' own frames */
	uint64_t min_age_ns; /* minimum of tasks' upper limits of their waits; 0: all tasks */
};

struct dump_frame {
	char *function;
	char *file;    /* full path as the target sees it; "": unknown */
	char *image;   /* path of the file with the machine code; NULL: none, or unknown */
	uint32_t line; /* 0: unknown */
	int kind;      /* core/profile/profile.h: KIND_KERNEL, ..., KIND_RUNTIME + number */
};

/* The way in which the data of a thread was read. */
enum dump_way {
	DUMP_UNMOVED, /* it did not run during the reading, without a stop */
	DUMP_STOPPED, /* stopped for `stopped_ns` */
	DUMP_SAMPLED, /* sampled by the kernel half at one instant */
	DUMP_TWICE,   /* running, with two equal results in a row */
	DUMP_RUNNING, /* running, with differing results, which may mix several instants */
};

#define DUMP_NAME_BYTES	  128
#define DUMP_DOING_BYTES  32
#define DUMP_REASON_BYTES 48

/* A task that waits as another one does. */
struct dump_alike {
	uint64_t id;
	uint64_t waited_ns; /* upper limit; 0: unknown */
};

struct dump_thread {
	uint32_t tid;
	char name[DUMP_NAME_BYTES]; /* name from the program, else the kernel's; untrusted */
	char state; /* as in /proc: 'R' running, 'S' sleeping, 'D' in an uninterruptible sleep, 'T'
		       stopped, 't' traced; 0: core file */
	int signal; /* signal that it received, from a core file; 0: none */
	enum dump_way way;
	bool pending; /* not read yet */
	uint64_t stopped_ns;
	int call;	    /* system call; negative: none, or unknown */
	uint64_t args[6];   /* arguments of the call, if it is valid */
	uint64_t waited_ns; /* time since it left the CPU; 0: unknown */

	uint8_t lock;	       /* enum lock_state of the lock `lock_name` */
	const char *lock_name; /* "the GIL", "a mutex"; NULL: no lock found */
	uint64_t lock_address; /* 0: unknown */
	uint32_t holder;       /* thread of the same process that holds the lock; 0: unknown */
	uint64_t stack_start, stack_end; /* 0: unknown */
	uint64_t fs_base;		 /* 0: unknown */
	struct thread_now look;		 /* the thread when it was read; .tid 0: it ran meanwhile */
	uint64_t regs[UNWIND_REGS];	 /* its registers at that time */
	bool idle;			 /* its wait fits a rule of runtimes/idle.h */
	bool deadlocked;		 /* it is in a circle of waits: */
	uint32_t circle;		 /* lowest thread id in the circle */
	/* For a task: */
	char waits_for[DUMP_NAME_BYTES]; /* name of another task; "": unknown */
	const char *sort;		 /* name of its kind: "fiber" */
	char doing[DUMP_DOING_BYTES];	 /* the runtime's name of its state; "": waiting */
	uint32_t of_thread;		 /* thread to which it belongs; 0: none */
	char reason[DUMP_REASON_BYTES];	 /* the runtime's name of its wait; "": unknown */
	/* The task itself and further ones with equal state, reason and stack. NULL: it has no
	 * number. */
	struct dump_alike *alike;
	size_t n_alike, cap_alike;

	bool complete;		   /* the frames reach the thread's outermost one */
	const char *why_cut;	   /* otherwise the reason, a part of a sentence; NULL: unknown */
	struct dump_frame *frames; /* innermost first */
	size_t n_frames, cap_frames;
};

struct dump_source { /* source of the frames of one runtime */
	const struct runtime *runtime;
	char version[RUNTIME_VERSION_BYTES];
	char source[16]; /* "walk", "none" */
	char reason[RUNTIME_REASON_BYTES];
};

struct dump_process {
	struct procfs_info info;
	struct dump_thread *threads;
	size_t n_threads;
	struct dump_thread *tasks; /* outside of threads, in their order; names and frames only */
	size_t n_tasks, cap_tasks;
	bool is_core;
	char note[1024]; /* limits of this result; "": none */
	struct dump_source *sources;
	size_t n_sources, cap_sources;
};

int dump__new(const struct dump_opts *opts, struct dump **ret, struct err *err);
void dump__free(struct dump *dump); /* NULL is fine */

/* Dumps a process with all its threads. Returns 0 or, with the message in @err: -ESRCH; -EINVAL: no
 * user threads; -EPERM; -ENOTSUP: a 32-bit program. */
int dump__process(struct dump *dump, uint32_t pid, struct dump_process *ret, struct err *err);

/* As dump__process(), for the process that left a core file. @root is the directory of the files
 * that it had mapped ("/"). Returns also -EBADMSG, -ENOTSUP, and errors of open(). */
int dump__core(struct dump *dump, const char *path, const char *root, struct dump_process *ret,
	       struct err *err);
void dump_process__done(struct dump_process *process); /* idempotent */

#endif
