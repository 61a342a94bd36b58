/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_THREAD_VARIABLE_H
#define BRAID_THREAD_VARIABLE_H

#include <stdint.h>

#include "core/elf/elf_file.h"

/* An exported thread-local variable of a file, and the way in which the file's code finds it. The
 * dynamic linker stores the variable's place in slots of the global offset table of each process
 * (core/target/thread_context.h). */
enum thread_variable_access {
	THREAD_VARIABLE_FIXED, /* local exec: at the thread pointer + offset */
	THREAD_VARIABLE_SLOT,  /* initial exec: at the thread pointer + the word in the slot */
	THREAD_VARIABLE_INDEX, /* general dynamic: the slot has the number of a module and an offset
				* in the module's block */
	THREAD_VARIABLE_DESCRIPTOR, /* TLSDESC: the second word of the slot is an offset from the
				     * thread pointer, or the address of such an index */
};

struct thread_variable {
	enum thread_variable_access access;
	uint64_t slot_vaddr; /* link-time address; unused for THREAD_VARIABLE_FIXED */
	int64_t offset;	     /* THREAD_VARIABLE_FIXED */
};

/* Finds the variable @name in .dynsym. Returns 0, or -ENOENT if the file does not define the
 * variable, or has no slot for the variable and is not a program. */
int thread_variable__find(const struct elf_file *file, const char *name,
			  struct thread_variable *ret);

#endif
