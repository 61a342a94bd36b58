/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FUNCTION_NAMES_H
#define BRAID_FUNCTION_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* Names of functions by the address of their first instruction, from sources other than symbols:
 * tables that a program has for its own use. */
struct function_names;

int function_names__new(struct function_names **ret);	 /* Returns 0 or -ENOMEM. */
void function_names__free(struct function_names *names); /* NULL is fine */

/* Adds a name of the function at @entry, which may have several names. Returns 0 or -ENOMEM. */
__attribute__((format(printf, 3, 4))) int function_names__add(struct function_names *names,
							      uint64_t entry, const char *fmt, ...);

/* Returns all names of the function that begins at @entry, separated by a slash
 * ("set.copy/frozenset.copy"), in the order of function_names__add(). Returns NULL if it has no
 * name, or more than FUNCTION_NAMES_MAX: a function with more names has a common name of its own,
 * which is unavailable. Borrowed. */
#define FUNCTION_NAMES_MAX 3
const char *function_names__find(const struct function_names *names, uint64_t entry);

#endif
