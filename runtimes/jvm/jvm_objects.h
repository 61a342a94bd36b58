/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_OBJECTS_H
#define BRAID_JVM_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtimes/jvm/jvm_symbols.h"

/* Objects in the heap of a JVM that runs, and may move them at any time: whoever reads one checks
 * that it is what it should be. JDK 8 on. */
struct jvm_objects {
	const struct jvm_vm *vm; /* borrowed */
	struct jvm_symbols symbols;
	/* A reference in an object, and a class in an object's header, as 32 bits. */
	bool narrow_refs, narrow_classes;
	bool is_class_in_mark; /* -XX:+UseCompactObjectHeaders */
	uint64_t ref_base, class_base;
	uint32_t ref_shift, class_shift;
	uint32_t color_bits;   /* of a reference of 64, that tell the collector something (ZGC) */
	uint64_t string_class; /* java.lang.String's */
	uint32_t string_array, string_coder;   /* its fields */
	bool string_is_wide;		       /* the array is one of char, without a coder */
	uint32_t array_length, array_elements; /* of an array of bytes */
	uint32_t array_refs;		       /* where the elements of one of references begin */
};

/* `color_bits`. 0 or -ENOTSUP, -EFAULT, -ESRCH, -ENOMEM. */
int jvm_objects__color_bits(const struct jvm_vm *vm, uint32_t *ret);

/* -ENOTSUP: the JVM's tables do not tell enough, or objects are of another shape; -EFAULT, -ESRCH,
 * -ENOMEM. */
int jvm_objects__find(const struct jvm_vm *vm, struct jvm_objects *ret);

/* The class that HotSpot knows by that name: "Thread", "String". 0 or -ENOTSUP, -EFAULT, -ESRCH. */
int jvm_objects__class(const struct jvm_vm *vm, const char *name, uint64_t *ret);

/* Offset of a field of the objects of the class itself, its superclasses' not included, with that
 * name and signature ("Ljava/lang/String;"); either may be NULL: the first with any. -ENOENT;
 * -EBADMSG; -EFAULT, -ESRCH, -ENOMEM. */
int jvm_objects__field(const struct jvm_objects *objects, uint64_t class, const char *name,
		       const char *signature, uint32_t *ret_offset);

/* The same of one that HotSpot has added to those that the class declares, JDK 21 on. */
int jvm_objects__injected(const struct jvm_objects *objects, uint64_t class, const char *name,
			  uint32_t *ret_offset);

/* Address of a static field, in the class's java.lang.Class: as objects move, not for long. */
int jvm_objects__static(const struct jvm_objects *objects, uint64_t class, const char *name,
			const char *signature, uint64_t *ret_address);

/* The class of an object; 0: not readable. Its java.lang.Class: 0 or -ENOTSUP, -EFAULT, -ESRCH. */
uint64_t jvm_objects__class_of(const struct jvm_objects *objects, uint64_t object);
int jvm_objects__mirror(const struct jvm_objects *objects, uint64_t class, uint64_t *ret);

/* The object to which a reference in another one leads, those to which `n` in a row do, and to
 * which a handle of the JVM's own does. 0 or -EFAULT, -ESRCH. */
int jvm_objects__ref(const struct jvm_objects *objects, uint64_t address, uint64_t *ret);
int jvm_objects__refs(const struct jvm_objects *objects, uint64_t address, uint64_t *ret, size_t n);
int jvm_objects__handle(const struct jvm_objects *objects, uint64_t address, uint64_t *ret);

/* Owned text of a String, cut if it is very long; NULL: it is none, is not readable, or out of
 * memory. */
char *jvm_objects__string(const struct jvm_objects *objects, uint64_t object);

#endif
