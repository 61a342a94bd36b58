/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_VM_H
#define BRAID_JVM_VM_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/jvm.h"
#include "core/base/err.h"
#include "core/elf/elf_file.h"

/* One running HotSpot JVM, seen from outside: the tables that libjvm.so exports
 * (gHotSpotVMStructs, gHotSpotVMTypes, gHotSpotVM{Int,Long}Constants), read once from the process's
 * memory. Nothing is asked of the JVM, nothing in it is changed. */
struct jvm_vm;

/* `file` is libjvm.so (or a program with HotSpot in it), loaded at `bias`. -EAGAIN: the JVM has not
 * set up its code cache yet; -ENOTSUP: the tables lack what is needed, named in `err`; -EBADMSG:
 * they make no sense; -ESRCH, -EPERM, -ENOMEM. */
int jvm_vm__open(uint32_t pid, uint64_t bias, const struct elf_file *file, struct jvm_vm **ret,
		 struct err *err);
void jvm_vm__free(struct jvm_vm *vm); /* NULL is fine */

uint32_t jvm_vm__pid(const struct jvm_vm *vm);

/* What the kernel half needs. */
const struct jvm_proc_rec *jvm_vm__rec(const struct jvm_vm *vm);

/* Offset of a field of an object, or the address of a static one. -ENOENT: this version has no such
 * field. */
int jvm_vm__field(const struct jvm_vm *vm, const char *type, const char *field,
		  uint64_t *ret_offset);
int jvm_vm__static(const struct jvm_vm *vm, const char *type, const char *field,
		   uint64_t *ret_address);
/* The field's type as HotSpot writes it: "OopHandle"; NULL: this version has no such field. */
const char *jvm_vm__field_kind(const struct jvm_vm *vm, const char *type, const char *field);
/* Bytes that the field has. */
int jvm_vm__field_size(const struct jvm_vm *vm, const char *type, const char *field,
		       uint64_t *ret_size);
int jvm_vm__size(const struct jvm_vm *vm, const char *type, uint64_t *ret_size);
int jvm_vm__constant(const struct jvm_vm *vm, const char *name, int64_t *ret);

/* Memory of the JVM's process. 0, or -EFAULT if not all of it is readable, -ESRCH. */
int jvm_vm__read(const struct jvm_vm *vm, uint64_t address, void *buf, size_t size);
/* The same for a NUL-terminated text, which is cut if it is too long; "" if it is not readable. */
void jvm_vm__text(const struct jvm_vm *vm, uint64_t address, char *buf, size_t size);

/* "17.0.15+6", from the JVM itself; "" if unknown. */
const char *jvm_vm__version(const struct jvm_vm *vm);
uint32_t jvm_vm__major(const struct jvm_vm *vm); /* 17 */

/* Name of the stub whose code holds `pc`, by the static fields of class StubRoutines
 * ("jint_arraycopy", "call_stub"); NULL if it cannot be told. */
const char *jvm_vm__stub(const struct jvm_vm *vm, uint64_t pc);

#endif
