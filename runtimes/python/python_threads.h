/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_THREADS_H
#define BRAID_PYTHON_THREADS_H

#include <stdint.h>

#include "runtimes/common/thread_names.h"
#include "runtimes/python/python_versions.h"

/* Names of Python's threads: threading.Thread.name. CPython 3.8 to 3.14. */
struct python_threads {
	uint32_t pid;
	struct python_version version;
	uint64_t interpreters; /* address of the pointer to the first interpreter */
};

/* A thread_search_fn. `process`: struct python_threads. */
int python_threads__search(void *process, struct thread_finds *finds);

#endif
