/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DUMP_STATE_H
#define BRAID_DUMP_STATE_H

/* Internal state of a dump.
 *
 *   dump.c            the order of all steps
 *   dump_core.c       the same steps for a core file
 *   dump_take.c       one thread: when it is stopped, and the data that is read of it
 *   dump_sampler.c    threads that the kernel half reads, as they run or need registers
 *   dump_frames.c     converts captured samples to frames
 *   dump_tasks.c      tasks that wait outside of threads
 *   dump_locks.c      holders of locks for which others wait
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

struct dump_record { /* in the format of the ring; owned */
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

	/* --- the process that is dumped --- */
	struct process *process;
	struct dump_process *result;
	struct memory *own_memory, *cached;
	const struct memory *memory;
	struct thread_bases *bases; /* NULL: not from /proc */
	bool own_ids;		    /* in braid's PID namespace */
	uint64_t start_stack;	    /* stack pointer of its first instruction; 0: unknown */
	bool samples;		    /* pending threads are read by the kernel half */
	struct dump_record *records, **end;
	struct rec_sample sample; /* head of the last one */
	bool sampled;
	bool unprivileged; /* the kernel half cannot be loaded */
	int record_ret;
};

/* Reads a thread. Fills in all data except the frames, which are then in dump->records. Returns 0;
 * -ESRCH: the thread is gone; -EPERM: a stop is needed and not permitted; -ENOMEM. */
int dump__take(struct dump *dump, uint32_t tid, struct dump_thread *ret);

/* Reads the thread and records the result. Sets the id of a thread that has ended to 0. */
int dump__take_thread(struct dump *dump, struct dump_thread *thread, struct err *err);

/* Reads the threads that dump__take() left pending, by the kernel half. If the kernel half cannot
 * be loaded, sets dump->samples to false, and reads them without. */
int dump__take_pending(struct dump *dump, struct err *err);

/* Reads the lock data of the thread, which waits at @now, again. Reads no frames and stops no
 * thread. Returns 0 or -ENOMEM. */
int dump__take_again(struct dump *dump, const struct dump_thread *thread,
		     const struct thread_now *now, struct dump_thread *ret);

/* Reads, from memory alone, a thread that runs and is not stopped, or one that stood still briefly.
 * Returns 0 or -ENOMEM. */
int dump__take_running(struct dump *dump, const struct thread_now *now, struct dump_thread *ret);

/* Returns the thread as /proc shows it, with unknown registers. */
struct host_thread dump__as_it_stands(const struct dump *dump, const struct thread_now *now);

/* Returns the last sample among dump->records; NULL: there is none. */
struct rec_sample *dump__last_sample(const struct dump *dump);

bool dump__is_whole(const struct dump *dump); /* state of the last sample */

/* Adds a record of the host half or the kernel half to dump->records; @ctx is the dump. */
void dump__note(void *ctx, const void *data, size_t size);

/* Drops the samples in dump->records. Records of code objects stay, as they are sent only once. */
void dump__drop_samples(struct dump *dump);

/* Adds the frames of threads that the kernel half has sampled. */
struct profile;
int dump__add_frames(struct dump *dump, struct live_profile *live, bool tasks, struct err *err);

/* Stores the state of a waiting thread whose locks were read, and its registers. */
void dump__note_look(struct dump_thread *thread, const struct thread_now *now,
		     const struct host_thread *from);

/* Not a valid address: a rule that needs the register ends the stack. */
#define UNKNOWN_REG 0xdead000000000000ULL

/* Takes one sample. Its records are in dump->records, and its head is in dump->sample. @memory is
 * the memory that its walkers see. Returns 0 or -ENOMEM. */
struct host_thread;
int dump__sample(struct dump *dump, const struct host_thread *thread, const struct memory *memory);

/* Reduces the last sample to the walkers' sections, and sets its thread id to @tid. */
void dump__keep_runtimes(struct dump *dump, uint32_t tid);

/* Reads the tasks that wait outside of threads. */
int dump__take_tasks(struct dump *dump, struct err *err);

/* Sets the lock data from the runtime's walker or from the futex for which the thread waits. */
void dump__describe(const struct dump *dump, struct dump_thread *ret);

/* Opens the process. @memory is that of a core file; NULL: the live process. dump__close_process()
 * must follow. */
int dump__open_process(struct dump *dump, uint32_t pid, const struct memory *memory,
		       struct err *err);
int dump__finish_process(struct dump *dump, struct err *err); /* names all frames */
void dump__close_process(struct dump *dump);

/* Records and frees dump->records. */
int dump__route(struct dump *dump, struct err *err);

/* Adds the frames of all threads and tasks after their present ones. All frames must have names. */
int dump__frames(struct dump *dump, struct err *err);

/* Adds a frame after the present ones. Returns 0 or -ENOMEM. */
int dump_thread__add(struct dump_thread *thread, int kind, const char *function, const char *file,
		     uint32_t line);

void dump_thread__clear(struct dump_thread *thread); /* removes all frames */

/* Adds the frames of /proc/PID/task/TID/stack in @text. */
int dump_thread__add_kernel(struct dump_thread *thread, const char *text);

/* Sets the lock data of a thread that waits for a lock of the C library. The thread must stand
 * still. */
void dump__see_mutex(const struct dump *dump, struct dump_thread *thread);

/* Returns the id of the thread whose id in its own PID namespace is @tid; 0: there is none. */
uint32_t dump__by_own_id(const struct dump *dump, uint32_t tid);

/* Sets the names that the program gave to its threads. */
void dump__find_names(const struct dump *dump, struct dump_process *process);

/* Queries the runtimes for the locks of waiting threads and their holders. All threads must have
 * been read. A thread that has run since is left unchanged. Returns 0 or -ENOMEM. */
int dump__find_holders(const struct dump *dump, struct dump_process *process);

/* Marks the threads and tasks whose wait fits a rule of runtimes/idle.h. Requires names, locks and
 * frames. */
void dump__find_idle(const struct dump *dump, struct dump_process *process);

/* Marks the threads that wait for each other in a circle. Returns 0 or -ENOMEM. */
int dump__find_deadlocks(struct dump *dump, struct dump_process *process);

#endif
