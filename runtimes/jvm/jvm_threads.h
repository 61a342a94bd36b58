/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_THREADS_H
#define BRAID_JVM_THREADS_H

#include <stdint.h>

#include "runtimes/common/thread_names.h"
#include "runtimes/jvm/jvm_objects.h"
#include "runtimes/jvm/jvm_vm.h"
#include "runtimes/runtime.h"

/* The JVM's list of its Java threads. JDK 8 on. */

/* What Java programs call their threads: a thread_search_fn. `process`: struct jvm_threads, of
 * which the JVM is given; the rest is found once. */
struct jvm_threads {
	const struct jvm_vm *vm;
	bool is_known; /* the rest, or that it cannot be: */
	int code;
	struct jvm_objects objects;
	uint64_t thread_object; /* of JavaThread */
	bool is_handle;		/* that is an OopHandle: JDK 16 on */
	uint32_t name;		/* of java.lang.Thread */
};
int jvm_threads__search(void *process, struct thread_finds *finds);

/* Returns how many threads of the JVM have a name that cannot be read now; 0 as well if none can.
 */
size_t jvm_threads__unnamed(const struct jvm_vm *vm);

/* The java.lang.Thread of each of them. free() the list. -ENOTSUP, -EFAULT, -ESRCH, -ENOMEM. */
int jvm_threads__objects(const struct jvm_vm *vm, uint64_t **ret, size_t *ret_n);

/* The thread that holds an ObjectMonitor. */
struct runtime_holder jvm_threads__holder(const struct jvm_vm *vm, uint64_t monitor);

#endif
