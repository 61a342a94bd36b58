/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FNV_H
#define BRAID_FNV_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a, 64 bits: a hash for names that no adversary chooses. (draft-eastlake-fnv, section 2) */

#define FNV_BEGIN 0xcbf29ce484222325ULL
#define FNV_PRIME 0x100000001b3ULL

/* Returns the hash of the text that @hash covers, followed by @n bytes at @text. */
static inline uint64_t fnv__add(uint64_t hash, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)text[i]) * FNV_PRIME;
	return hash;
}

#endif
