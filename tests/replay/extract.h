/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_EXTRACT_H
#define BRAID_TESTS_REPLAY_EXTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "tests/replay/pack.h"

/* What the replay of some stacks needs of an ELF file: the same file with the same offsets, where
 * all that nobody asked for is zeroes. Headers and notes stay, frame descriptions and symbols of
 * wanted code (and of its neighbours), and bytes that were read. A small file stays whole. */
struct extract;

/* `fd` is borrowed, `path` is the target's name for it. -ENOMEM, -EBADMSG. */
int extract__new(int fd, const char *path, struct extract **ret);
void extract__free(struct extract *extract); /* NULL is fine */

/* Code at link-time addresses; a function that was asked for by name; bytes. -ENOMEM. */
int extract__want_code(struct extract *extract, uint64_t start, uint64_t end);
int extract__want_symbol(struct extract *extract, const char *name);
int extract__want_bytes(struct extract *extract, uint64_t vaddr, uint64_t size);

/* Bytes by their offset in the file. True: the file has exactly these there, and they are wanted
 * from now on. */
bool extract__has(struct extract *extract, uint64_t offset, const void *bytes, size_t size);

const char *extract__path(const struct extract *extract);
const char *extract__name(const struct extract *extract); /* of its file in the corpus */

/* Writes it to `dir`; what an earlier extract of the same file holds there stays in it. */
int extract__write(struct extract *extract, const char *dir, struct err *err);

#endif
