/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PERL_CODES_H
#define BRAID_PERL_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "runtimes/runtime.h"

/* Code of Perl's contexts, by the numbers of the kernel half. */
struct perl_codes;

struct perl_codes *perl_codes__new(void); /* NULL: out of memory */
void perl_codes__free(struct perl_codes *codes);

/* Adds a REC_CODE_OBJECT of `size` bytes, whose table is a struct perl_code_table. Returns 0,
 * -EBADMSG or -ENOMEM. */
int perl_codes__add(struct perl_codes *codes, const struct rec_code_object *rec, size_t size);

/* As runtime.forget_codes. */
void perl_codes__forget(struct perl_codes *codes, const struct u64map *listed);

/* As runtime.symbolize. */
int perl_codes__symbolize(const struct perl_codes *codes, uint64_t key, struct runtime_symbol *ret);

/* Returns true if the frame represents the main program. */
bool perl_codes__is_main(const struct perl_codes *codes, uint64_t key);

#endif
