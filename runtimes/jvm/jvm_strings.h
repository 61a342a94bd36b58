/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_STRINGS_H
#define BRAID_JVM_STRINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"

/* Methods that probes have told by their strings (JVM_CODE_STRINGS). */
struct jvm_strings;

struct jvm_strings *jvm_strings__new(void);	     /* NULL: out of memory */
void jvm_strings__free(struct jvm_strings *strings); /* NULL is fine */

/* A record with that format; `size` is what arrived. -EBADMSG, -ENOMEM. */
int jvm_strings__add(struct jvm_strings *strings, const struct rec_code *rec, size_t size);

/* "pkg.Class.method", of a code number. With `apart` methods that have that in common, of what is
 * known so far, are told apart: "pkg.Class.method(int): void". Borrowed until the next call.
 * -ENOENT: not one of these; -ENOMEM. */
int jvm_strings__name(struct jvm_strings *strings, uint32_t code, bool apart, const char **ret);

#endif
