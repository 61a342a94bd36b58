/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_CODES_H
#define BRAID_RUBY_CODES_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/ruby.h"
#include "runtimes/common/anchors.h"
#include "runtimes/runtime.h"

/* What CRuby's control frames run, by the numbers that the kernel half gave. */
struct ruby_codes;

struct ruby_codes *ruby_codes__new(void); /* NULL: out of memory */
void ruby_codes__free(struct ruby_codes *codes);

/* A REC_CODE of `size` bytes, its table being a struct ruby_code_table. A second one with the same
 * number takes the place of the first: probes tell names before they know all of them. What there
 * was no room for is read from the process, if it still lives. -EBADMSG or -ENOMEM. */
int ruby_codes__add(struct ruby_codes *codes, const struct rec_code *rec, size_t size);

/* As runtime.forget_codes. */
void ruby_codes__forget(struct ruby_codes *codes, const struct u64map *known);

/* As runtime.symbolize. */
int ruby_codes__symbolize(const struct ruby_codes *codes, uint64_t key, struct runtime_symbol *ret);

/* Address in the process of the native function that the frame is (a method in C), or
 * ANCHOR_FUNCTION_UNKNOWN; 0: an interpreter loop runs it. */
/* The method in C whose function begins there in this process; NULL: none that is known. */
const char *ruby_codes__native_name(const struct ruby_codes *codes, uint32_t pid, uint64_t entry);

uint64_t ruby_codes__native(const struct ruby_codes *codes, uint64_t key);

#endif
