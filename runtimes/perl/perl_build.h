/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PERL_BUILD_H
#define BRAID_PERL_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/elf/elf_file.h"
#include "runtimes/perl/perl_versions.h"
#include "runtimes/runtime.h"

/* Facts that a file with Perl contains about its build. */

struct perl_number {
	uint8_t major, minor, patch;
};

bool perl_build__is_perl(const struct elf_file *file);

/* Returns 0 or -ENOENT. */
int perl_build__version(const struct elf_file *file, struct perl_number *ret);

/* Link-time addresses of the interpreter, and places of its fields. */
struct perl_place {
	enum perl_state_kind state;
	uint64_t key_vaddr;
	uint64_t first_vaddr; /* the pointer to the program's first interpreter; 0: unknown */
	/* Offsets in the interpreter; PERL_STATE_GLOBAL: addresses. `phase` 0: unknown */
	uint64_t op, curcop, curstackinfo, comppad, phase, defstash;
};

/* Returns NULL, or the reason why the interpreter cannot be walked. */
const char *perl_build__place(const struct elf_file *file, const struct perl_version *version,
			      struct perl_place *ret);

/* Returns true if the first field that @function reads (`mov disp32(%reg),%reg`, with a register
 * that is not the stack's) is at @offset. */
bool perl_build__reads_first(const struct elf_file *file, const char *function, uint16_t offset);

/* Finds the loop that runs Perl's operations; each call of Perl by C has one. An eval runs the
 * remaining operations in a second loop within the first (docatch, pp_ctl.c). The function that
 * starts the second loop is reported as part of the loop, so that both are one. Returns the number
 * of ranges; 0: not found. */
#define PERL_LOOPS_MAX 8
size_t perl_build__loops(const struct elf_file *file, struct runtime_range ret[PERL_LOOPS_MAX]);

#endif
