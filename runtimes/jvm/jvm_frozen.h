/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_FROZEN_H
#define BRAID_JVM_FROZEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "runtimes/jvm/jvm_objects.h"

/* The stack of a virtual thread that runs on no other: it lies in objects of the heap, the newest
 * frames in the first (jdk.internal.vm.StackChunk). */
struct jvm_chunks {
	const struct jvm_objects *objects; /* borrowed */
	uint64_t class;
	uint32_t parent, size, sp, pc;
	uint32_t bottom;      /* where the outermost frame ends, or ... */
	bool bottom_is_after; /* ... how many words are behind it (until JDK 22) */
	uint32_t stack;	      /* where the words begin */
};

/* As jvm_containers__find. */
int jvm_chunks__find(const struct jvm_objects *objects, struct jvm_chunks *ret);

/* The same stack as a thread would have it that runs these frames, at addresses that no process
 * has. */
struct jvm_frozen {
	struct memory_patch *words; /* owned */
	size_t n, cap;
	uint64_t pc, sp, fp; /* of the innermost frame */
	bool is_cut;	     /* there are more frames than were read */
};

/* `chunk`: the first one. 0, with n 0 if there are no frames; -EBADMSG: what is there is none, or
 * changes; -EFAULT, -ESRCH, -ENOMEM. jvm_frozen__done after any end; what is in `ret` is used
 * again. */
int jvm_frozen__read(const struct jvm_chunks *chunks, uint64_t chunk, struct jvm_frozen *ret);
void jvm_frozen__done(struct jvm_frozen *frozen);

#endif
