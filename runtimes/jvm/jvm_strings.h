/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_STRINGS_H
#define BRAID_JVM_STRINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"

/* Methods that probes have reported by their strings (JVM_CODE_STRINGS). */
struct jvm_strings;

struct jvm_strings *jvm_strings__new(void);	     /* NULL: out of memory */
void jvm_strings__free(struct jvm_strings *strings); /* NULL is fine */

/* Adds the method of a record with that format; `size` is the size of the record received.
 * Returns 0, -EBADMSG or -ENOMEM. */
int jvm_strings__add(struct jvm_strings *strings, const struct rec_code_object *rec, size_t size);

/* Returns the name of a code number, "pkg.Class.method". With `apart`, methods with the same
 * name among those reported so far are distinguished: "pkg.Class.method(int): void". Borrowed
 * until the next call. Returns 0, -ENOENT if the number is not one of these, or -ENOMEM. */
int jvm_strings__name(struct jvm_strings *strings, uint32_t code, bool apart, const char **ret);

#endif
