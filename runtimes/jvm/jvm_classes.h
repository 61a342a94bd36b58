/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_CLASSES_H
#define BRAID_JVM_CLASSES_H

#include <stddef.h>
#include <stdint.h>

#include "runtimes/jvm/jvm_symbols.h"

struct jvm_class {
	const char *name; /* "java/lang/VirtualThread" */
	uint64_t address; /* address of the Klass; 0: not loaded */
};

/* Fills in the addresses of classes of the boot loader, all in one walk. Returns 0, -ENOTSUP if
 * the JVM's tables lack a field, -EFAULT, -ESRCH or -ENOMEM. */
int jvm_classes__find(const struct jvm_symbols *symbols, struct jvm_class *classes, size_t n);

#endif
