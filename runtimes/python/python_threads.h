/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_THREADS_H
#define BRAID_PYTHON_THREADS_H

#include <stdint.h>

#include "runtimes/python/python_versions.h"

/* What Python programs call their threads: threading.Thread.name. CPython 3.8 to 3.14. */
struct python_threads;

struct python_threads *python_threads__new(void);	   /* NULL: out of memory */
void python_threads__free(struct python_threads *threads); /* NULL is fine */

/* A process with this version of CPython, which has the pointer to its first interpreter at
 * `interpreters`. Replaces what was known of the address space. 0 or -ENOMEM. */
int python_threads__attach(struct python_threads *threads, uint32_t pid, uint32_t space,
			   const struct python_version *version, uint64_t interpreters);
void python_threads__detach(struct python_threads *threads, uint32_t space); /* idempotent */

/* As the hook thread_name of runtimes/runtime.h. Looks through all threads at once, and remembers
 * them; for a thread that is not among these no more than a tenth of the time is spent on that. */
int python_threads__name(struct python_threads *threads, uint32_t pid, uint32_t tid, char *buf,
			 size_t size);

#endif
