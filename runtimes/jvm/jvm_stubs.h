/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_STUBS_H
#define BRAID_JVM_STUBS_H

#include "core/elf/elf_file.h"
#include "runtimes/jvm/jvm_tables.h"
#include "runtimes/jvm/jvm_vm.h"

/* HotSpot's pieces of handwritten code: the static fields of class StubRoutines tell where each
 * begins. They are in the tables until JDK 24, and in the symbol table where libjvm.so has one. */
struct jvm_stubs;

/* `file` is libjvm.so, loaded at `bias`; not needed later. 0 or -ENOMEM. */
int jvm_stubs__new(const struct elf_file *file, uint64_t bias, const struct jvm_tables *tables,
		   struct jvm_stubs **ret);
void jvm_stubs__free(struct jvm_stubs *stubs); /* NULL is fine */

/* See jvm_vm__stub. Stubs are made as they are needed, so all that is not known yet is read. */
const char *jvm_stubs__find(struct jvm_stubs *stubs, const struct jvm_vm *vm, uint64_t pc);

#endif
