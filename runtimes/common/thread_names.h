/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_THREAD_NAMES_H
#define BRAID_THREAD_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* What programs call their threads, where a runtime knows all of its threads at once: a search goes
 * through them and leaves all names here. For the hook thread_name of runtimes/runtime.h. */
struct thread_names;

/* What a search adds to. */
struct thread_finds;

/* Looks through all threads of a process; `process` is the copy of what thread_names__attach was
 * given, where a search may keep what the next one needs, too. 0 or -ENOMEM. */
typedef int (*thread_search_fn)(void *process, struct thread_finds *finds);

/* `tid` as the process sees it. Takes `name`, also on failure. 0 or -ENOMEM. */
int thread_finds__add(struct thread_finds *finds, uint32_t tid, char *name);

/* `process_bytes`: of what is to be known of a process. NULL: out of memory. */
struct thread_names *thread_names__new(thread_search_fn search, size_t process_bytes);
void thread_names__free(struct thread_names *names); /* NULL is fine */

/* Replaces what was known of the address space. `process` is copied. 0 or -ENOMEM. */
int thread_names__attach(struct thread_names *names, uint32_t pid, uint32_t space,
			 const void *process);
void thread_names__detach(struct thread_names *names, uint32_t space); /* idempotent */

/* What thread_names__attach was given of a process; NULL: nothing. */
const void *thread_names__process(const struct thread_names *names, uint32_t pid);

/* As the hook, which is asked again when the kernel's name changes. No more than a tenth of the
 * time is spent on searching: a thread that another one's search has found may be told by the name
 * that it had then, so long ago at most. With `kernel` NULL, which is for the end, all threads are
 * searched, unless that was done for another one's end just before. */
int thread_names__get(struct thread_names *names, uint32_t pid, uint32_t tid, const char *kernel,
		      char *buf, size_t size);

#endif
