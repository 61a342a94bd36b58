/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FUNCTION_NAMES_H
#define BRAID_FUNCTION_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* Names of functions by the address of their first instruction, from elsewhere than symbols: tables
 * that a program has for its own use. */
struct function_names;

int function_names__new(struct function_names **ret);	 /* -ENOMEM */
void function_names__free(struct function_names *names); /* NULL is fine */

/* One function may get several names. 0 or -ENOMEM. */
__attribute__((format(printf, 3, 4))) int function_names__add(struct function_names *names,
							      uint64_t entry, const char *fmt, ...);

/* All names of the function that begins at `entry`, by a stroke ("set.copy/frozenset.copy"), in the
 * order in which they came; NULL if it has none, or more than FUNCTION_NAMES_MAX: who does the work
 * of so many has a name of its own that nobody knows. Borrowed. */
#define FUNCTION_NAMES_MAX 3
const char *function_names__find(const struct function_names *names, uint64_t entry);

#endif
