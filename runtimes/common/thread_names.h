/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_THREAD_NAMES_H
#define BRAID_THREAD_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* Names that programs give to their threads, for runtimes that have a list of all threads. One
 * search goes through the list and stores all names here. For the hook thread_name of
 * runtimes/runtime.h.
 */
struct thread_names;

/* The result of a search. */
struct thread_finds;

/* Searches all threads of a process. `process` is the copy of the caller's data that
 * thread_names__attach made; a search may store its own state there. Returns 0 or -ENOMEM. */
typedef int (*thread_search_fn)(void *process, struct thread_finds *finds);

/* Adds a thread; `tid` as the process sees it. Takes ownership of `name`, also on failure. Returns
 * 0 or -ENOMEM. */
int thread_finds__add(struct thread_finds *finds, uint32_t tid, char *name);

/* `process_bytes`: size of the caller's data of a process. Returns NULL if out of memory. */
struct thread_names *thread_names__new(thread_search_fn search, size_t process_bytes);
void thread_names__free(struct thread_names *names); /* NULL is fine */

/* Replaces the data of the address space by a copy of `process`. Returns 0 or -ENOMEM. */
int thread_names__attach(struct thread_names *names, uint32_t pid, uint32_t space,
			 const void *process);
void thread_names__detach(struct thread_names *names, uint32_t space); /* idempotent */

/* Returns the data of a process that thread_names__attach copied, or NULL. The caller may change
 * the data. */
void *thread_names__process(const struct thread_names *names, uint32_t pid);

/* As the hook thread_name, which is called again when the kernel's name changes. At most a tenth of
 * the time is spent on searches: a thread may get the name that it had in the search for another
 * thread. `kernel` NULL means the end of the recording: all threads are searched, unless the call
 * for another thread has just done so. */
int thread_names__get(struct thread_names *names, uint32_t pid, uint32_t tid, const char *kernel,
		      char *buf, size_t size);

#endif
