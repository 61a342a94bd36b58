// SPDX-License-Identifier: GPL-2.0-or-later
/* Each class loader has a list of its classes (classfile/classLoaderData.hpp); a new class is
 * inserted at the front. The loader of java.lang.Object is the boot loader. */
#include "runtimes/jvm/jvm_classes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CLASSES_MAX 100000 /* limit for one loader; a few thousand are usual */

struct layout {
	uint64_t name, next;  /* offsets in Klass */
	uint64_t loader_data; /* in Klass */
	uint64_t classes;     /* in ClassLoaderData */
};

static int find_layout(const struct jvm_vm *vm, struct layout *ret)
{
	return jvm_vm__field(vm, "Klass", "_name", &ret->name) ||
			       jvm_vm__field(vm, "Klass", "_next_link", &ret->next) ||
			       jvm_vm__field(vm, "Klass", "_class_loader_data",
					     &ret->loader_data) ||
			       jvm_vm__field(vm, "ClassLoaderData", "_klasses", &ret->classes)
		       ? -ENOTSUP
		       : 0;
}

/* Finds the newest class of the boot loader. */
static int find_first(const struct jvm_vm *vm, const struct layout *layout, uint64_t *ret)
{
	static const char field[] = "_klasses[static_cast<int>(vmClassID::Object_klass_knum)]";
	uint64_t at, object, loader_data;
	int rc = jvm_vm__static(vm, "vmClasses", field, &at);

	if (rc)
		return -ENOTSUP;
	rc = jvm_vm__read(vm, at, &object, sizeof(object));
	if (!rc)
		rc = jvm_vm__read(vm, object + layout->loader_data, &loader_data,
				  sizeof(loader_data));
	return rc ? rc : jvm_vm__read(vm, loader_data + layout->classes, ret, sizeof(*ret));
}

/* Sets the address of the classes with that name. Returns their number. */
static int see(const struct jvm_symbols *symbols, uint64_t name, uint64_t class,
	       struct jvm_class *classes, size_t n)
{
	char *text = NULL;
	uint16_t length;
	int found = 0;

	if (jvm_vm__read(symbols->vm, name + symbols->length, &length, sizeof(length)))
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (classes[i].address || strlen(classes[i].name) != length ||
		    (!text && jvm_symbols__text(symbols, name, &text)))
			continue;
		if (strcmp(text, classes[i].name) != 0)
			continue;
		classes[i].address = class;
		found++;
	}
	free(text);
	return found;
}

int jvm_classes__find(const struct jvm_symbols *symbols, struct jvm_class *classes, size_t n)
{
	const struct jvm_vm *vm = symbols->vm;
	struct layout layout;
	uint64_t at, name;
	size_t found = 0;
	int rc = find_layout(vm, &layout);

	if (!rc)
		rc = find_first(vm, &layout, &at);
	for (size_t i = 0; !rc && at && found < n && i < CLASSES_MAX; i++) {
		if (jvm_vm__read(vm, at + layout.name, &name, sizeof(name)))
			break;
		found += see(symbols, name, at, classes, n);
		rc = jvm_vm__read(vm, at + layout.next, &at, sizeof(at));
	}
	return rc;
}
