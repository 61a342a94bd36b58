/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_METHODS_H
#define BRAID_JVM_METHODS_H

#include <stdint.h>

#include "runtimes/common/allowance.h"
#include "runtimes/jvm/jvm_vm.h"

/* Java methods by their Method structure, as read from the JVM when they are first asked for: a
 * class may be unloaded later, and the process may end. One per JVM. */
struct jvm_methods;

struct jvm_method {
	/* "pkg.Class.method"; never NULL. Hidden classes go without the address in their name,
	 * which differs from run to run: "W$$Lambda.run". */
	const char *name;
	const char *file; /* the class's SourceFile; NULL: not known */
	/* private: line table and what else is needed */
	const struct jvm_method_lines *lines;
};

/* `vm` is borrowed. -ENOTSUP: its tables do not tell what a Method is made of; -ENOMEM. */
int jvm_methods__new(const struct jvm_vm *vm, struct jvm_methods **ret);
void jvm_methods__free(struct jvm_methods *methods); /* NULL is fine */

/* Limits what is kept of methods and of code that was compiled from them. `allowance` is borrowed
 * until jvm_methods__free, and must have everything that was kept by then. */
void jvm_methods__limit(struct jvm_methods *methods, struct allowance *allowance);
struct allowance *jvm_methods__allowance(const struct jvm_methods *methods); /* NULL: no limit */

/* As jvm_methods__get(), but NULL unless its ConstMethod is at @const_method, as it was when the
 * method was sampled, and stays there while the method is read: the memory of a method that was
 * redefined serves another one. */
const struct jvm_method *jvm_methods__get_sampled(struct jvm_methods *methods, uint64_t method,
						  uint64_t const_method);

/* The method whose Method structure is at `method` now. It is read again if it is not the one that
 * is known (the memory was used for another one); what is known serves where nothing can be read
 * any more. Valid until jvm_methods__free. NULL: not readable, or it makes no sense. */
const struct jvm_method *jvm_methods__get(struct jvm_methods *methods, uint64_t method);

/* Source line of a bytecode index, 0: unknown. `method` may be NULL. */
uint32_t jvm_method__line(const struct jvm_method *method, uint32_t bci);

#endif
