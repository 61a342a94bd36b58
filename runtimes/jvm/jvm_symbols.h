/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_SYMBOLS_H
#define BRAID_JVM_SYMBOLS_H

#include <stdint.h>

#include "runtimes/jvm/jvm_vm.h"

/* HotSpot's Symbols, which are names in class files, and the constant pools that have them. */
struct jvm_symbols {
	const struct jvm_vm *vm; /* borrowed */
	uint64_t length, body;	 /* offsets in Symbol */
	uint64_t tags, tags_data, pool_length, pool_bytes;
};

/* -ENOTSUP: the JVM's tables do not tell what they are made of. */
int jvm_symbols__find(const struct jvm_vm *vm, struct jvm_symbols *ret);

/* Owned text of the Symbol at that address. -EFAULT, -ESRCH; -EBADMSG: it is empty; -ENOMEM. */
int jvm_symbols__text(const struct jvm_symbols *symbols, uint64_t symbol, char **ret);

/* The same of entry `index` of a ConstantPool, if that is a name; else -EBADMSG. */
int jvm_symbols__constant(const struct jvm_symbols *symbols, uint64_t pool, uint32_t index,
			  char **ret);

#endif
