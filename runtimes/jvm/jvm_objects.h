/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_OBJECTS_H
#define BRAID_JVM_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtimes/jvm/jvm_symbols.h"

/* Objects in the heap of a JVM that runs. It may move them at any time, so that each reader
 * checks the object it has read. JDK 8 on. */
struct jvm_objects {
	const struct jvm_vm *vm; /* borrowed */
	struct jvm_symbols symbols;
	/* References in objects, and classes in the headers of objects, have 32 bits. */
	bool narrow_refs, narrow_classes;
	bool is_class_in_mark; /* -XX:+UseCompactObjectHeaders */
	uint64_t ref_base, class_base;
	uint32_t ref_shift, class_shift;
	uint32_t color_bits;   /* low bits of a 64-bit reference that are flags for the collector
				  (ZGC) */
	uint64_t string_class; /* class java.lang.String */
	uint32_t string_array, string_coder; /* offsets of its fields */
	bool string_is_wide; /* the array has elements of type char, and there is no coder */
	uint32_t array_length, array_elements; /* offsets in an array of bytes */
	uint32_t array_refs; /* offset of the elements in an array of references */
};

/* Finds `color_bits`. Returns 0, -ENOTSUP, -EFAULT, -ESRCH or -ENOMEM. */
int jvm_objects__color_bits(const struct jvm_vm *vm, uint32_t *ret);

/* Finds the shapes of objects. Returns 0; -ENOTSUP if the JVM's tables lack a field, or objects
 * have another shape; -EFAULT, -ESRCH or -ENOMEM. */
int jvm_objects__find(const struct jvm_vm *vm, struct jvm_objects *ret);

/* Finds a class by HotSpot's name for it: "Thread", "String". Returns 0, -ENOTSUP, -EFAULT or
 * -ESRCH. */
int jvm_objects__class(const struct jvm_vm *vm, const char *name, uint64_t *ret);

/* Finds the offset of a field with that name and signature ("Ljava/lang/String;") in the objects
 * of the class. If one of the two is NULL, the first field that matches the other is found.
 * Fields of superclasses are not included. Returns 0, -ENOENT, -EBADMSG, -EFAULT, -ESRCH or
 * -ENOMEM. */
int jvm_objects__field(const struct jvm_objects *objects, uint64_t class, const char *name,
		       const char *signature, uint32_t *ret_offset);

/* As jvm_objects__field, for a field that HotSpot has added to the class. JDK 21 on. */
int jvm_objects__injected(const struct jvm_objects *objects, uint64_t class, const char *name,
			  uint32_t *ret_offset);

/* Finds the address of a static field, in the class's java.lang.Class. Objects move, so that the
 * address soon becomes stale. */
int jvm_objects__static(const struct jvm_objects *objects, uint64_t class, const char *name,
			const char *signature, uint64_t *ret_address);

/* Returns the class of an object; 0: unreadable. The second function reads a class's
 * java.lang.Class; it returns 0, -ENOTSUP, -EFAULT or -ESRCH. */
uint64_t jvm_objects__class_of(const struct jvm_objects *objects, uint64_t object);
int jvm_objects__mirror(const struct jvm_objects *objects, uint64_t class, uint64_t *ret);

/* Resolve a reference in an object, `n` such references in a row, or a handle of the JVM itself,
 * to the address of the object. Return 0, -EFAULT or -ESRCH. */
int jvm_objects__ref(const struct jvm_objects *objects, uint64_t address, uint64_t *ret);
int jvm_objects__refs(const struct jvm_objects *objects, uint64_t address, uint64_t *ret, size_t n);
int jvm_objects__handle(const struct jvm_objects *objects, uint64_t address, uint64_t *ret);

/* Returns the owned text of a String, truncated if very long. NULL: not a String, unreadable, or
 * out of memory. */
char *jvm_objects__string(const struct jvm_objects *objects, uint64_t object);

#endif
