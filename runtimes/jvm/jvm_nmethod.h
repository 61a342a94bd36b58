/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_NMETHOD_H
#define BRAID_JVM_NMETHOD_H

#include <stddef.h>
#include <stdint.h>

#include "runtimes/jvm/jvm_methods.h"

/* A compiled method: the Java methods that each place of its machine code comes from, inlined
 * ones first. Its data is copied from the JVM when it is opened, except for the methods' names
 * (see jvm_nmethod__scopes). */
struct jvm_nmethod;

#define JVM_SCOPES_MAX 64 /* at one place; more are cut just inside the outermost */

struct jvm_scope {
	const struct jvm_method *method; /* NULL: no longer readable */
	uint32_t bci;			 /* JVM_NO_BCI: unknown */
};

/* Opens the nmethod at `address`; `compile_id` is the nmethod's id at its first sample. Returns 0,
 * -ENOENT if the address has another nmethod by now, -EFAULT, -EBADMSG or -ENOMEM. */
int jvm_nmethod__open(const struct jvm_vm *vm, uint64_t address, uint32_t compile_id,
		      struct jvm_methods *methods, struct jvm_nmethod **ret);
void jvm_nmethod__free(struct jvm_nmethod *nmethod); /* NULL is fine */

/* Returns the method that was compiled; never NULL. */
const struct jvm_method *jvm_nmethod__method(const struct jvm_nmethod *nmethod);

/* Finds the scopes at `pc_offset` bytes into the machine code, innermost first. For a return
 * address (`exact` false), these are the scopes of the call before it. For an interrupted
 * instruction, these are the scopes of the nearest place around it that the compiler described.
 * Reads the names of methods that are new, so it is best called while the JVM runs. Returns the
 * number of scopes, at least 1: the compiled method itself, if the place is unknown. */
size_t jvm_nmethod__scopes(struct jvm_nmethod *nmethod, uint32_t pc_offset, int exact,
			   struct jvm_scope ret[JVM_SCOPES_MAX]);

/* Returns true if the methods inlined at this place are inferred from a place nearby. @dense:
 * the compiler has described code wherever its methods change, so that places around an
 * instruction that agree may prove its methods (jvm_scopes__prove). */
bool jvm_nmethod__infers_inlined(const struct jvm_nmethod *nmethod, uint32_t pc_offset, int exact,
				 bool dense);

#endif
