// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/python/python_tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/python/python_awaits.h"
#include "runtimes/python/python_places.h"
#include "runtimes/python/python_task.h"

#define READS_OF_DUMP 20000000 /* about 0.5 us each */
#define READS_OF_POLL 30000    /* and, of each task: */
#define READS_OF_TASK 2000

/* The task that on_task has. */
struct python_poll {
	struct python_task_reader reader;
	struct python_cache cache;
	uint64_t interpreter; /* the reader has its oldest thread */
	struct python_task task;
	struct python_coroutines chain;
	bool parked;
	uint64_t digest; /* hash of the places in the frames */
	runtime_task_fn on_task;
	void *ctx;
};

static uint64_t word_at(struct python_poll *poll, uint64_t at)
{
	return python_reader__at(&poll->reader.reader, at);
}

/* Sets the reader's thread to the interpreter's oldest one: threads are put in front of the list.
 */
static void choose_thread(struct python_poll *poll, uint64_t interpreter)
{
	const struct python_offsets *offsets = &poll->reader.reader.version->offsets;
	uint64_t at;

	if (interpreter == poll->interpreter)
		return;
	poll->interpreter = interpreter;
	poll->reader.thread = 0;
	at = word_at(poll, interpreter + offsets->interp_threads);
	for (; at; at = word_at(poll, at + PYTHON_TSTATE_NEXT))
		poll->reader.thread = at;
	poll->reader.fs_base = word_at(poll, poll->reader.thread + offsets->tstate_thread_id);
}

/* Reads the task and its coroutines. False: it is done, runs, or has not begun. A generator that
 * has nothing on its stack may be the innermost one. */
static bool read_task(struct python_poll *poll, uint64_t at)
{
	python_task__read(&poll->reader, at, &poll->task);
	python_task__follow(&poll->reader, poll->task.coroutine, &poll->chain);
	return poll->chain.n > 1 || (poll->chain.n && poll->chain.awaited);
}

/* --- changes --- */

/* Returns a number that changes if a coroutine of the task has run. */
static uint64_t digest_of(struct python_poll *poll)
{
	uint64_t ret = poll->task.future;

	for (size_t i = 0; i < poll->chain.n; i++)
		ret = (ret ^ poll->chain.frames[i] ^
		       word_at(poll, poll->chain.frames[i] +
					     poll->reader.reader.version->offsets.frame_instr)) *
		      0x9E3779B97F4A7C15ULL;
	return ret;
}

/* Returns true if the task waits for the future that it has awaited, and its coroutines have not
 * run since they were read. A future may be another one at the same address, so that instructions
 * are compared, too. */
bool python_tasks__is_unchanged(struct python_threads *process)
{
	struct python_poll *poll = process->places.poll;
	struct python_task now;
	bool ret;

	if (!poll)
		return false;
	poll->reader.reader.cache = NULL;
	python_task__read(&poll->reader, poll->task.at, &now);
	ret = now.future == poll->task.future && now.coroutine == poll->task.coroutine &&
	      digest_of(poll) == poll->digest &&
	      python_task__is_parked(&poll->reader, &now) == poll->parked;
	poll->reader.reader.cache = &poll->cache;
	return ret;
}

/* --- one task --- */

static bool read_found(struct python_poll *poll, const struct python_found_task *found)
{
	choose_thread(poll, found->interpreter);
	if (!poll->reader.thread || !read_task(poll, python_places__task(&poll->reader, found)))
		return false;
	poll->parked = python_task__is_parked(&poll->reader, &poll->task);
	return true;
}

static int offer(struct python_poll *poll, double stands_for)
{
	struct memory_patch patches[PYTHON_PATCHES_MAX];
	char reason[PYTHON_REASON_BYTES], *name, *other = NULL;
	struct python_task awaited;
	bool has_reason;
	int ret;

	poll->digest = digest_of(poll);
	name = python_task__name(&poll->reader, &poll->task);
	python_awaits__reason(&poll->reader, &poll->task, &poll->chain, reason);
	if (poll->task.future && python_task__is_task(&poll->reader, poll->task.future)) {
		python_task__read(&poll->reader, poll->task.future, &awaited);
		other = python_task__name(&poll->reader, &awaited);
	}
	/* A dump shows the other task instead. */
	has_reason = poll->parked && reason[0] && !(other && !stands_for);
	ret = poll->on_task(poll->ctx, &(struct runtime_task) {
					       .name = name ?: "",
					       .waits_for = other,
					       .state = poll->parked ? NULL : "ready",
					       .reason = has_reason ? reason : NULL,
					       .stands_for = stands_for,
					       .fs_base = poll->reader.fs_base,
					       .patches = patches,
					       .n_patches = python_task__patches(
						       &poll->reader, &poll->chain, patches) });
	free(name);
	free(other);
	return ret;
}

/* --- polls --- */

/* NULL: out of memory. */
static struct python_poll *begin_poll(struct python_threads *process, unsigned reads,
				      runtime_task_fn on_task, void *ctx)
{
	struct python_poll *poll = calloc(1, sizeof(*poll));

	if (!poll)
		return NULL;
	python_task_reader__begin(&poll->reader, process->pid, &process->version, reads);
	poll->reader.reader.cache = &poll->cache;
	poll->on_task = on_task;
	poll->ctx = ctx;
	process->places.poll = poll;
	return poll;
}

static void end_poll(struct python_threads *process)
{
	free(process->places.poll);
	process->places.poll = NULL;
}

/* --- a dump --- */

int python_tasks__list(struct python_threads *process, bool *ret_cut, runtime_task_fn on_task,
		       void *ctx)
{
	struct python_poll *poll = begin_poll(process, READS_OF_DUMP, on_task, ctx);
	struct python_found found = {};
	int ret = 0;

	if (!poll)
		return -ENOMEM;
	if (poll->reader.layout)
		ret = python_places__all(process, &poll->reader, &found);
	for (size_t i = 0; !ret && i < found.n; i++) {
		memset(poll->cache.at, 0, sizeof(poll->cache.at));
		if (read_found(poll, &found.list[i]))
			ret = offer(poll, 0);
	}
	*ret_cut = found.cut || !poll->reader.reader.reads_left;
	free(found.list);
	end_poll(process);
	return ret;
}

/* --- a poll of a part of them --- */

/* Moves a random choice of @n tasks to the front of the list. */
static void shuffle(struct python_threads *process, struct python_found *found, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t other = i + python_places__random(&process->places, found->n - i);
		struct python_found_task task = found->list[i];

		found->list[i] = found->list[other];
		found->list[other] = task;
	}
}

int python_tasks__sample(struct python_threads *process, uint32_t most, runtime_task_fn on_task,
			 void *ctx)
{
	struct python_poll *poll =
		begin_poll(process, READS_OF_POLL + most * READS_OF_TASK, on_task, ctx);
	struct python_found found = {};
	size_t n;
	int ret = 0;

	if (!poll)
		return -ENOMEM;
	if (poll->reader.layout)
		ret = python_places__some(process, &poll->reader, &found);
	n = min_of(found.n, (size_t)most);
	if (!ret && n < found.n)
		shuffle(process, &found, n);
	for (size_t i = 0; !ret && i < n; i++)
		if (read_found(poll, &found.list[i]) && poll->parked)
			ret = offer(poll, (double)found.list[i].stands_for * found.n / n);
	free(found.list);
	end_poll(process);
	return ret;
}
