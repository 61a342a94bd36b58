/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_THREADS_H
#define BRAID_JVM_THREADS_H

#include <stdint.h>

#include "runtimes/common/thread_names.h"
#include "runtimes/jvm/jvm_objects.h"
#include "runtimes/jvm/jvm_vm.h"
#include "runtimes/runtime.h"

/* The JVM's list of its Java threads. JDK 8 on. */

/* Finds the names that Java programs give their threads; a thread_search_fn. `process` is a
 * struct jvm_threads, in which the caller sets the JVM. The other members are found once. */
struct jvm_threads {
	const struct jvm_vm *vm;
	bool is_resolved; /* the rest was found, or failed permanently with `code` */
	int code;
	struct jvm_objects objects;
	uint64_t thread_object; /* offset in JavaThread */
	bool is_handle;		/* the field is an OopHandle: JDK 16 on */
	uint32_t name;		/* offset in java.lang.Thread */
};
int jvm_threads__search(void *process, struct thread_finds *finds);

/* Returns the number of threads of the JVM whose name is unreadable now; 0 as well if no name
 * can be read. */
size_t jvm_threads__unnamed(const struct jvm_vm *vm);

/* Gets the java.lang.Thread of each thread. The caller frees the list. Returns 0, -ENOTSUP,
 * -EFAULT, -ESRCH or -ENOMEM. */
int jvm_threads__objects(const struct jvm_vm *vm, uint64_t **ret, size_t *ret_n);

/* Finds the thread that holds an ObjectMonitor. */
struct runtime_holder jvm_threads__holder(const struct jvm_vm *vm, uint64_t monitor);

#endif
