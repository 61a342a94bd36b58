/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PHP_CODES_H
#define BRAID_PHP_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "runtimes/runtime.h"

/* Code of PHP's frames, by the numbers of the kernel half. */
struct php_codes;

struct php_codes *php_codes__new(void); /* NULL: out of memory */
void php_codes__free(struct php_codes *codes);

/* Adds a REC_CODE_OBJECT of `size` bytes, whose table is a struct php_code_table. Returns 0,
 * -EBADMSG or -ENOMEM. */
int php_codes__add(struct php_codes *codes, const struct rec_code_object *rec, size_t size);

/* As runtime.forget_codes. */
void php_codes__forget(struct php_codes *codes, const struct u64map *listed);

/* As runtime.symbolize. */
int php_codes__symbolize(const struct php_codes *codes, uint64_t key, struct runtime_symbol *ret);

/* Returns the process address of the frame's C function; 0: the function is written in PHP. */
uint64_t php_codes__handler(const struct php_codes *codes, uint64_t key);

/* Returns true if the function may have been called without a frame (PHP_CODE_FRAMELESS). */
bool php_codes__is_frameless(const struct php_codes *codes, uint64_t key);

/* As runtime.native_name. */
const char *php_codes__native_name(const struct php_codes *codes, uint32_t pid, uint64_t entry);

#endif
