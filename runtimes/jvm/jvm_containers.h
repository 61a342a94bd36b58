/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_CONTAINERS_H
#define BRAID_JVM_CONTAINERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/jvm/jvm_objects.h"

/* The virtual threads that the JVM itself tracks in its containers of threads
 * (jdk.internal.vm.ThreadContainers). These are threads of executors and scopes, and threads
 * that were started directly unless an option disables their tracking. JDK 21 on. */
struct jvm_containers {
	const struct jvm_objects *objects; /* borrowed */
	/* Addresses of classes (Klass). `root` is 0 if no container tracks directly started
	 * threads. */
	uint64_t containers, virtual_thread, root;
	/* Offsets of fields: */
	uint32_t scopes, previous;  /* Thread, StackableScope */
	uint32_t map, table;	    /* a set's, ConcurrentHashMap */
	uint32_t hash, key, next;   /* ConcurrentHashMap.Node */
	uint32_t referent, threads; /* Reference, ThreadFlock */
};

#define JVM_VIRTUAL_SINCE 21 /* the JDK whose programs have virtual threads without an option */

/* Finds the classes and fields. Returns 0, or -ENOENT if the program has never made a virtual
 * thread. Returns -ENOTSUP if the JVM's tables lack a field, or if it has no containers (until
 * JDK 20). Other errors are -EFAULT, -ESRCH and -ENOMEM. */
int jvm_containers__find(const struct jvm_objects *objects, struct jvm_containers *ret);

struct jvm_virtual_list {
	uint64_t *objects; /* java.lang.VirtualThread, each once, by rising address; owned */
	size_t n, cap;
	bool is_untracked; /* directly started threads are missing */
	bool is_cut;	   /* there are more threads than in the list */
};

/* Lists the virtual threads. `platform` are the `n` objects (java.lang.Thread) of the other
 * threads, whose scopes may have more virtual threads. Objects move, so that the list soon
 * becomes stale. Returns 0 or -ENOMEM. The caller frees the objects in any case. */
int jvm_containers__list(const struct jvm_containers *containers, const uint64_t *platform,
			 size_t n, struct jvm_virtual_list *ret);

#endif
