/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_PACK_H
#define BRAID_TESTS_REPLAY_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* The files of the replay corpus: one xz stream of entries, each a header and as many bytes as it
 * says. docs/internals/testing.md describes what they mean. What is read is untrusted. */

enum pack_tag {
	PACK_FILE = 1, /* name: path below the target's directory in /proc; bytes: its content */
	PACK_IMAGE,    /* name: path in the target's root; bytes: name of the image's file */
	PACK_CASE,     /* name: of the case; a: thread; b: machine (EM_*; 0: x86-64); bytes: DWARF
			  registers, then fs_base */
	PACK_BYTES,    /* of the case before: memory at address a */
	PACK_SAME,     /* of the case before: b bytes at address a are those of the image there */
	PACK_SIZE,     /* a: size of an ELF file */
	PACK_PIECE,    /* a: offset in it; bytes: what is there. Elsewhere it is all zeroes */
	PACK_KNOWN,    /* [a, b): link-time addresses that the pieces describe */
	PACK_TAGS
};

#define PACK_NAME_BYTES 512

struct pack_entry {
	enum pack_tag tag;
	char name[PACK_NAME_BYTES];
	uint64_t a, b;
	const unsigned char *bytes; /* borrowed from the pack */
	size_t size;
};

struct pack { /* zeroed: empty */
	unsigned char *data;
	size_t n, cap;
};

void pack__done(struct pack *pack); /* idempotent */

/* -ENOMEM, -ENAMETOOLONG. */
int pack__add(struct pack *pack, enum pack_tag tag, const char *name, uint64_t a, uint64_t b,
	      const void *bytes, size_t size);

/* Compresses to a file beside `path`, then renames it. */
int pack__write(const struct pack *pack, const char *path, struct err *err);

/* Uncompressed bytes must not be more than PACK_BYTES_MAX. -EBADMSG: no such file, or damaged. */
#define PACK_BYTES_MAX (256u << 20)
int pack__read(const char *path, struct pack *ret, struct err *err);
int pack__parse(const unsigned char *xz, size_t size, struct pack *ret);

/* The entry at `*at`, which is then that of the next one. 1, 0 at the end, or -EBADMSG. */
int pack__next(const struct pack *pack, size_t *at, struct pack_entry *ret);

#endif
