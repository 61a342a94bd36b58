/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DUMP_STATE_H
#define BRAID_DUMP_STATE_H

/* A dump from inside.
 *
 *   dump.c         the order of everything
 *   dump_core.c    the same of a core file
 *   dump_take.c    one thread: when it is stopped, and what is read of it
 *   dump_sampler.c threads that the kernel half reads, as they run or need registers
 *   dump_frames.c  from what was captured to frames
 *   dump_tasks.c   what waits outside of threads
 *   dump_locks.c   who holds what others wait for
 *   dump_deadlocks.c  circles of waits that exist at one instant */

#include "bpf/host/programs.h"
#include "core/base/memory.h"
#include "core/capture/capture.h"
#include "core/dump/dump.h"
#include "core/kernel/kernel_half.h"
#include "core/kernel/table_arena.h"
#include "core/live/live_profile.h"
#include "core/record/routing.h"
#include "core/target/thread_base.h"
#include "core/target/threads.h"

struct dump_record { /* as from the ring; owned */
	struct dump_record *next;
	size_t size;
	uint64_t data[];
};

struct dump {
	struct dump_opts opts;
	struct kernel_half *half;
	struct runtime_session *sessions[RUNTIMES_MAX];
	struct table_arena *table_arena;
	struct images *images;
	char *cache_dir;
	struct tracker *tracker;
	struct live_profile *live;
	struct capture *capture;
	struct routing routing;

	/* --- of the process that is being dumped --- */
	struct process *process;
	struct dump_process *result;
	struct memory *own_memory, *cached;
	const struct memory *memory;
	struct thread_bases *bases; /* NULL: it is none of /proc */
	bool own_ids;		    /* it has braid's PID namespace */
	uint64_t start_stack;	    /* stack pointer of its first instruction; 0: unknown */
	bool samples;		    /* pending threads are read by the kernel half */
	struct dump_record *records, **end;
	struct rec_sample sample; /* the head of the last one */
	bool sampled;
	bool unprivileged; /* the kernel half cannot be loaded */
	int record_ret;
};

/* Fills in all but the frames, which are in dump->records then. -ESRCH: the thread is gone; -EPERM:
 * it must be stopped, and that is not permitted; -ENOMEM. */
int dump__take(struct dump *dump, uint32_t tid, struct dump_thread *ret);

/* Takes the thread, and records what was read of it. One that has ended gets the id 0. */
int dump__take_thread(struct dump *dump, struct dump_thread *thread, struct err *err);

/* Reads the threads that dump__take has left pending, by the kernel half. Where that cannot be
 * loaded it sets dump->samples to false, and takes them without. */
int dump__take_pending(struct dump *dump, struct err *err);

/* Reads once more what the thread, which waits at @now, waits for. Takes no frames and stops
 * nothing. -ENOMEM */
int dump__take_again(struct dump *dump, const struct dump_thread *thread,
		     const struct thread_now *now, struct dump_thread *ret);

/* From memory alone: a thread that runs and is not stopped, or one that stood still for a moment.
 * -ENOMEM */
int dump__take_running(struct dump *dump, const struct thread_now *now, struct dump_thread *ret);

/* The thread as /proc shows it, with unknown registers. */
struct host_thread dump__as_it_stands(const struct dump *dump, const struct thread_now *now);

bool dump__is_whole(const struct dump *dump); /* the last sample */

/* Adds a record of the host's or the kernel's half to dump->records; `ctx` is the dump. */
void dump__note(void *ctx, const void *data, size_t size);

/* Drops the samples in dump->records. Code objects stay: they are sent once. */
void dump__drop_samples(struct dump *dump);

/* Adds the frames of threads that the kernel half has sampled. */
struct profile;
int dump__add_frames(struct dump *dump, struct live_profile *live, bool tasks, struct err *err);

/* Stores the look at a waiting thread whose locks were read, and its registers. */
void dump__note_look(struct dump_thread *thread, const struct thread_now *now,
		     const struct host_thread *from);

/* No address: a rule that needs the register ends the stack. */
#define UNKNOWN_REG 0xdead000000000000ULL

/* One sample: what came of it is in dump->records and, its head, in dump->sample. `memory`: what
 * its walkers see. -ENOMEM. */
struct host_thread;
int dump__sample(struct dump *dump, const struct host_thread *thread, const struct memory *memory);

/* Of the last sample nothing but what the walkers have found remains, under that thread's id. */
void dump__keep_runtimes(struct dump *dump, uint32_t tid);

/* What waits outside of threads. */
int dump__take_tasks(struct dump *dump, struct err *err);

/* What its runtime's walker, or the futex that it waits for, says of locks. */
void dump__describe(const struct dump *dump, struct dump_thread *ret);

/* `memory`: of a core file; NULL: of the live process. dump__close_process must follow. */
int dump__open_process(struct dump *dump, uint32_t pid, const struct memory *memory,
		       struct err *err);
int dump__finish_process(struct dump *dump, struct err *err); /* names all frames */
void dump__close_process(struct dump *dump);

/* Records what is in dump->records, and forgets it. */
int dump__route(struct dump *dump, struct err *err);

/* After all are named: the frames of all threads and tasks, behind those that they have already. */
int dump__frames(struct dump *dump, struct err *err);

/* Adds one behind the others. -ENOMEM. */
int dump_thread__add(struct dump_thread *thread, int kind, const char *function, const char *file,
		     uint32_t line);

void dump_thread__clear(struct dump_thread *thread); /* it has no frames then */

/* Adds those of /proc/PID/task/TID/stack. */
int dump_thread__add_kernel(struct dump_thread *thread, const char *text);

/* While the thread stands still: is it a lock of C's that it waits for? */
void dump__see_mutex(const struct dump *dump, struct dump_thread *thread);

/* The id of a thread that knows itself by `tid`; 0: there is none. */
uint32_t dump__by_own_id(const struct dump *dump, uint32_t tid);

/* Of threads to which the program has given names of its own. */
void dump__find_names(const struct dump *dump, struct dump_process *process);

/* When all are known: what the runtimes can tell of who waits for what, and whose that is. A thread
 * that has run since it was read is left as it is. 0 or -ENOMEM */
int dump__find_holders(const struct dump *dump, struct dump_process *process);

/* Marks the threads whose wait fits a rule of runtimes/idle.h. Names, locks and frames are known.
 */
void dump__find_idle(const struct dump *dump, struct dump_process *process);

/* Marks the threads that wait for each other in a circle. 0 or -ENOMEM */
int dump__find_deadlocks(struct dump *dump, struct dump_process *process);

#endif
