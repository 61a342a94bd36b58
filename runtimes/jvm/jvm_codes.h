/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_CODES_H
#define BRAID_JVM_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/jvm/jvm_methods.h"
#include "runtimes/jvm/jvm_vm.h"
#include "runtimes/runtime.h"

/* The code objects behind HotSpot's code numbers: interpreted methods, compiled methods, stubs.
 * The data for their names is read from the JVM when each is first seen. */
struct jvm_codes;

struct jvm_codes *jvm_codes__new(void);	       /* NULL: out of memory */
void jvm_codes__free(struct jvm_codes *codes); /* NULL is fine */

/* Attaches the JVM of address space @space. Takes `vm`, also on failure, and owns it until the
 * codes are freed, since names may be requested after the JVM has ended. Returns 0 or -ENOMEM. */
int jvm_codes__add_vm(struct jvm_codes *codes, uint32_t space, struct jvm_vm *vm);

/* Returns the JVM of a process; NULL: none. */
const struct jvm_vm *jvm_codes__vm(const struct jvm_codes *codes, uint32_t pid);

/* Detaches the JVM of the address space. */
void jvm_codes__forget_vm(struct jvm_codes *codes, uint32_t space);

/* As runtime.on_code. */
int jvm_codes__add(struct jvm_codes *codes, const struct rec_code_object *rec, size_t size);

/* As runtime.forget_codes, runtime.seen. A detached VM is freed with the last of its codes. */
void jvm_codes__forget(struct jvm_codes *codes, const struct u64map *listed);
void jvm_codes__seen(struct jvm_codes *codes, uint64_t key);

/* As runtime.count_stale. */
uint32_t jvm_codes__count_stale(struct jvm_codes *codes, uint64_t key);

/* As runtime.infers_inlined. An interrupted instruction lies between two places that the
 * compiler has described; so does the call of a stub that never stops the thread. With
 * DebugNonSafepoints, compilers describe code wherever its methods change, and nothing is
 * inferred between places that agree. */
bool jvm_codes__infers_inlined(struct jvm_codes *codes, uint64_t key);

/* As runtime.symbolize. */
int jvm_codes__symbolize(struct jvm_codes *codes, uint64_t key,
			 struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX]);

#endif
