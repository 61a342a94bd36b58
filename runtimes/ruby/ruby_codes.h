/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_CODES_H
#define BRAID_RUBY_CODES_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/ruby.h"
#include "runtimes/common/anchors.h"
#include "runtimes/runtime.h"

/* The code that CRuby's control frames run, by the numbers that the kernel half assigned. */
struct ruby_codes;

struct ruby_codes *ruby_codes__new(void); /* NULL: out of memory */
void ruby_codes__free(struct ruby_codes *codes);

/* Adds a REC_CODE_OBJECT of `size` bytes, whose table is a struct ruby_code_table. A second record
 * with the same number replaces the first, since probes report names in parts. Texts that did not
 * fit are read from the process, if it still lives. Returns 0, -EBADMSG or -ENOMEM. */
int ruby_codes__add(struct ruby_codes *codes, const struct rec_code_object *rec, size_t size);

/* As runtime.forget_codes. */
void ruby_codes__forget(struct ruby_codes *codes, const struct u64map *listed);

/* As runtime.symbolize. */
int ruby_codes__symbolize(const struct ruby_codes *codes, uint64_t key, struct runtime_symbol *ret);

/* Returns the method in C whose function begins at address @entry of this process; NULL: none is
 * cached. */
const char *ruby_codes__native_name(const struct ruby_codes *codes, uint32_t pid, uint64_t entry);

/* Returns the process address of the frame's native function (a method in C), or
 * ANCHOR_FUNCTION_UNKNOWN; 0: an interpreter loop runs the frame. */
uint64_t ruby_codes__native(const struct ruby_codes *codes, uint64_t key);

#endif
