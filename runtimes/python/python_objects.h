/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_OBJECTS_H
#define BRAID_PYTHON_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/python/python_versions.h"

/* Python objects in the memory of a process, by their addresses; 0: no object. The process runs, so
 * all of it may change while it is read. Values that cannot be right count as absent. CPython 3.8
 * to 3.15. */
struct python_reader {
	uint32_t pid;
	const struct python_version *version;
	unsigned reads_left;	    /* limit of reads, since a process may change all the time */
	struct python_cache *cache; /* NULL: each read is of the process */
};

/* Blocks of the process's memory, as they were at their first read. An object is read once instead
 * of word by word, a type or a code object once for all objects. A zeroed struct is empty. */
#define PYTHON_BLOCK_BYTES 512 /* a part of a page, so that all of it is readable or none */
#define PYTHON_BLOCKS	   128 /* a power of two */
struct python_cache {
	uint64_t at[PYTHON_BLOCKS]; /* address; 0: empty */
	uint8_t blocks[PYTHON_BLOCKS][PYTHON_BLOCK_BYTES];
};

bool python_reader__bytes(struct python_reader *reader, uint64_t at, void *to, size_t size);
bool python_reader__word(struct python_reader *reader, uint64_t at, uint64_t *ret);
uint64_t python_reader__at(struct python_reader *reader, uint64_t at); /* 0: not readable */

/* Is this string of C there? */
bool python_reader__text_is(struct python_reader *reader, uint64_t at, const char *want);

/* __type() returns the type, or 0 if it is no object. __is() returns true if the type is this one,
 * __is_a() also if it is derived from this one. Types are compared by tp_name, which includes the
 * module for types made in C. */
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

/* Reads a small int. Returns false for other objects. */
bool python_int__get(struct python_reader *reader, uint64_t object, uint64_t *ret);

/* Returns true if the object is a str of exactly these ASCII characters, 64 at most. */
bool python_str__is(struct python_reader *reader, uint64_t object, const char *want);

/* Returns a str as UTF-8, owned by the caller, or NULL if it is no str, or out of memory. */
char *python_str__dup(struct python_reader *reader, uint64_t object);

#endif
