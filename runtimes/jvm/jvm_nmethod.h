/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_NMETHOD_H
#define BRAID_JVM_NMETHOD_H

#include <stddef.h>
#include <stdint.h>

#include "runtimes/jvm/jvm_methods.h"

/* A compiled method: which Java methods its code at some place comes from, inlined ones first. All
 * that this takes is copied from the JVM when it is opened, but for the methods' names (see
 * jvm_nmethod__scopes). */
struct jvm_nmethod;

#define JVM_SCOPES_MAX 64 /* of one place; deeper inlining is cut at the outer end but one */

struct jvm_scope {
	const struct jvm_method *method; /* NULL: not readable any more */
	uint32_t bci;			 /* JVM_NO_BCI: unknown */
};

/* `address` is the nmethod's; `compile_id` what it had when it was seen. -ENOENT: it is another one
 * by now; -EFAULT, -EBADMSG, -ENOMEM. */
int jvm_nmethod__open(const struct jvm_vm *vm, uint64_t address, uint32_t compile_id,
		      struct jvm_methods *methods, struct jvm_nmethod **ret);
void jvm_nmethod__free(struct jvm_nmethod *nmethod); /* NULL is fine */

/* The method that was compiled; never NULL. */
const struct jvm_method *jvm_nmethod__method(const struct jvm_nmethod *nmethod);

/* Scopes at `pc_offset` bytes into the code, innermost first: for a return address (`exact` false)
 * those of the call before it, for an interrupted instruction those of the nearest place around it
 * that the compiler described. Reads the names of methods met for the first time: best called while
 * the JVM runs. Returns their number, at least 1 (the compiled method itself, if nothing is known
 * of the place). */
size_t jvm_nmethod__scopes(struct jvm_nmethod *nmethod, uint32_t pc_offset, int exact,
			   struct jvm_scope ret[JVM_SCOPES_MAX]);

/* Are the methods inlined at this place those of a place nearby? @dense: the compiler has described
 * code wherever its methods change, so that places around an instruction that agree prove it. */
bool jvm_nmethod__infers_inlined(const struct jvm_nmethod *nmethod, uint32_t pc_offset, int exact,
				 bool dense);

#endif
