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

bool python_reader__bytes(struct python_reader *reader, uint64_t at, void *to, size_t size);
bool python_reader__word(struct python_reader *reader, uint64_t at, uint64_t *ret);
uint64_t python_reader__at(struct python_reader *reader, uint64_t at); /* 0: not readable */

/* Is this string of C there? */
bool python_reader__text_is(struct python_reader *reader, uint64_t at, const char *want);

/* The type, 0: it is no object; is it of just this one, or of one that is derived from it? By
 * tp_name, which has the module in front for types that C has made. */
uint64_t python_object__type(struct python_reader *reader, uint64_t object);
bool python_object__is(struct python_reader *reader, uint64_t object, const char *type_name);
bool python_object__is_a(struct python_reader *reader, uint64_t object, const char *type_name);

/* The word that is at this offset in builds with the GIL, whose objects have a shorter head. */
uint64_t python_object__field(struct python_reader *reader, uint64_t object, unsigned offset);
uint64_t python_object__bytes(struct python_reader *reader, uint64_t object); /* tp_basicsize */

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

/* Is it a str of just these ASCII characters, 64 at most? */
bool python_str__is(struct python_reader *reader, uint64_t object, const char *want);

/* A str as UTF-8, owned; NULL: it is none, or out of memory. */
char *python_str__dup(struct python_reader *reader, uint64_t object);

#endif
