/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_THREADS_H
#define BRAID_PYTHON_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/common/thread_names.h"
#include "runtimes/python/python_asyncio.h"
#include "runtimes/python/python_versions.h"

/* Places of asyncio's tasks in a process, as the last poll found them
 * (python_places.c). Zeroes: there was no poll yet. */
#define PYTHON_TASK_SETS 8
struct python_task_places {
	struct python_task_set {
		uint64_t interpreter;
		uint64_t n_modules; /* in sys.modules when the set was looked up */
		uint64_t set;	    /* set of weak references to tasks; 0: asyncio is not loaded */
	} sets[PYTHON_TASK_SETS];
	size_t n_sets;
	bool searched_lists, has_lists;
	struct python_asyncio asyncio; /* if has_lists */
	/* Lists that are too long for one poll are read in several polls, which are a round. */
	uint64_t list,
		node;	 /* head of the list and node with which the next poll begins; 0: none */
	uint64_t polls;	 /* number of polls in a round */
	uint64_t random; /* state of the generator */
	struct python_poll *poll; /* the poll that is under way */
};

/* Names of Python's threads: threading.Thread.name. CPython 3.8 to 3.14. */
struct python_threads {
	uint32_t pid;
	struct python_version version;
	uint64_t interpreters; /* address of the pointer to the first interpreter */
	struct python_task_places places;
};

/* A thread_search_fn. `process`: struct python_threads. */
int python_threads__search(void *process, struct thread_finds *finds);

#endif
