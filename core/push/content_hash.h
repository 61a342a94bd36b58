/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CONTENT_HASH_H
#define BRAID_CONTENT_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* Ids by content: SHA-256. */

#define CONTENT_HASH_BYTES 32
#define CONTENT_HASH_TEXT  33 /* 128 bits in hexadecimal, with the NUL */

/* Hashes @salt (a text) followed by @data. libraries__get() must have succeeded before. Returns 0
 * or -ENOMEM. */
int content_hash__of(const char *salt, const void *data, size_t len,
		     uint8_t ret[CONTENT_HASH_BYTES]);

/* As content_hash__of(), in 64 bits, never 0. */
int content_hash__id(const char *salt, const void *data, size_t len, uint64_t *ret);

/* Hashes a whole file, as text. Returns 0, or a negative errno with a message. */
int content_hash__file(const char *path, char ret[CONTENT_HASH_TEXT], struct err *err);

#endif
