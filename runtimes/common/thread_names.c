// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/common/thread_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "bpf/shared.h"
#include "core/base/util.h"
#include "core/target/procfs.h"

#define THREADS_MAX 65536
#define BUSY_SHARE  10 /* pause between searches, as a multiple of the last search's duration */

/* A thread may be sampled before the runtime has registered it. Many threads never get a name,
 * since they run none of its code, and some programs change the kernel's name all the time. So the
 * pause before the next search for a thread doubles. */
#define PAUSE_MIN_NS (NSEC_PER_SEC / 100)
#define PAUSE_MAX_NS (4 * NSEC_PER_SEC)

struct thread {
	UT_hash_handle hh;
	uint32_t tid; /* in its own PID namespace */
	char *name;   /* NULL: none found so far; the next search is not before next_ns */
	uint64_t next_ns, pause_ns;
	uint32_t search; /* number of the last search that found the thread */
	/* The kernel's name at the last request; "": there was none. */
	char kernel[THREAD_NAME_BYTES + 1];
};

struct thread_finds {
	UT_hash_handle hh;
	uint32_t pid, space;
	struct thread *threads;
	uint64_t next_ns; /* not searched again before */
	uint32_t searches;
	bool ended; /* searched for the end */
	_Alignas(max_align_t) char process[];
};

struct thread_names {
	thread_search_fn search;
	size_t process_bytes;
	struct thread_finds *by_space;
};

struct thread_names *thread_names__new(thread_search_fn search, size_t process_bytes)
{
	struct thread_names *names = calloc(1, sizeof(*names));

	if (names)
		*names = (struct thread_names) { search, process_bytes, NULL };
	return names;
}

static void forget_thread(struct thread_finds *finds, struct thread *thread)
{
	HASH_DEL(finds->threads, thread);
	free(thread->name);
	free(thread);
}

void thread_names__detach(struct thread_names *names, uint32_t space)
{
	struct thread *thread, *next;
	struct thread_finds *finds;

	HASH_FIND(hh, names->by_space, &space, sizeof(space), finds);
	if (!finds)
		return;
	HASH_DEL(names->by_space, finds);
	HASH_ITER (hh, finds->threads, thread, next)
		forget_thread(finds, thread);
	free(finds);
}

void thread_names__free(struct thread_names *names)
{
	if (!names)
		return;
	while (names->by_space)
		thread_names__detach(names, names->by_space->space);
	free(names);
}

int thread_names__attach(struct thread_names *names, uint32_t pid, uint32_t space,
			 const void *process)
{
	struct thread_finds *finds;

	thread_names__detach(names, space);
	finds = calloc(1, sizeof(*finds) + names->process_bytes);
	if (!finds)
		return -ENOMEM;
	finds->pid = pid;
	finds->space = space;
	memcpy(finds->process, process, names->process_bytes);
	HASH_ADD(hh, names->by_space, space, sizeof(space), finds);
	if (!finds->hh.tbl) {
		free(finds);
		return -ENOMEM;
	}
	return 0;
}

/* Returns the entry of a thread, which is added if necessary; NULL: out of memory. */
static struct thread *get_thread(struct thread_finds *finds, uint32_t tid)
{
	struct thread *thread;

	HASH_FIND(hh, finds->threads, &tid, sizeof(tid), thread);
	if (thread)
		return thread;
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	*thread = (struct thread) { .tid = tid, .pause_ns = PAUSE_MIN_NS };
	HASH_ADD(hh, finds->threads, tid, sizeof(tid), thread);
	if (!thread->hh.tbl) {
		free(thread);
		return NULL;
	}
	return thread;
}

int thread_finds__add(struct thread_finds *finds, uint32_t tid, char *name)
{
	struct thread *thread = NULL;

	if (HASH_COUNT(finds->threads) < THREADS_MAX)
		thread = get_thread(finds, tid);
	else
		HASH_FIND(hh, finds->threads, &tid, sizeof(tid), thread);
	if (!thread) {
		free(name);
		return HASH_COUNT(finds->threads) < THREADS_MAX ? -ENOMEM : 0;
	}
	free(thread->name);
	thread->name = name;
	thread->search = finds->searches;
	return 0;
}

static struct thread_finds *find_process(const struct thread_names *names, uint32_t pid)
{
	struct thread_finds *finds;

	for (finds = names->by_space; finds; finds = finds->hh.next)
		if (finds->pid == pid)
			break;
	return finds;
}

void *thread_names__process(const struct thread_names *names, uint32_t pid)
{
	struct thread_finds *finds = find_process(names, pid);

	return finds ? finds->process : NULL;
}

/* Searches all threads, mainly for the name of @thread. Drops threads that have a name and no
 * longer exist, since their numbers may be reused. Returns 0 or -ENOMEM. */
static int search_for(struct thread_names *names, struct thread_finds *finds, struct thread *thread)
{
	uint64_t begin_ns = thread_cpu_ns();
	struct thread *at, *next;
	char *before = thread->name;
	int ret;

	thread->name = NULL;
	finds->searches++;
	ret = names->search(finds->process, finds);
	finds->next_ns = now_ns() + BUSY_SHARE * (thread_cpu_ns() - begin_ns);
	if (!thread->name || (before && strcmp(before, thread->name) == 0)) {
		thread->next_ns = now_ns() + thread->pause_ns;
		thread->pause_ns = min_of(2 * thread->pause_ns, PAUSE_MAX_NS);
	}
	free(before);
	if (ret)
		return ret;
	HASH_ITER (hh, finds->threads, at, next)
		if (at->name && at->search != finds->searches)
			forget_thread(finds, at);
	return 0;
}

int thread_names__get(struct thread_names *names, uint32_t pid, uint32_t tid, const char *kernel,
		      char *buf, size_t size)
{
	struct thread_finds *finds = find_process(names, pid);
	struct thread *thread;
	uint64_t time_ns = now_ns();
	bool ends;
	int ret = 0;

	if (!finds)
		return -ENOENT;
	ends = !kernel && !finds->ended;
	finds->ended = !kernel;
	thread = get_thread(finds, procfs__namespace_tid(pid, tid));
	if (!thread)
		return -ENOMEM;
	if (ends) {
		ret = search_for(names, finds, thread);
	} else if (kernel && (!thread->name || strcmp(thread->kernel, kernel) != 0)) {
		bool may_search = time_ns >= max_of(finds->next_ns, thread->next_ns);

		/* Without a search of its own, a thread may use the name that another thread's
		 * search found. If the kernel's name has changed since, that name is outdated. */
		if (!may_search && (!thread->name || thread->kernel[0]))
			return -EAGAIN;
		ret = may_search ? search_for(names, finds, thread) : 0;
	}
	if (ret)
		return ret;
	if (!thread->name)
		return -EAGAIN;
	if (kernel)
		snprintf(thread->kernel, sizeof(thread->kernel), "%s", kernel);
	snprintf(buf, size, "%s", thread->name);
	return 0;
}
