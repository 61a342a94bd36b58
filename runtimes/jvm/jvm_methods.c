// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_methods.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/strtab.h"
#include "core/base/u64map.h"
#include "core/base/util.h"
#include "runtimes/jvm/jvm_lines.h"
#include "runtimes/jvm/jvm_names.h"
#include "runtimes/jvm/jvm_symbols.h"

#define CONST_METHOD_BYTES 128		 /* bytes of its fields, at most; 56 in JDK 21 */
#define METHOD_BYTES_MAX   (1024 * 1024) /* bytes of a ConstMethod with all that follows it */
#define WORD_BYTES	   8

/* Offsets in Method, ConstMethod, ConstantPool and Klass. */
struct layout {
	uint64_t const_method;
	uint64_t constants, const_method_words, flags, code_size, name_index;
	uint64_t const_method_bytes; /* sizeof */
	uint64_t holder, source_file;
	bool source_file_in_class; /* until JDK 15 */
	uint64_t class_name;
	int64_t flag_lines;
};

/* The values that distinguish a Method from a later one at the same address. */
struct identity {
	uint64_t const_method, constants, holder, class_name;
	uint32_t const_method_words;
	uint16_t code_size, name_index;
};

struct entry {
	struct identity identity;
	struct jvm_method method;
	char *name;
	struct jvm_method_lines *lines;
	size_t charged; /* bytes charged to the allowance */
};

struct jvm_methods {
	const struct jvm_vm *vm;
	struct layout layout;
	struct jvm_symbols symbols;
	bool is_without_zero;	  /* see struct jvm_stream */
	struct u64map by_address; /* Method -> index into `list` + 1 */
	struct entry **list;
	size_t n, cap;
	struct strtab *files;
	struct allowance *allowance; /* NULL: no limit */
};

/* --- layout --- */

struct requested {
	const char *type, *field;
	uint64_t *to;
};

static int find_flags(const struct jvm_vm *vm, struct layout *layout)
{
	/* JDK 21 made a class of the flags. */
	if (jvm_vm__field(vm, "ConstMethod", "_flags", &layout->flags) == 0)
		return jvm_vm__constant(vm, "ConstMethod::_has_linenumber_table",
					&layout->flag_lines);
	if (jvm_vm__field(vm, "ConstMethod", "_flags._flags", &layout->flags) == 0)
		return jvm_vm__constant(vm, "ConstMethodFlags::_misc_has_linenumber_table",
					&layout->flag_lines);
	return -ENOENT;
}

static int find_layout(const struct jvm_vm *vm, struct layout *layout)
{
	const struct requested fields[] = {
		{ "Method", "_constMethod", &layout->const_method },
		{ "ConstMethod", "_constants", &layout->constants },
		{ "ConstMethod", "_constMethod_size", &layout->const_method_words },
		{ "ConstMethod", "_code_size", &layout->code_size },
		{ "ConstMethod", "_name_index", &layout->name_index },
		{ "ConstantPool", "_pool_holder", &layout->holder },
		{ "Klass", "_name", &layout->class_name },
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (jvm_vm__field(vm, fields[i].type, fields[i].field, fields[i].to))
			return -ENOTSUP;
	layout->source_file_in_class = jvm_vm__field(vm, "ConstantPool", "_source_file_name_index",
						     &layout->source_file) != 0;
	if (layout->source_file_in_class &&
	    jvm_vm__field(vm, "InstanceKlass", "_source_file_name_index", &layout->source_file))
		return -ENOTSUP;
	if (find_flags(vm, layout) || jvm_vm__size(vm, "ConstMethod", &layout->const_method_bytes))
		return -ENOTSUP;
	return layout->const_method_bytes > CONST_METHOD_BYTES ||
			       max_of(max_of(layout->constants, layout->const_method_words),
				      max_of(max_of(layout->flags, layout->code_size),
					     layout->name_index)) > CONST_METHOD_BYTES - 8
		       ? -ENOTSUP
		       : 0;
}

int jvm_methods__new(const struct jvm_vm *vm, struct jvm_methods **ret)
{
	struct jvm_methods *methods = calloc(1, sizeof(*methods));
	int rc;

	if (!methods)
		return -ENOMEM;
	methods->vm = vm;
	methods->is_without_zero = jvm_vm__major(vm) >= JVM_STREAM_WITHOUT_ZERO;
	methods->files = strtab__new();
	rc = methods->files ? find_layout(vm, &methods->layout) : -ENOMEM;
	if (!rc)
		rc = jvm_symbols__find(vm, &methods->symbols);
	if (rc)
		jvm_methods__free(methods);
	else
		*ret = methods;
	return rc;
}

void jvm_methods__limit(struct jvm_methods *methods, struct allowance *allowance)
{
	methods->allowance = allowance;
}

struct allowance *jvm_methods__allowance(const struct jvm_methods *methods)
{
	return methods->allowance;
}

static void entry__free(const struct jvm_methods *methods, struct entry *entry)
{
	if (!entry)
		return;
	allowance__drop(methods->allowance, entry->charged);
	free(entry->name);
	free(entry->lines);
	free(entry);
}

void jvm_methods__free(struct jvm_methods *methods)
{
	if (!methods)
		return;
	for (size_t i = 0; i < methods->n; i++)
		entry__free(methods, methods->list[i]);
	free(methods->list);
	u64map__done(&methods->by_address);
	strtab__free(methods->files);
	free(methods);
}

/* --- reading --- */

static int read_u64(const struct jvm_methods *methods, uint64_t address, uint64_t *ret)
{
	return jvm_vm__read(methods->vm, address, ret, sizeof(*ret));
}

static uint64_t load(const uint8_t *bytes, uint64_t offset, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, bytes + offset, size);
	return value;
}

/* Also reads the flags that describe the data after the bytecodes. */
static int read_identity(const struct jvm_methods *methods, uint64_t method, struct identity *ret,
			 uint32_t *ret_flags)
{
	const struct layout *layout = &methods->layout;
	uint8_t bytes[CONST_METHOD_BYTES];
	int rc = read_u64(methods, method + layout->const_method, &ret->const_method);

	if (!rc)
		rc = jvm_vm__read(methods->vm, ret->const_method, bytes,
				  layout->const_method_bytes);
	if (rc)
		return rc;
	ret->constants = load(bytes, layout->constants, 8);
	ret->const_method_words = load(bytes, layout->const_method_words, 4);
	ret->code_size = load(bytes, layout->code_size, 2);
	ret->name_index = load(bytes, layout->name_index, 2);
	*ret_flags = load(bytes, layout->flags, 2);
	rc = read_u64(methods, ret->constants + layout->holder, &ret->holder);
	if (!rc)
		rc = read_u64(methods, ret->holder + layout->class_name, &ret->class_name);
	return rc;
}

static bool identity__equal(const struct identity *a, const struct identity *b)
{
	return a->const_method == b->const_method && a->constants == b->constants &&
	       a->holder == b->holder && a->class_name == b->class_name &&
	       a->const_method_words == b->const_method_words && a->code_size == b->code_size &&
	       a->name_index == b->name_index;
}

/* --- entries --- */

static int entry__read_name(struct entry *entry, const struct jvm_methods *methods)
{
	const struct identity *identity = &entry->identity;
	char *class_name = NULL, *method_name = NULL;
	int rc = jvm_symbols__text(&methods->symbols, identity->class_name, &class_name);

	if (!rc)
		rc = jvm_symbols__constant(&methods->symbols, identity->constants,
					   identity->name_index, &method_name);
	if (!rc) {
		entry->name = jvm_name__method(class_name, method_name);
		entry->method.name = entry->name;
		rc = entry->name ? 0 : -ENOMEM;
	}
	free(class_name);
	free(method_name);
	return rc;
}

/* Reads the name of the source file; it remains NULL if the class has none. */
static int entry__read_file(struct entry *entry, const struct jvm_methods *methods)
{
	const struct layout *layout = &methods->layout;
	const struct identity *identity = &entry->identity;
	uint64_t object = layout->source_file_in_class ? identity->holder : identity->constants;
	char *file = NULL;
	uint16_t index;
	uint32_t id;
	int rc = jvm_vm__read(methods->vm, object + layout->source_file, &index, sizeof(index));

	if (rc || !index)
		return rc;
	rc = jvm_symbols__constant(&methods->symbols, identity->constants, index, &file);
	if (!rc)
		rc = strtab__intern(methods->files, file, &id);
	if (!rc)
		entry->method.file = strtab__get(methods->files, id);
	free(file);
	return rc;
}

static int entry__read_lines(struct entry *entry, const struct jvm_methods *methods)
{
	const struct identity *identity = &entry->identity;
	size_t whole = (size_t)identity->const_method_words * WORD_BYTES;
	size_t before = methods->layout.const_method_bytes + identity->code_size;
	struct jvm_stream stream = { .is_without_zero = methods->is_without_zero };
	uint8_t *bytes;
	int rc;

	if (whole > METHOD_BYTES_MAX || whole <= before)
		return -EBADMSG;
	stream.size = whole - before;
	bytes = malloc(stream.size);
	if (!bytes)
		return -ENOMEM;
	stream.bytes = bytes;
	rc = jvm_vm__read(methods->vm, identity->const_method + before, bytes, stream.size);
	if (!rc)
		rc = jvm_lines__decode(&stream, &entry->lines);
	entry->method.lines = entry->lines;
	free(bytes);
	return rc;
}

static bool keep(const struct jvm_methods *methods, struct entry *entry)
{
	size_t bytes = sizeof(*entry) + strlen(entry->name);

	if (entry->lines)
		bytes += entry->lines->n * sizeof(entry->lines->list[0]);
	if (!allowance__keep(methods->allowance, bytes))
		return false;
	entry->charged = bytes;
	return true;
}

static int entry__new(const struct jvm_methods *methods, const struct identity *identity,
		      uint32_t flags, struct entry **ret)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	int rc;

	if (!entry)
		return -ENOMEM;
	entry->identity = *identity;
	rc = entry__read_name(entry, methods);
	/* A method is usable without file and lines: HotSpot's own methods
	 * (MethodHandle.linkToStatic) have a file's index that is not one of their constant
	 * pool. */
	if (!rc && entry__read_file(entry, methods) == -ENOMEM)
		rc = -ENOMEM;
	if (!rc && flags & methods->layout.flag_lines &&
	    entry__read_lines(entry, methods) == -ENOMEM)
		rc = -ENOMEM;
	if (!rc && !keep(methods, entry))
		rc = -EBADMSG;
	if (rc)
		entry__free(methods, entry);
	else
		*ret = entry;
	return rc;
}

static struct entry *add_entry(struct jvm_methods *methods, uint64_t method,
			       const struct identity *identity, uint32_t flags)
{
	struct identity after;
	struct entry *entry;

	if (array__reserve(&methods->list, &methods->cap, methods->n + 1, sizeof(*methods->list)) ||
	    entry__new(methods, identity, flags, &entry))
		return NULL;
	/* The JVM runs, so the entry is the method's only if the method is still there. */
	if (read_identity(methods, method, &after, &flags) || !identity__equal(identity, &after)) {
		entry__free(methods, entry);
		return NULL;
	}
	methods->list[methods->n++] = entry;
	if (u64map__put(&methods->by_address, method, methods->n)) {
		entry__free(methods, methods->list[--methods->n]);
		return NULL;
	}
	return entry;
}

static struct entry *find(struct jvm_methods *methods, uint64_t method)
{
	uint32_t id = u64map__get(&methods->by_address, method), flags;
	struct entry *known = id ? methods->list[id - 1] : NULL;
	struct identity identity;

	if (read_identity(methods, method, &identity, &flags))
		return known;
	if (known && identity__equal(&known->identity, &identity))
		return known;
	return add_entry(methods, method, &identity, flags);
}

const struct jvm_method *jvm_methods__get(struct jvm_methods *methods, uint64_t method)
{
	struct entry *entry = find(methods, method);

	return entry ? &entry->method : NULL;
}

const struct jvm_method *jvm_methods__get_sampled(struct jvm_methods *methods, uint64_t method,
						  uint64_t const_method)
{
	struct entry *entry = find(methods, method);

	return entry && entry->identity.const_method == const_method ? &entry->method : NULL;
}

uint32_t jvm_method__line(const struct jvm_method *method, uint32_t bci)
{
	return method ? jvm_lines__find(method->lines, bci) : 0;
}
