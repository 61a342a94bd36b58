/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_FROZEN_H
#define BRAID_JVM_FROZEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "runtimes/jvm/jvm_objects.h"

/* The stack of a virtual thread that is not mounted. It lies in objects of the heap, the newest
 * frames in the first object (jdk.internal.vm.StackChunk). */
struct jvm_chunks {
	const struct jvm_objects *objects; /* borrowed */
	uint64_t class;
	uint32_t parent, size, sp, pc;
	uint32_t bottom;      /* the end of the outermost frame, or ... */
	bool bottom_is_after; /* ... the number of words after it (until JDK 22) */
	uint32_t stack;	      /* start of the words */
};

/* As jvm_containers__find. */
int jvm_chunks__find(const struct jvm_objects *objects, struct jvm_chunks *ret);

/* The stack as it would be on a thread that runs these frames, at addresses that no process has. */
struct jvm_frozen {
	struct memory_patch *words; /* owned */
	size_t n, cap;
	uint64_t pc, sp, fp; /* registers of the innermost frame */
	bool is_cut;	     /* there are more frames than were read */
};

/* Reads the stack whose first chunk is `chunk`. Returns 0, with n 0 if there are no frames;
 * -EBADMSG if the chunk is invalid or changes; -EFAULT, -ESRCH or -ENOMEM. `ret` is reused by
 * the next call; jvm_frozen__done frees it after any result. */
int jvm_frozen__read(const struct jvm_chunks *chunks, uint64_t chunk, struct jvm_frozen *ret);
void jvm_frozen__done(struct jvm_frozen *frozen);

#endif
