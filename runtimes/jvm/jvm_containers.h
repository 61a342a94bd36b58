/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_CONTAINERS_H
#define BRAID_JVM_CONTAINERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/jvm/jvm_objects.h"

/* The virtual threads of a JVM that it knows itself, by its containers of threads
 * (jdk.internal.vm.ThreadContainers): those that were started directly, unless it was told not to
 * track them, and those of executors and scopes. JDK 21 on. */
struct jvm_containers {
	const struct jvm_objects *objects; /* borrowed */
	/* Classes: Klass. */
	uint64_t containers, virtual_thread, root; /* `root`: 0 if there is none that tracks */
	/* Of objects on the way: */
	uint32_t scopes, previous;  /* Thread, StackableScope */
	uint32_t map, table;	    /* a set's, ConcurrentHashMap */
	uint32_t hash, key, next;   /* ConcurrentHashMap.Node */
	uint32_t referent, threads; /* Reference, ThreadFlock */
};

#define JVM_VIRTUAL_SINCE 21 /* the JDK whose programs have virtual threads without an option */

/* 0; -ENOENT: the program has never made a virtual thread; -ENOTSUP: the JVM tells too little, or
 * has none (until JDK 20); -EFAULT, -ESRCH, -ENOMEM. */
int jvm_containers__find(const struct jvm_objects *objects, struct jvm_containers *ret);

struct jvm_virtual_list {
	uint64_t *objects; /* java.lang.VirtualThread, each once, by rising address; owned */
	size_t n, cap;
	bool is_untracked; /* those that were started directly are not among them */
	bool is_cut;	   /* there are more */
};

/* `platform`: the `n` objects (java.lang.Thread) of the other threads, whose scopes may have more
 * of them. As objects move, the list is not for long. 0, or -ENOMEM. free() the objects in any
 * case. */
int jvm_containers__list(const struct jvm_containers *containers, const uint64_t *platform,
			 size_t n, struct jvm_virtual_list *ret);

#endif
