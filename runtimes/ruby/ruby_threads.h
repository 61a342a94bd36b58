/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_THREADS_H
#define BRAID_RUBY_THREADS_H

#include <stdint.h>

#include "runtimes/common/thread_names.h"
#include "runtimes/ruby/ruby_objects.h"

/* The threads of a Ruby process: those of its main ractor. */

/* The virtual machine; 0: it has none yet, or it cannot be told. */
uint64_t ruby_threads__vm(struct ruby_reader *reader);

/* Is there an rb_thread_t of that virtual machine? */
bool ruby_threads__is_one(struct ruby_reader *reader, uint64_t vm, uint64_t thread);

/* The main thread's rb_thread_t, or another one's that the virtual machine knows directly. 0: none.
 */
uint64_t ruby_threads__first(struct ruby_reader *reader, uint64_t vm);

/* The native thread that it has: its id in its own PID namespace, and its struct pthread, which is
 * its fs base. 0: none now, or not known. */
uint32_t ruby_threads__tid(struct ruby_reader *reader, uint64_t thread);
uint64_t ruby_threads__fs_base(struct ruby_reader *reader, uint64_t thread);

/* What Ruby programs call their threads: Thread#name, or the place of its block as Ruby tells the
 * kernel, which cuts it. A thread_search_fn. `process`: struct ruby_reader. */
int ruby_threads__search(void *process, struct thread_finds *finds);

#endif
