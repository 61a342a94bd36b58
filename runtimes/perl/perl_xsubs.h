/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PERL_XSUBS_H
#define BRAID_PERL_XSUBS_H

#include <stdint.h>

#include "bpf/perl.h"

/* Names of Perl's C functions ("XSUBs") by their addresses, from the symbol table of Perl in a
 * process. ELF symbols are not enough: most extensions are stripped, and these functions are static
 * anyway. */
struct perl_xsubs;

/* Location of Perl's own symbol table (PL_defstash) in a process; no ELF symbol table. */
struct perl_stashes {
	uint64_t at;	     /* address of a pointer: to the interpreter, or to the symbol table */
	uint16_t defstash;   /* offset in the interpreter */
	uint16_t is_pointer; /* `at` is that of the symbol table */
	struct perl_offsets offsets;
};

struct perl_xsubs *perl_xsubs__new(void); /* NULL: out of memory */
void perl_xsubs__free(struct perl_xsubs *xsubs);

/* Returns 0 or -ENOMEM. A second call for the same space replaces the first. */
int perl_xsubs__attach(struct perl_xsubs *xsubs, uint32_t pid, uint32_t space,
		       const struct perl_stashes *stashes);
void perl_xsubs__detach(struct perl_xsubs *xsubs, uint32_t space); /* idempotent */

/* Returns "Package::name" of the function that begins at `entry`, all names if there are several
 * (ALIAS of perlxs), or NULL. Reads the process's symbol table at the first call, and again later,
 * since extensions may be loaded at any time. Borrowed until the next call. */
const char *perl_xsubs__name(struct perl_xsubs *xsubs, uint32_t pid, uint64_t entry);

#endif
