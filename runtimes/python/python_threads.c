// SPDX-License-Identifier: GPL-2.0-or-later
/* threading._active has an entry for each thread that Python code runs in (Lib/threading.py): its
 * Thread, with _name and _native_id. The way there: interpreter, its modules, "threading",
 * "_active". Names are read when a thread is first seen. */
#include "runtimes/python/python_threads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "core/base/util.h"
#include "core/target/procfs.h"
#include "runtimes/python/python_objects.h"

#define READS_MAX   200000 /* of one search, some 0.5 us each */
#define THREADS_MAX 65536
#define BUSY_SHARE  10 /* a search waits for so many times what the last one took */

/* A thread may be seen before Python knows it, or has read the module threading; many never get a
 * name, as they run no Python code. So these are looked for again, more and more rarely. */
#define PAUSE_MIN_NS (NSEC_PER_SEC / 100)
#define PAUSE_MAX_NS (4 * NSEC_PER_SEC)

struct thread {
	UT_hash_handle hh;
	uint32_t tid; /* in its own PID namespace */
	char *name;   /* NULL: it has none so far, and is not looked for again before ... */
	uint64_t next_ns, pause_ns;
};

struct process {
	UT_hash_handle hh;
	uint32_t pid, space;
	struct python_version version;
	uint64_t interpreters;
	struct thread *threads;
	uint64_t next_ns; /* not searched again before */
};

struct python_threads {
	struct process *by_space;
};

struct python_threads *python_threads__new(void)
{
	return calloc(1, sizeof(struct python_threads));
}

/* What was found some time ago may be of a thread that has ended, whose number has another now. */
static void forget_threads(struct process *process, bool also_nameless)
{
	struct thread *thread, *next;

	HASH_ITER (hh, process->threads, thread, next) {
		if (!thread->name && !also_nameless)
			continue;
		HASH_DEL(process->threads, thread);
		free(thread->name);
		free(thread);
	}
}

static void process__free(struct process *process)
{
	forget_threads(process, true);
	free(process);
}

void python_threads__detach(struct python_threads *threads, uint32_t space)
{
	struct process *process;

	HASH_FIND(hh, threads->by_space, &space, sizeof(space), process);
	if (!process)
		return;
	HASH_DEL(threads->by_space, process);
	process__free(process);
}

void python_threads__free(struct python_threads *threads)
{
	if (!threads)
		return;
	while (threads->by_space)
		python_threads__detach(threads, threads->by_space->space);
	free(threads);
}

int python_threads__attach(struct python_threads *threads, uint32_t pid, uint32_t space,
			   const struct python_version *version, uint64_t interpreters)
{
	struct process *process;

	python_threads__detach(threads, space);
	if (version->minor < 8 || !version->modules)
		return 0;
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	*process = (struct process) {
		.pid = pid, .space = space, .version = *version, .interpreters = interpreters
	};
	HASH_ADD(hh, threads->by_space, space, sizeof(space), process);
	if (!process->hh.tbl) {
		free(process);
		return -ENOMEM;
	}
	return 0;
}

struct search {
	struct process *process;
	struct python_reader reader;
};

/* The entry of a thread, which it gets now if it has none; NULL: out of memory. */
static struct thread *get_thread(struct process *process, uint32_t tid)
{
	struct thread *thread;

	HASH_FIND(hh, process->threads, &tid, sizeof(tid), thread);
	if (thread)
		return thread;
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	*thread = (struct thread) { .tid = tid, .pause_ns = PAUSE_MIN_NS };
	HASH_ADD(hh, process->threads, tid, sizeof(tid), thread);
	if (!thread->hh.tbl) {
		free(thread);
		return NULL;
	}
	return thread;
}

static int take_thread(void *ctx, uint64_t object)
{
	struct search *search = ctx;
	struct python_reader *reader = &search->reader;
	struct thread *thread;
	uint64_t id;
	char *name;

	if (!python_int__get(reader, python_object__get(reader, object, "_native_id"), &id) ||
	    id > INT32_MAX || HASH_COUNT(search->process->threads) >= THREADS_MAX)
		return 0;
	name = python_str__dup(reader, python_object__get(reader, object, "_name"));
	if (!name)
		return 0;
	thread = get_thread(search->process, id);
	if (!thread) {
		free(name);
		return -ENOMEM;
	}
	free(thread->name);
	thread->name = name;
	return 0;
}

/* The list of interpreters has the newest in front: the main one is the last. */
static int search_threads(struct process *process)
{
	struct search search = { process, { process->pid, &process->version, READS_MAX } };
	struct python_reader *reader = &search.reader;
	uint64_t interpreter, modules, module;
	int ret = 0;

	if (!python_reader__word(reader, process->interpreters, &interpreter))
		return 0;
	for (int i = 0; i < 256 && interpreter && ret >= 0; i++) {
		if (!python_reader__word(reader, interpreter + process->version.modules, &modules))
			break;
		module = python_dict__get(reader, modules, "threading");
		if (module)
			ret = python_dict__values(reader,
						  python_module__get(reader, module, "_active"),
						  take_thread, &search);
		if (!python_reader__word(reader, interpreter + process->version.offsets.interp_next,
					 &interpreter))
			break;
	}
	return ret;
}

int python_threads__name(struct python_threads *threads, uint32_t pid, uint32_t tid, char *buf,
			 size_t size)
{
	uint64_t begin_ns = now_ns();
	struct process *process;
	struct thread *thread;
	int ret;

	for (process = threads->by_space; process; process = process->hh.next)
		if (process->pid == pid)
			break;
	if (!process)
		return -ENOENT;
	thread = get_thread(process, procfs__namespace_tid(pid, tid));
	if (!thread)
		return -ENOMEM;
	if (!thread->name) {
		if (begin_ns < max_of(process->next_ns, thread->next_ns))
			return -EAGAIN;
		forget_threads(process, false);
		ret = search_threads(process);
		process->next_ns = now_ns() + BUSY_SHARE * (now_ns() - begin_ns);
		if (ret)
			return ret;
	}
	if (!thread->name) {
		thread->next_ns = now_ns() + thread->pause_ns;
		thread->pause_ns = min_of(2 * thread->pause_ns, PAUSE_MAX_NS);
		return -EAGAIN;
	}
	snprintf(buf, size, "%s", thread->name);
	return 0;
}
