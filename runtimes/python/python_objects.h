/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_OBJECTS_H
#define BRAID_PYTHON_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/python/python_versions.h"

/* Python objects in the memory of a process, by their addresses; 0 is none. Nothing is stopped, so
 * all of it may change while it is read: what makes no sense is not there. CPython 3.8 to 3.14. */
struct python_reader {
	uint32_t pid;
	const struct python_version *version;
	unsigned reads_left; /* bounds what is read of a process that changes all the time */
};

/* The value of a key that is a string, in a dict, in a module, or among the attributes of an object
 * itself. */
uint64_t python_dict__get(struct python_reader *reader, uint64_t dict, const char *key);
uint64_t python_module__get(struct python_reader *reader, uint64_t module, const char *key);
uint64_t python_object__get(struct python_reader *reader, uint64_t object, const char *key);

/* All values. A negative return ends the walk and is propagated. */
typedef int (*python_value_fn)(void *ctx, uint64_t value);
int python_dict__values(struct python_reader *reader, uint64_t dict, python_value_fn on_value,
			void *ctx);

/* A small int; false: it is none. */
bool python_int__get(struct python_reader *reader, uint64_t object, uint64_t *ret);

/* A str as UTF-8, owned; NULL: it is none, or out of memory. */
char *python_str__dup(struct python_reader *reader, uint64_t object);

bool python_reader__word(struct python_reader *reader, uint64_t at, uint64_t *ret);

#endif
