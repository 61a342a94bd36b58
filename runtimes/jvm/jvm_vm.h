/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_VM_H
#define BRAID_JVM_VM_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/jvm.h"
#include "core/base/err.h"
#include "core/elf/elf_file.h"

/* One running HotSpot JVM, seen from outside. The tables that libjvm.so exports
 * (gHotSpotVMStructs, gHotSpotVMTypes, gHotSpotVM{Int,Long}Constants) are read once from the
 * process's memory. Nothing is requested from the JVM, and nothing in it is changed. */
struct jvm_vm;

/* Opens the JVM of a process; `file` is libjvm.so (or a program that contains HotSpot), loaded
 * at `bias`. Returns 0, or -EAGAIN if the JVM has not set up its code cache yet. Returns
 * -ENOTSUP if the tables lack an entry, which `err` names, and -EBADMSG if they are
 * inconsistent. Other errors are -ESRCH, -EPERM and -ENOMEM. */
int jvm_vm__open(uint32_t pid, uint64_t bias, const struct elf_file *file, struct jvm_vm **ret,
		 struct err *err);
void jvm_vm__free(struct jvm_vm *vm); /* NULL is fine */

uint32_t jvm_vm__pid(const struct jvm_vm *vm);

/* Returns the record for the kernel half. */
const struct jvm_proc_rec *jvm_vm__rec(const struct jvm_vm *vm);

/* Gets the offset of a field of an object, or the address of a static field. Returns 0, or
 * -ENOENT if this version has no such field. */
int jvm_vm__field(const struct jvm_vm *vm, const char *type, const char *field,
		  uint64_t *ret_offset);
int jvm_vm__static(const struct jvm_vm *vm, const char *type, const char *field,
		   uint64_t *ret_address);
/* Returns the field's type as HotSpot writes it, "OopHandle"; NULL: this version has no such
 * field. */
const char *jvm_vm__field_kind(const struct jvm_vm *vm, const char *type, const char *field);
/* Gets the size of the field in bytes. */
int jvm_vm__field_size(const struct jvm_vm *vm, const char *type, const char *field,
		       uint64_t *ret_size);
int jvm_vm__size(const struct jvm_vm *vm, const char *type, uint64_t *ret_size);
int jvm_vm__constant(const struct jvm_vm *vm, const char *name, int64_t *ret);

/* Reads memory of the JVM's process. Returns 0, -EFAULT if not all of it is readable, or -ESRCH. */
int jvm_vm__read(const struct jvm_vm *vm, uint64_t address, void *buf, size_t size);
/* Reads a NUL-terminated text, which is truncated if it is too long; "" if it is unreadable. */
void jvm_vm__text(const struct jvm_vm *vm, uint64_t address, char *buf, size_t size);

/* Returns the version that the JVM itself reports, "17.0.15+6"; "" if unknown. */
const char *jvm_vm__version(const struct jvm_vm *vm);
uint32_t jvm_vm__major(const struct jvm_vm *vm); /* 17 */

/* Returns the name of the stub whose machine code holds `pc`, by the static fields of class
 * StubRoutines ("jint_arraycopy", "call_stub"); NULL: unknown. */
const char *jvm_vm__stub(const struct jvm_vm *vm, uint64_t pc);

#endif
