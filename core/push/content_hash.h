/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CONTENT_HASH_H
#define BRAID_CONTENT_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* Ids of things by what they are: SHA-256. */

#define CONTENT_HASH_BYTES 32
#define CONTENT_HASH_TEXT  33 /* 128 bits of it in hexadecimal, with the NUL */

/* Of `salt` (a text) and then `data`. Libraries have to be there: libraries__get. 0 or -ENOMEM. */
int content_hash__of(const char *salt, const void *data, size_t len,
		     uint8_t ret[CONTENT_HASH_BYTES]);

/* The same in 64 bits, never 0. */
int content_hash__id(const char *salt, const void *data, size_t len, uint64_t *ret);

/* Of a whole file, as text. A negative errno with the sentence in `err`. */
int content_hash__file(const char *path, char ret[CONTENT_HASH_TEXT], struct err *err);

#endif
