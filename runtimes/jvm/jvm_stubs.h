/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_STUBS_H
#define BRAID_JVM_STUBS_H

#include "core/elf/elf_file.h"
#include "runtimes/jvm/jvm_tables.h"
#include "runtimes/jvm/jvm_vm.h"

/* HotSpot's stubs, pieces of handwritten machine code. The static fields of class StubRoutines
 * have the start of each. The fields are in the tables until JDK 24, and in the symbol table if
 * libjvm.so has one. */
struct jvm_stubs;

/* `file` is libjvm.so, loaded at `bias`; not used after this call. Returns 0 or -ENOMEM. */
int jvm_stubs__new(const struct elf_file *file, uint64_t bias, const struct jvm_tables *tables,
		   struct jvm_stubs **ret);
void jvm_stubs__free(struct jvm_stubs *stubs); /* NULL is fine */

/* As jvm_vm__stub. Stubs are generated on demand, so that each call reads the starts again. */
const char *jvm_stubs__find(struct jvm_stubs *stubs, const struct jvm_vm *vm, uint64_t pc);

#endif
