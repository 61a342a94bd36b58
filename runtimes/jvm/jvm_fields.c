// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds the fields of a class. */
#include "runtimes/jvm/jvm_objects.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/jvm/jvm_stream.h"

#define FIELDS_BYTES_MAX 65536 /* HotSpot's description of the fields of a class */
#define FIELDS_MAX	 256   /* fields that are read; none of the requested classes has 60 */
#define IS_STATIC	 0x8   /* JVM_ACC_STATIC */
#define VM_SYMBOLS_MAX	 4096  /* JDK 25 has about 1,300 */

struct field {
	uint32_t name, signature; /* in the constant pool */
	uint32_t offset, access;
};

/* Reads the Array<T> to which the field at @at points. */
static int read_array(const struct jvm_objects *objects, uint64_t at, const char *type,
		      uint32_t element_bytes, uint8_t **ret_bytes, uint32_t *ret_n)
{
	const struct jvm_vm *vm = objects->vm;
	uint64_t array, data;
	uint32_t n;
	int rc = jvm_vm__field(vm, type, "_data", &data);

	if (!rc)
		rc = jvm_vm__read(vm, at, &array, sizeof(array));
	if (!rc)
		rc = jvm_vm__read(vm, array, &n, sizeof(n)); /* Array::_length is first */
	if (!rc && n > FIELDS_BYTES_MAX / element_bytes)
		rc = -EBADMSG;
	if (rc)
		return rc;
	*ret_bytes = malloc((size_t)n * element_bytes + 1);
	if (!*ret_bytes)
		return -ENOMEM;
	*ret_n = n;
	rc = jvm_vm__read(vm, array + data, *ret_bytes, (size_t)n * element_bytes);
	if (rc)
		free(*ret_bytes);
	return rc;
}

struct requested {
	const char *name; /* NULL: any */
	const char *signature;
	enum { INSTANCE, STATIC, INJECTED } kind;
};

/* Reads a name or signature. The names of injected fields are not in the class's constant pool.
 * They are HotSpot's own symbols, by number (classfile/vmSymbols.hpp). */
static int read_text(const struct jvm_objects *objects, uint64_t pool, bool injected,
		     uint32_t index, char **ret)
{
	uint64_t table, symbol;
	int rc;

	if (!injected)
		return jvm_symbols__constant(&objects->symbols, pool, index, ret);
	if (index >= VM_SYMBOLS_MAX)
		return -EBADMSG;
	if (jvm_vm__static(objects->vm, "Symbol", "_vm_symbols[0]", &table))
		return -ENOTSUP;
	rc = jvm_vm__read(objects->vm, table + index * sizeof(symbol), &symbol, sizeof(symbol));
	return rc ? rc : jvm_symbols__text(&objects->symbols, symbol, ret);
}

static int text_is(const struct jvm_objects *objects, uint64_t pool, bool injected, uint32_t index,
		   const char *requested)
{
	char *text = NULL;
	int rc = read_text(objects, pool, injected, index, &text);
	bool same = !rc && strcmp(text, requested) == 0;

	free(text);
	return rc ? rc : same;
}

/* Returns 1 if @field is the requested one, 0 if not, or an error. */
static int matches(const struct jvm_objects *objects, uint64_t pool, const struct field *field,
		   const struct requested *requested)
{
	bool injected = requested->kind == INJECTED;
	int rc = 1;

	if (!injected && !!(field->access & IS_STATIC) != (requested->kind == STATIC))
		return 0;
	if (requested->name)
		rc = text_is(objects, pool, injected, field->name, requested->name);
	if (rc == -EBADMSG)
		rc = 0;
	return rc > 0 && requested->signature
		       ? text_is(objects, pool, injected, field->signature, requested->signature)
		       : rc;
}

/* Finds the field until JDK 20: six u2 for each field (oops/fieldInfo.hpp). */
static int find_in_table(const struct jvm_objects *objects, uint64_t class, uint64_t pool,
			 const struct requested *requested, uint32_t *ret_offset)
{
	const struct jvm_vm *vm = objects->vm;
	enum { ACCESS, NAME, SIGNATURE, INITIAL, LOW, HIGH, SLOTS };
	enum { TAG_BITS = 2 };
	uint64_t fields, java_fields;
	const uint16_t *slot;
	uint8_t *bytes;
	uint32_t n;
	uint16_t n_java;
	int rc = jvm_vm__field(vm, "InstanceKlass", "_fields", &fields);

	if (!rc)
		rc = jvm_vm__field(vm, "InstanceKlass", "_java_fields_count", &java_fields);
	if (rc || requested->kind == INJECTED)
		return -ENOTSUP;
	rc = jvm_vm__read(vm, class + java_fields, &n_java, sizeof(n_java));
	if (!rc)
		rc = read_array(objects, class + fields, "Array<u2>", sizeof(*slot), &bytes, &n);
	if (rc)
		return rc;
	slot = (const uint16_t *)bytes;
	n_java = min_of(n_java, FIELDS_MAX);
	for (uint32_t i = 0; !rc && i < n_java && (i + 1) * SLOTS <= n; i++, slot += SLOTS) {
		struct field field = { .name = slot[NAME],
				       .signature = slot[SIGNATURE],
				       .access = slot[ACCESS] };

		*ret_offset = ((uint32_t)slot[HIGH] << 16 | slot[LOW]) >> TAG_BITS;
		rc = matches(objects, pool, &field, requested);
	}
	free(bytes);
	return rc < 0 ? rc : rc ? 0 : -ENOENT;
}

/* Returns the flags of a field that are followed by a number in the stream (oops/fieldInfo.hpp). */
static uint32_t flags_with_number(const struct jvm_vm *vm)
{
	static const char *const names[] = { "initialized", "generic", "contended", "flat",
					     "null_marker" };
	char name[64];
	uint32_t flags = 0;
	int64_t bit;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(name, sizeof(name), "FieldInfo::FieldFlags::_ff_%s", names[i]);
		if (!jvm_vm__constant(vm, name, &bit) && bit >= 0 && bit < 32)
			flags |= 1U << bit;
	}
	return flags;
}

static struct field next_field(struct jvm_stream *stream, uint32_t with_number)
{
	struct field field = { .name = jvm_stream__u32(stream) };
	uint32_t flags;

	field.signature = jvm_stream__u32(stream);
	field.offset = jvm_stream__u32(stream);
	field.access = jvm_stream__u32(stream);
	for (flags = jvm_stream__u32(stream) & with_number; flags; flags &= flags - 1)
		jvm_stream__u32(stream);
	return field;
}

/* Returns true if the stream ends here: a byte of 0 follows, or from JDK 25 on nothing. */
static bool stream__is_over(struct jvm_stream *stream)
{
	if (stream->failed)
		return false;
	return stream->at == stream->size || !jvm_stream__byte(stream);
}

/* Finds the field from JDK 21 on, in a stream of numbers of variable length. Fields that HotSpot
 * adds come last. A stream of another format does not end after the number of fields at its
 * start. */
static int find_in_stream(const struct jvm_objects *objects, uint64_t class, uint64_t pool,
			  const struct requested *requested, uint32_t *ret_offset)
{
	uint32_t n, n_injected, size, with_number = flags_with_number(objects->vm);
	struct jvm_stream stream = { .is_without_zero = true };
	uint64_t fields;
	uint8_t *bytes;
	bool found = false;
	int rc = jvm_vm__field(objects->vm, "InstanceKlass", "_fieldinfo_stream", &fields);

	if (!rc)
		rc = read_array(objects, class + fields, "Array<u1>", 1, &bytes, &size);
	if (rc)
		return rc;
	stream.bytes = bytes;
	stream.size = size;
	n = jvm_stream__u32(&stream);
	n_injected = jvm_stream__u32(&stream);
	if ((uint64_t)n + n_injected > FIELDS_MAX)
		rc = -EBADMSG;
	for (uint64_t i = 0; !rc && i < (uint64_t)n + n_injected && !stream.failed; i++) {
		struct field field = next_field(&stream, with_number);

		if (found || stream.failed || (i >= n) != (requested->kind == INJECTED))
			continue;
		rc = matches(objects, pool, &field, requested);
		found = rc > 0;
		if (found)
			*ret_offset = field.offset;
		rc = min_of(rc, 0);
	}
	if (!rc && !stream__is_over(&stream))
		rc = -EBADMSG;
	free(bytes);
	return rc ? rc : found ? 0 : -ENOENT;
}

static int find(const struct jvm_objects *objects, uint64_t class,
		const struct requested *requested, uint32_t *ret_offset)
{
	uint64_t constants, stream, pool;
	int rc = jvm_vm__field(objects->vm, "InstanceKlass", "_constants", &constants);

	if (rc)
		return -ENOTSUP;
	rc = jvm_vm__read(objects->vm, class + constants, &pool, sizeof(pool));
	if (rc)
		return rc;
	return jvm_vm__field(objects->vm, "InstanceKlass", "_fieldinfo_stream", &stream)
		       ? find_in_table(objects, class, pool, requested, ret_offset)
		       : find_in_stream(objects, class, pool, requested, ret_offset);
}

int jvm_objects__field(const struct jvm_objects *objects, uint64_t class, const char *name,
		       const char *signature, uint32_t *ret_offset)
{
	return find(objects, class, &(struct requested) { name, signature, INSTANCE }, ret_offset);
}

int jvm_objects__static(const struct jvm_objects *objects, uint64_t class, const char *name,
			const char *signature, uint64_t *ret_address)
{
	uint32_t offset;
	uint64_t mirror;
	int rc = find(objects, class, &(struct requested) { name, signature, STATIC }, &offset);

	if (!rc)
		rc = jvm_objects__mirror(objects, class, &mirror);
	if (!rc)
		*ret_address = mirror + offset;
	return rc;
}

int jvm_objects__injected(const struct jvm_objects *objects, uint64_t class, const char *name,
			  uint32_t *ret_offset)
{
	return find(objects, class, &(struct requested) { name, NULL, INJECTED }, ret_offset);
}
