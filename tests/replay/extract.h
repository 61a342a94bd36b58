/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_EXTRACT_H
#define BRAID_TESTS_REPLAY_EXTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "tests/replay/pack.h"

/* The parts of an ELF file that the replay of some stacks needs: the same file with the same
 * offsets, in which all other bytes are zero. These parts are headers and notes, frame descriptions
 * and symbols of required code and its neighbours, and bytes that were read. A small file is stored
 * whole. */
struct extract;

/* Makes an extract. @fd is borrowed; @path is the target's name for the file. Returns 0, -ENOMEM or
 * -EBADMSG. */
int extract__new(int fd, const char *path, struct extract **ret);
void extract__free(struct extract *extract); /* @extract may be NULL */

/* Require code at link-time addresses, a function by name, or bytes. Return 0 or -ENOMEM. */
int extract__want_code(struct extract *extract, uint64_t start, uint64_t end);
int extract__want_symbol(struct extract *extract, const char *name);
int extract__want_bytes(struct extract *extract, uint64_t vaddr, uint64_t size);

/* Returns true if the file has exactly @bytes at @offset. They are required from then on. */
bool extract__has(struct extract *extract, uint64_t offset, const void *bytes, size_t size);

const char *extract__path(const struct extract *extract);
const char *extract__name(const struct extract *extract); /* name of its file in the corpus */

/* Writes the extract to @dir, together with the pieces of an earlier extract of the same file
 * there. */
int extract__write(struct extract *extract, const char *dir, struct err *err);

#endif
