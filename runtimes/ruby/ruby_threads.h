/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_THREADS_H
#define BRAID_RUBY_THREADS_H

#include <stdint.h>

#include "runtimes/common/thread_names.h"
#include "runtimes/ruby/ruby_objects.h"

/* The threads of a Ruby process, limited to its main ractor. */

/* Returns the virtual machine; 0: none yet, or not found. */
uint64_t ruby_threads__vm(struct ruby_reader *reader);

/* Returns true if @thread is an rb_thread_t of that virtual machine. */
bool ruby_threads__is_one(struct ruby_reader *reader, uint64_t vm, uint64_t thread);

/* Returns the rb_thread_t of the main thread, or of another one to which the virtual machine
 * points directly. 0: none. */
uint64_t ruby_threads__first(struct ruby_reader *reader, uint64_t vm);

/* Return the native thread of an rb_thread_t: its id in its own PID namespace, and its struct
 * pthread, which is its fs base. 0: none now, or unknown. */
uint32_t ruby_threads__tid(struct ruby_reader *reader, uint64_t thread);
uint64_t ruby_threads__fs_base(struct ruby_reader *reader, uint64_t thread);

/* Finds the names of threads in Ruby programs: Thread#name, or the place of the thread's block,
 * which Ruby also passes to the kernel, truncated. A thread_search_fn. `process`: struct
 * ruby_reader. */
int ruby_threads__search(void *process, struct thread_finds *finds);

#endif
