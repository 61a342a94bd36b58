// SPDX-License-Identifier: GPL-2.0-or-later
/* Deadlocks: circles of waits that exist at one instant.
 *
 * Threads are read one after the other, and a lock passes from hand to hand meanwhile. So a circle
 * of the first reading is only a candidate: A waited for B when A was read, and B for A when B was
 * read, later. A candidate is proven by a second reading of its threads alone:
 *
 *   1. each thread waits (the first check)
 *   2. each thread waits for the same lock, which has the same holder
 *   3. no thread has run since its first check (the last check)
 *
 * All waits of 2 exist between the last of the first checks and the first of the last checks. It is
 * not enough that a thread has not run since the first reading. Its lock may have passed from the
 * thread of the circle to one outside, while the thread slept.
 *
 * Some waits end by the clock and begin again at once, some of them every 5 ms. So a second reading
 * that fails is repeated. Its changes replace the data of the first reading. */
#include "core/dump/dump_state.h"

#include <errno.h>
#include <stdlib.h>

#include "core/base/util.h"

#define TRIES 10

static struct dump_thread *find(const struct dump_process *process, uint32_t tid)
{
	for (size_t i = 0; tid && i < process->n_threads; i++)
		if (process->threads[i].tid == tid)
			return &process->threads[i];
	return NULL;
}

/* Returns true if the thread is blocked on a lock. A thread that ran while it was read is in no
 * circle. */
static bool waits(const struct dump_process *process, const struct dump_thread *thread)
{
	return thread->lock == LOCK_WAITED && (process->is_core || thread->look.tid);
}

static void mark_circle(struct dump_process *process, struct dump_thread *first)
{
	struct dump_thread *at = first;

	first->circle = first->tid;
	first->deadlocked = false;
	for (size_t i = 0; at && waits(process, at) && i < process->n_threads; i++) {
		at = find(process, at->holder);
		if (at == first) {
			first->deadlocked = true;
			return;
		}
		if (at)
			first->circle = min_of(first->circle, at->tid);
	}
}

/* Marks the circles. Returns the number of threads in circles. */
static size_t mark_circles(struct dump_process *process)
{
	size_t n = 0;

	for (size_t i = 0; i < process->n_threads; i++) {
		mark_circle(process, &process->threads[i]);
		n += process->threads[i].deadlocked;
	}
	return n;
}

/* --- the second reading --- */

struct again {
	/* The threads of circles at the second reading; the others with their ids and stacks only.
	 */
	struct dump_process process;
	struct thread_now *looks; /* states at the first check; .tid 0: the thread does not wait */
	bool *same;		  /* the thread is in a circle in which no wait changed */
	bool *proven;
};

static bool is_candidate(const struct dump_process *process, const struct again *again, size_t i)
{
	return process->threads[i].deadlocked && !again->proven[i];
}

static void look(const struct dump *dump, uint32_t tid, struct thread_now *ret)
{
	if (!thread__read(dump->process->pid, tid, ret) || !ret->off_cpu || !ret->sp ||
	    ret->state == 'R')
		ret->tid = 0;
}

static int read_again(struct dump *dump, const struct dump_process *process, struct again *again)
{
	int code = 0;

	for (size_t i = 0; i < process->n_threads; i++)
		if (is_candidate(process, again, i))
			look(dump, process->threads[i].tid, &again->looks[i]);
	for (size_t i = 0; !code && i < process->n_threads; i++) {
		const struct dump_thread *thread = &process->threads[i];
		struct dump_thread *to = &again->process.threads[i];

		*to = (struct dump_thread) { .tid = thread->tid,
					     .call = THREAD_NO_CALL,
					     .fs_base = thread->fs_base,
					     .stack_start = thread->stack_start,
					     .stack_end = thread->stack_end };
		if (is_candidate(process, again, i) && again->looks[i].tid)
			code = dump__take_again(dump, thread, &again->looks[i], to);
	}
	return code ? code : dump__find_holders(dump, &again->process);
}

static bool has_run(const struct dump *dump, const struct thread_now *since)
{
	struct thread_now now;

	return !since->tid || !thread__read(dump->process->pid, since->tid, &now) ||
	       !thread__has_not_run(since, &now);
}

static bool is_same(const struct dump_thread *a, const struct dump_thread *b)
{
	return a->lock == b->lock && a->lock_name == b->lock_name &&
	       a->lock_address == b->lock_address && a->holder == b->holder;
}

/* Replaces the thread's lock data. A thread that no longer waits has no lock, as its frames show
 * the former wait. */
static void replace_lock(struct dump_thread *to, const struct dump_thread *from)
{
	bool waited = from->lock == LOCK_WAITED;

	to->lock = waited ? from->lock : LOCK_UNKNOWN;
	to->lock_name = waited ? from->lock_name : NULL;
	to->lock_address = waited ? from->lock_address : 0;
	to->holder = waited ? from->holder : 0;
}

/* Marks circles in which no wait changed as proven. Replaces the other waits, as far as the second
 * reading shows one instant. */
static void compare(const struct dump *dump, struct dump_process *process, struct again *again)
{
	for (size_t i = 0; i < process->n_threads; i++)
		if (is_candidate(process, again, i) && has_run(dump, &again->looks[i]))
			again->looks[i].tid = 0;
	for (size_t i = 0; i < process->n_threads; i++) {
		const struct dump_thread *thread = &process->threads[i];
		bool same = is_candidate(process, again, i);

		for (size_t k = 0; same && k < process->n_threads; k++)
			if (process->threads[k].deadlocked &&
			    process->threads[k].circle == thread->circle)
				same = again->looks[k].tid &&
				       is_same(&process->threads[k], &again->process.threads[k]);
		again->same[i] = same;
	}
	for (size_t i = 0; i < process->n_threads; i++) {
		if (!is_candidate(process, again, i))
			continue;
		again->proven[i] = again->same[i];
		if (!again->same[i] && again->looks[i].tid)
			replace_lock(&process->threads[i], &again->process.threads[i]);
	}
}

static bool has_candidates(const struct dump_process *process, const struct again *again)
{
	for (size_t i = 0; i < process->n_threads; i++)
		if (is_candidate(process, again, i))
			return true;
	return false;
}

/* Drops unproven circles: the threads may no longer wait for those holders. */
static void drop_candidates(struct dump_process *process, const struct again *again)
{
	for (size_t i = 0; i < process->n_threads; i++)
		if (is_candidate(process, again, i)) {
			process->threads[i].deadlocked = false;
			process->threads[i].holder = 0;
		}
}

static int prove_circles(struct dump *dump, struct dump_process *process)
{
	size_t n = process->n_threads;
	struct again again = { .process = { .n_threads = n },
			       .looks = calloc(n, sizeof(*again.looks)),
			       .same = calloc(n, sizeof(*again.same)),
			       .proven = calloc(n, sizeof(*again.proven)) };
	int code = 0;

	again.process.threads = calloc(n, sizeof(*again.process.threads));
	if (!again.process.threads || !again.looks || !again.same || !again.proven) {
		code = -ENOMEM;
		goto out;
	}
	for (int i = 0; !code && i < TRIES && has_candidates(process, &again); i++) {
		code = read_again(dump, process, &again);
		if (code)
			break;
		compare(dump, process, &again);
		mark_circles(process);
	}
	drop_candidates(process, &again);
out:
	free(again.process.threads);
	free(again.looks);
	free(again.same);
	free(again.proven);
	return code;
}

int dump__find_deadlocks(struct dump *dump, struct dump_process *process)
{
	return mark_circles(process) && !process->is_core ? prove_circles(dump, process) : 0;
}
