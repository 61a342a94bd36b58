/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_THREAD_BASE_H
#define BRAID_THREAD_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

/* Where threads have their own data: the fs base, which /proc does not tell of a thread that is not
 * stopped. The struct pthread of glibc and musl begins with its own address, and has the thread's
 * id in it. */
struct thread_bases;

/* `pid`: whose mappings are searched; `memory` is borrowed. -ENOMEM. */
int thread_bases__new(uint32_t pid, const struct memory *memory, struct thread_bases **ret);
void thread_bases__free(struct thread_bases *bases); /* NULL is fine */

/* Of the thread with this id (in its own PID namespace), whose stack pointer is `sp`; 0: not known,
 * then only what was seen before is searched. 0: it was not found. */
uint64_t thread_bases__find(struct thread_bases *bases, uint32_t inner_tid, uint64_t sp);

/* Returns true if the process can write all of these bytes, as far as its private mappings show. */
bool thread_bases__can_write(const struct thread_bases *bases, uint64_t address, size_t size);

#endif
