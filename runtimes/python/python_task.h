/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_TASK_H
#define BRAID_PYTHON_TASK_H

#include "core/base/memory.h"
#include "runtimes/python/python_asyncio.h"
#include "runtimes/python/python_frames.h"
#include "runtimes/python/python_objects.h"

/* One task of asyncio: its members, the coroutines that it awaits, and the object at the end. The
 * process runs, so that the task may change meanwhile.
 * CPython 3.8 to 3.15. */

/* Properties of a type, by its own name and those of its bases. */
enum python_kind {
	PYTHON_COROUTINE = 1 << 0, /* also generators: their frames are the same */
	PYTHON_CODE = 1 << 1,
	PYTHON_C_FUTURE = 1 << 2, /* tasks, too */
	PYTHON_C_TASK = 1 << 3,
	PYTHON_FUTURE = 1 << 4, /* named so, written in Python */
	PYTHON_TASK = 1 << 5,	/* named so, written in Python */
	PYTHON_WRAPPER = 1 << 6,
};

#define PYTHON_TYPES 64 /* slots of the cache, a power of two */

/* State of one poll of a process's tasks. */
struct python_task_reader {
	struct python_reader reader;
	const struct python_layout *layout;
	const struct python_asyncio *asyncio; /* NULL: the process does not describe its tasks */
	uint64_t thread;		      /* the PyThreadState that the walker reads */
	uint64_t fs_base;		      /* fs base of that thread */
	unsigned coroutine_at; /* offset in a task that C code has made; 0: not found yet */
	unsigned future_bytes; /* size of a future that C code has made; 0: none found yet */
	struct python_type {
		uint64_t type;
		unsigned kinds; /* bits of enum python_kind */
		unsigned bytes; /* size of an object */
	} types[PYTHON_TYPES];	/* by a hash of their address */
};

#define PYTHON_CHAIN_MAX 256 /* coroutines of one task */

struct python_coroutines {
	uint64_t frames[PYTHON_CHAIN_MAX]; /* outermost first */
	size_t n;
	uint64_t awaited; /* object that the innermost one awaits; 0: none */
};

/* Objects of a task; 0: none. */
struct python_task {
	uint64_t at;
	uint64_t coroutine, name;
	uint64_t future; /* that it waits for; 0: it runs, is ready to run, or is done */
};

/* Prepares @ret for the process; .layout is NULL if its version has no layout. */
void python_task_reader__begin(struct python_task_reader *ret, uint32_t pid,
			       const struct python_version *version, unsigned reads);

unsigned python_task__kinds(struct python_task_reader *reader, uint64_t object);
bool python_task__is_task(struct python_task_reader *reader, uint64_t object);

void python_task__read(struct python_task_reader *reader, uint64_t task, struct python_task *ret);
void python_task__follow(struct python_task_reader *reader, uint64_t coroutine,
			 struct python_coroutines *ret);

/* Returns true if the task waits for a future that has no result yet. */
bool python_task__is_parked(struct python_task_reader *reader, const struct python_task *task);

/* Returns the task's name, owned by the caller; NULL: unreadable, or out of memory. */
char *python_task__name(struct python_task_reader *reader, const struct python_task *task);

/* Patches of a process's memory in which the reader's thread runs the chain, which is not empty. */
#define PYTHON_SHIM_WORDS  16
#define PYTHON_PATCHES_MAX (PYTHON_CHAIN_MAX + PYTHON_SHIM_WORDS + 8)
size_t python_task__patches(struct python_task_reader *reader,
			    const struct python_coroutines *chain,
			    struct memory_patch patches[PYTHON_PATCHES_MAX]);

#endif
