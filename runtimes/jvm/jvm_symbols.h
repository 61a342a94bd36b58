/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_SYMBOLS_H
#define BRAID_JVM_SYMBOLS_H

#include <stdint.h>

#include "runtimes/jvm/jvm_vm.h"

/* HotSpot's Symbols, which are names in class files, and the constant pools that refer to them. */
struct jvm_symbols {
	const struct jvm_vm *vm; /* borrowed */
	uint64_t length, body;	 /* offsets in Symbol */
	uint64_t tags, tags_data, pool_length, pool_bytes;
};

/* Finds the offsets. Returns 0, or -ENOTSUP if the JVM's tables lack one. */
int jvm_symbols__find(const struct jvm_vm *vm, struct jvm_symbols *ret);

/* Reads the text of the Symbol at that address; owned. Returns 0, -EFAULT, -ESRCH, -EBADMSG if
 * the text is empty, or -ENOMEM. */
int jvm_symbols__text(const struct jvm_symbols *symbols, uint64_t symbol, char **ret);

/* As jvm_symbols__text, for entry `index` of a ConstantPool. Returns -EBADMSG if the entry is
 * not a name. */
int jvm_symbols__constant(const struct jvm_symbols *symbols, uint64_t pool, uint32_t index,
			  char **ret);

#endif
