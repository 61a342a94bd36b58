/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_USDT_H
#define BRAID_USDT_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/elf/elf_file.h"

/* The statically defined probe sites of an ELF file: its .note.stapsdt, as <sys/sdt.h> of SystemTap
 * writes it. A site is one no-op instruction; a probe may have several sites. */

struct usdt_site {
	/* Borrowed until elf_file__free(); the contents are untrusted. */
	const char *provider, *name;
	const char *arguments;	  /* "-4@%edi 8@(%rsp)", for usdt_args.h */
	uint64_t pc_vaddr;	  /* link-time addresses */
	uint64_t semaphore_vaddr; /* a 16-bit counter of listeners; 0: none */
};

struct usdt_sites {
	struct usdt_site *list; /* in the file's order */
	size_t n, cap;
};

/* Reads all sites; a file without sites is not an error. Returns 0, -EBADMSG for malformed notes,
 * -E2BIG for too many, or -ENOMEM. */
int usdt__read(const struct elf_file *file, struct usdt_sites *ret, struct err *err);
void usdt_sites__done(struct usdt_sites *sites); /* idempotent */

#endif
