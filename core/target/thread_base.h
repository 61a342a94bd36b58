/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_THREAD_BASE_H
#define BRAID_THREAD_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"

/* Finds the thread-local data of threads: the fs base, which /proc does not show for a running
 * thread. The struct pthread of glibc and musl begins with its own address, and contains the
 * thread's id. */
struct thread_bases;

/* Creates a search in the mappings of process @pid. @memory is borrowed. Returns 0 or -ENOMEM. */
int thread_bases__new(uint32_t pid, const struct memory *memory, struct thread_bases **ret);
void thread_bases__free(struct thread_bases *bases); /* NULL is fine */

/* Returns the fs base of the thread @inner_tid (its id in its own PID namespace), or 0. @sp is its
 * stack pointer; 0: unknown, then the memory above the stack pointer is not searched. */
uint64_t thread_bases__find(struct thread_bases *bases, uint32_t inner_tid, uint64_t sp);

/* Returns true if the process can write all of these bytes, according to its private mappings. */
bool thread_bases__can_write(const struct thread_bases *bases, uint64_t address, size_t size);

#endif
