/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_TABLES_H
#define BRAID_JVM_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/elf/elf_file.h"

/* libjvm.so's description of HotSpot's own types: fields, sizes, constants. It exists for the
 * serviceability agent (src/hotspot/share/runtime/vmStructs.cpp), in every build. */
struct jvm_tables;

struct jvm_field {
	const char *type, *name; /* "CodeBlob", "_frame_size" */
	const char *kind;	 /* its type, as HotSpot writes it: "int", "u2", "Method*" */
	bool is_static;
	uint64_t at; /* address of a static field, else offset */
};

/* Reads the tables from the memory of the process, where libjvm.so is loaded at `bias`. Returns
 * 0, -EAGAIN if its constructors have not run, -ENOTSUP if it exports no tables, -EBADMSG,
 * -EFAULT, -ESRCH, -EPERM or -ENOMEM. */
int jvm_tables__read(uint32_t pid, uint64_t bias, const struct elf_file *file,
		     struct jvm_tables **ret, struct err *err);
void jvm_tables__free(struct jvm_tables *tables); /* NULL is fine */

/* Returns a field; NULL: this version has no such field. */
const struct jvm_field *jvm_tables__field(const struct jvm_tables *tables, const char *type,
					  const char *name);

/* Gets all fields, in the order of the table. Returns their number. */
size_t jvm_tables__fields(const struct jvm_tables *tables, const struct jvm_field **ret);

/* Gets sizeof(type). Returns 0 or -ENOENT. */
int jvm_tables__size(const struct jvm_tables *tables, const char *type, uint64_t *ret);

/* Gets a constant of type int or long. Returns 0 or -ENOENT. */
int jvm_tables__constant(const struct jvm_tables *tables, const char *name, int64_t *ret);

#endif
