/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_PACK_H
#define BRAID_TESTS_REPLAY_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* The files of the replay corpus: one xz stream of entries, each a header and the number of bytes
 * that it states. docs/internals/testing.md describes their meaning. Data that are read are
 * untrusted. */

enum pack_tag {
	PACK_FILE = 1, /* name: path below the target's directory in /proc; bytes: its content */
	PACK_IMAGE,    /* name: path in the target's root; bytes: name of the image's file */
	PACK_CASE,  /* name: name of the case; a: thread; b: machine (EM_*; 0: x86-64); bytes: DWARF
		       registers, then fs_base */
	PACK_BYTES, /* memory of the case at address a */
	PACK_SAME,  /* memory of the case: b bytes at address a are those of the image there */
	PACK_SIZE,  /* a: size of an ELF file */
	PACK_PIECE, /* a: offset in that file; bytes: contents there. All other bytes are zero */
	PACK_REFERENCED, /* [a, b): link-time addresses that the pieces describe */
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

/* Adds an entry. Returns 0, -ENOMEM or -ENAMETOOLONG. */
int pack__add(struct pack *pack, enum pack_tag tag, const char *name, uint64_t a, uint64_t b,
	      const void *bytes, size_t size);

/* Compresses to a file beside @path, then renames it. */
int pack__write(const struct pack *pack, const char *path, struct err *err);

/* Reads a file. The uncompressed bytes must not exceed PACK_BYTES_MAX. Returns -EBADMSG if the file
 * is not a pack, or damaged. */
#define PACK_BYTES_MAX (256u << 20)
int pack__read(const char *path, struct pack *ret, struct err *err);
int pack__parse(const unsigned char *xz, size_t size, struct pack *ret);

/* Returns the entry at *@at, and moves *@at to the next. Returns 1, 0 at the end, or -EBADMSG. */
int pack__next(const struct pack *pack, size_t *at, struct pack_entry *ret);

#endif
