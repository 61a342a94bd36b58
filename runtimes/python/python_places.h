/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_PLACES_H
#define BRAID_PYTHON_PLACES_H

#include "runtimes/python/python_task.h"
#include "runtimes/python/python_threads.h"

/* Addresses of the tasks of asyncio in a process. */

struct python_found {
	struct python_found_task {
		uint64_t at;
		uint64_t interpreter;
		bool is_reference;   /* `at` is that of a weak reference to the task */
		uint32_t stands_for; /* tasks, with itself */
	} * list;		     /* owned */
	size_t n, cap;
	bool cut; /* there are more */
};

/* Reads the addresses of all tasks, up to 200,000. Sets reader->asyncio. Returns 0 or -ENOMEM. */
int python_places__all(struct python_threads *process, struct python_task_reader *reader,
		       struct python_found *ret);

/* Reads the addresses of a part of the tasks at limited cost. Each task has the same chance
 * 1 / stands_for, over several polls. Sets reader->asyncio. Returns 0 or -ENOMEM. */
int python_places__some(struct python_threads *process, struct python_task_reader *reader,
			struct python_found *ret);

/* Returns the task's address, or 0 if it was freed. */
uint64_t python_places__task(struct python_task_reader *reader,
			     const struct python_found_task *found);

/* Returns a random number below @n, which is not 0. */
uint64_t python_places__random(struct python_task_places *places, uint64_t n);

#endif
