/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_CODES_H
#define BRAID_PYTHON_CODES_H

#include <stddef.h>

#include "bpf/shared.h"
#include "runtimes/runtime.h"

/* All code objects that the walker announced, by their number. They stay: a number is never used
 * for anything else, whatever becomes of the memory that the code object was in. */
struct python_codes;

struct python_codes *python_codes__new(void);	     /* NULL: out of memory */
void python_codes__free(struct python_codes *codes); /* NULL is fine */

/* `rec` is untrusted, `size` bytes of it have arrived. A line table that is not all there is
 * fetched from the process. 0; -EBADMSG, -ENOMEM, and nothing changes. */
int python_codes__add(struct python_codes *codes, const struct rec_code_object *rec, size_t size);

/* As runtime.forget_codes. */
void python_codes__forget(struct python_codes *codes, const struct u64map *listed);

/* 0 or -ENOENT. Strings are borrowed until python_codes__free or __forget. */
int python_codes__symbolize(const struct python_codes *codes, uint64_t key,
			    struct runtime_symbol *ret);

/* As runtime_jit.label, for the names that -X perf writes. */
bool python_codes__label(const char *symbol, char *buf, size_t size, struct runtime_label *ret);

#endif
