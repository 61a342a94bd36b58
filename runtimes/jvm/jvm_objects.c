// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_objects.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/common/code_object_text.h"
#include "runtimes/jvm/jvm_flags.h"

#define STRING_CHARS_MAX 256 /* characters that are read */
#define CHECKS		 3   /* for each object that proves the shapes, since objects move */

/* oops/markWord.hpp, JDK 24 on */
#define MARK_CLASS_SHIFT 42
#define MARK_BYTES	 8

/* The first JDK in which the elements of an array begin directly after its length (JDK-8139457). */
#define ELEMENTS_UNALIGNED 23

static int read_static(const struct jvm_vm *vm, const char *type, const char *field, void *ret,
		       size_t size)
{
	uint64_t address;
	int rc = jvm_vm__static(vm, type, field, &address);

	return rc ? -ENOTSUP : jvm_vm__read(vm, address, ret, size);
}

/* Reads a boolean option. An option that a JVM does not have is not in force. */
static int read_flag(const struct jvm_vm *vm, const char *name, bool *ret)
{
	int rc = jvm_flags__bool(vm, name, ret);

	if (rc == -ENOENT)
		*ret = false;
	return rc == -ENOENT ? 0 : rc;
}

int jvm_objects__class(const struct jvm_vm *vm, const char *name, uint64_t *ret)
{
	char field[96];
	int rc;

	snprintf(field, sizeof(field), "_klasses[static_cast<int>(vmClassID::%s_klass_knum)]",
		 name);
	rc = read_static(vm, "vmClasses", field, ret, sizeof(*ret));
	if (rc != -ENOTSUP)
		return rc;
	snprintf(field, sizeof(field), "_well_known_klasses[SystemDictionary::%s_klass_knum]",
		 name);
	return read_static(vm, "SystemDictionary", field, ret, sizeof(*ret)); /* until JDK 16 */
}

/* --- references --- */

/* Finds the base address of compressed references, and their shift. A separate class has them,
 * by one of two names; until JDK 12, Universe has them. */
static int find_base(const struct jvm_vm *vm, const char *type, const char *older,
		     uint64_t *ret_base, uint32_t *ret_shift)
{
	const char *const places[][2] = { { type, "" }, { type, older }, { "Universe", older } };
	char base[64], shift[64];
	int rc = -ENOTSUP;

	for (size_t i = 0; rc == -ENOTSUP && i < ARRAY_SIZE(places); i++) {
		snprintf(base, sizeof(base), "%s_base", places[i][1]);
		snprintf(shift, sizeof(shift), "%s_shift", places[i][1]);
		rc = read_static(vm, places[i][0], base, ret_base, sizeof(*ret_base));
		if (!rc)
			rc = read_static(vm, places[i][0], shift, ret_shift, sizeof(*ret_shift));
	}
	return rc;
}

/* The references of the generational ZGC have their address above the color bits. Those of the
 * older ZGC are plain addresses. */
int jvm_objects__color_bits(const struct jvm_vm *vm, uint32_t *ret)
{
	uint64_t globals, shift_at, at, shift;
	bool is_zgc;
	int rc = read_flag(vm, "UseZGC", &is_zgc);

	*ret = 0;
	if (rc || !is_zgc || jvm_vm__field(vm, "ZGlobalsForVMStructs", "_ZPointerLoadShift", &at))
		return rc;
	rc = read_static(vm, "ZGlobalsForVMStructs", "_instance_p", &globals, sizeof(globals));
	if (!rc)
		rc = jvm_vm__read(vm, globals + at, &shift_at, sizeof(shift_at));
	if (!rc)
		rc = jvm_vm__read(vm, shift_at, &shift, sizeof(shift));
	if (!rc && shift > 32)
		rc = -ENOTSUP;
	*ret = rc ? 0 : shift;
	return rc;
}

/* Finds if an object's header has its class as 32 bits. JDK 27 has no other headers, and no
 * option for them. */
static int find_class_shape(const struct jvm_vm *vm, bool *ret_narrow)
{
	uint64_t at;

	if (jvm_vm__field(vm, "oopDesc", "_metadata._klass", &at)) {
		*ret_narrow = true;
		return jvm_vm__field(vm, "oopDesc", "_compressed_klass", &at) ? -ENOTSUP : 0;
	}
	return read_flag(vm, "UseCompressedClassPointers", ret_narrow);
}

static int find_shapes(struct jvm_objects *objects)
{
	const struct jvm_vm *vm = objects->vm;
	int rc = read_flag(vm, "UseCompressedOops", &objects->narrow_refs);

	if (!rc)
		rc = find_class_shape(vm, &objects->narrow_classes);
	if (!rc)
		rc = read_flag(vm, "UseCompactObjectHeaders", &objects->is_class_in_mark);
	if (!rc && objects->narrow_refs)
		rc = find_base(vm, "CompressedOops", "_narrow_oop.", &objects->ref_base,
			       &objects->ref_shift);
	if (!rc && (objects->narrow_classes || objects->is_class_in_mark))
		rc = find_base(vm, "CompressedKlassPointers", "_narrow_klass.",
			       &objects->class_base, &objects->class_shift);
	if (!rc)
		rc = jvm_objects__color_bits(vm, &objects->color_bits);
	if (rc)
		return rc;
	objects->array_length = MARK_BYTES + (objects->is_class_in_mark ? 0
					      : objects->narrow_classes ? 4
									: 8);
	objects->array_elements = objects->array_length + sizeof(uint32_t);
	if (jvm_vm__major(vm) < ELEMENTS_UNALIGNED)
		objects->array_elements = (objects->array_elements + 7) & ~7U;
	objects->array_refs = objects->narrow_refs ? objects->array_elements
						   : (objects->array_elements + 7) & ~7U;
	return 0;
}

/* Until JDK 8 a String has an array of char. */
static int find_string(struct jvm_objects *objects)
{
	uint64_t class;
	int rc = jvm_objects__class(objects->vm, "String", &class);

	if (rc)
		return rc;
	objects->string_class = class;
	rc = jvm_objects__field(objects, class, "value", "[C", &objects->string_array);
	objects->string_is_wide = !rc;
	if (rc != -ENOENT)
		return rc;
	rc = jvm_objects__field(objects, class, "value", "[B", &objects->string_array);
	return rc ? rc : jvm_objects__field(objects, class, "coder", "B", &objects->string_coder);
}

/* Checks that the class of a java.lang.Class is Class, which proves the layout of headers and
 * references. The collector may move any of these objects in between. ZGC leaves references to
 * old addresses, so that nothing can be checked. A value that is not a String by its class is
 * not used as a name. */
static int check_shapes(const struct jvm_objects *objects)
{
	static const char *const names[] = { "String", "Object", "Class", "Thread", "System" };
	uint64_t class, checked, mirror;
	bool is_zgc = false;
	int rc = jvm_objects__class(objects->vm, "Class", &class);

	for (size_t i = 0; !rc && i < CHECKS * ARRAY_SIZE(names); i++) {
		rc = jvm_objects__class(objects->vm, names[i % ARRAY_SIZE(names)], &checked);
		if (!rc && !jvm_objects__mirror(objects, checked, &mirror) &&
		    jvm_objects__class_of(objects, mirror) == class)
			return 0;
	}
	if (!rc)
		rc = read_flag(objects->vm, "UseZGC", &is_zgc);
	return rc ? rc : is_zgc ? 0 : -ENOTSUP;
}

int jvm_objects__find(const struct jvm_vm *vm, struct jvm_objects *ret)
{
	int rc;

	*ret = (struct jvm_objects) { .vm = vm };
	rc = jvm_symbols__find(vm, &ret->symbols);
	if (!rc)
		rc = find_shapes(ret);
	if (!rc)
		rc = find_string(ret);
	if (!rc)
		rc = check_shapes(ret);
	return rc == -ENOENT ? -ENOTSUP : rc;
}

int jvm_objects__handle(const struct jvm_objects *objects, uint64_t address, uint64_t *ret)
{
	int rc = jvm_vm__read(objects->vm, address, ret, sizeof(*ret));

	*ret = rc ? 0 : *ret >> objects->color_bits;
	return rc;
}

int jvm_objects__refs(const struct jvm_objects *objects, uint64_t address, uint64_t *ret, size_t n)
{
	size_t size = objects->narrow_refs ? sizeof(uint32_t) : sizeof(*ret);
	const char *bytes = (const char *)ret;
	uint32_t narrow;
	int rc = jvm_vm__read(objects->vm, address, ret, n * size);

	for (size_t i = rc ? 0 : n;
	     i-- > 0;) { /* backwards, since each reference is widened in place */
		if (!objects->narrow_refs) {
			ret[i] >>= objects->color_bits;
			continue;
		}
		memcpy(&narrow, bytes + i * size, sizeof(narrow));
		ret[i] = narrow ? objects->ref_base + ((uint64_t)narrow << objects->ref_shift) : 0;
	}
	if (rc)
		memset(ret, 0, n * sizeof(*ret));
	return rc;
}

int jvm_objects__ref(const struct jvm_objects *objects, uint64_t address, uint64_t *ret)
{
	return jvm_objects__refs(objects, address, ret, 1);
}

uint64_t jvm_objects__class_of(const struct jvm_objects *objects, uint64_t object)
{
	size_t size = objects->narrow_classes ? sizeof(uint32_t) : sizeof(uint64_t);
	uint64_t mark, class = 0;

	if (objects->is_class_in_mark) {
		if (jvm_vm__read(objects->vm, object, &mark, sizeof(mark)))
			return 0;
		class = mark >> MARK_CLASS_SHIFT;
	} else if (jvm_vm__read(objects->vm, object + MARK_BYTES, &class, size)) {
		return 0;
	}
	if (objects->is_class_in_mark || objects->narrow_classes)
		class = objects->class_base + (class << objects->class_shift);
	return class;
}

int jvm_objects__mirror(const struct jvm_objects *objects, uint64_t class, uint64_t *ret)
{
	const char *kind = jvm_vm__field_kind(objects->vm, "Klass", "_java_mirror");
	uint64_t mirror, handle;
	int rc = jvm_vm__field(objects->vm, "Klass", "_java_mirror", &mirror);

	if (rc)
		return -ENOTSUP;
	handle = class + mirror;
	if (!kind || strcmp(kind, "oop") != 0) /* JDK 8 has the object itself in this field */
		rc = jvm_vm__read(objects->vm, class + mirror, &handle, sizeof(handle));
	return rc ? rc : jvm_objects__handle(objects, handle, ret);
}

/* Converts UTF-16 to UTF-32 and combines pairs of surrogates. Returns the number of characters. */
static size_t widen(const uint16_t *from, size_t n, uint32_t *to)
{
	size_t n_to = 0;

	for (size_t i = 0; i < n; i++) {
		bool pair = from[i] >> 10 == 0x36 && i + 1 < n && from[i + 1] >> 10 == 0x37;

		to[n_to++] = pair ? 0x10000 + ((from[i] & 0x3ffU) << 10) + (from[i + 1] & 0x3ffU)
				  : from[i];
		i += pair;
	}
	return n_to;
}

char *jvm_objects__string(const struct jvm_objects *objects, uint64_t object)
{
	uint16_t chars[STRING_CHARS_MAX];
	uint32_t wide[STRING_CHARS_MAX], length, n;
	uint64_t array;
	uint8_t coder = 1; /* 0: a byte for each character; 1: UTF-16 */

	if (jvm_objects__class_of(objects, object) != objects->string_class ||
	    (!objects->string_is_wide &&
	     jvm_vm__read(objects->vm, object + objects->string_coder, &coder, sizeof(coder))) ||
	    coder > 1 || jvm_objects__ref(objects, object + objects->string_array, &array) ||
	    jvm_vm__read(objects->vm, array + objects->array_length, &length, sizeof(length)))
		return NULL;
	n = min_of(objects->string_is_wide ? length : length >> coder, STRING_CHARS_MAX);
	if (jvm_vm__read(objects->vm, array + objects->array_elements, chars, (size_t)n << coder))
		return NULL;
	if (!coder)
		return code_object_text__dup((const char *)chars, n, 1, length);
	n = widen(chars, n, wide);
	return code_object_text__dup((const char *)wide, (size_t)n * sizeof(*wide), sizeof(*wide),
				     n);
}
