/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_METHODS_H
#define BRAID_JVM_METHODS_H

#include <stdint.h>

#include "runtimes/common/allowance.h"
#include "runtimes/jvm/jvm_vm.h"

/* Java methods by their Method structure. A method is read from the JVM at the first request and
 * then cached, since its class may be unloaded later. One per JVM. */
struct jvm_methods;

struct jvm_method {
	/* "pkg.Class.method"; never NULL. Names of hidden classes lack their address, which
	 * differs from run to run: "W$$Lambda.run". */
	const char *name;
	const char *file; /* the class's SourceFile; NULL: unknown */
	/* private: the line table */
	const struct jvm_method_lines *lines;
};

/* `vm` is borrowed. Returns 0, -ENOTSUP if its tables lack the layout of a Method, or -ENOMEM. */
int jvm_methods__new(const struct jvm_vm *vm, struct jvm_methods **ret);
void jvm_methods__free(struct jvm_methods *methods); /* NULL is fine */

/* Limits the bytes cached for methods and for machine code compiled from them. `allowance` is
 * borrowed until jvm_methods__free, which returns all cached bytes to it. */
void jvm_methods__limit(struct jvm_methods *methods, struct allowance *allowance);
struct allowance *jvm_methods__allowance(const struct jvm_methods *methods); /* NULL: no limit */

/* As jvm_methods__get(), but returns NULL unless the method's ConstMethod is at @const_method.
 * It was there when the method was sampled, and must stay there while the method is read: the
 * memory of a redefined method is reused for another one. */
const struct jvm_method *jvm_methods__get_sampled(struct jvm_methods *methods, uint64_t method,
						  uint64_t const_method);

/* Returns the method whose Method structure is at `method` now. The cached method is replaced if
 * the memory has been reused for another one, and serves if the memory is no longer readable.
 * Valid until jvm_methods__free. NULL: unreadable or invalid. */
const struct jvm_method *jvm_methods__get(struct jvm_methods *methods, uint64_t method);

/* Returns the source line of a bytecode index; 0: unknown. `method` may be NULL. */
uint32_t jvm_method__line(const struct jvm_method *method, uint32_t bci);

#endif
