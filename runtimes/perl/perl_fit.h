/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PERL_FIT_H
#define BRAID_PERL_FIT_H

#include "core/elf/elf_file.h"
#include "runtimes/perl/perl_build.h"
#include "runtimes/perl/perl_versions.h"

/* Checks whether a build of Perl has the layout of another version's row. */

/* Compares the row with the names of operations and the code of exported functions. Returns NULL if
 * the file fits, else the part that differs. perl_build__place() made @place from the same row. */
const char *perl_fit__file(const struct elf_file *file, const struct perl_version *version,
			   const struct perl_place *place);

/* Compares the row with a process: the package in the interpreter's field must be "main".
 * @interpreter is the address of the pointer to the interpreter, or of the variable PL_defstash if
 * @is_variable. Returns 0; -EAGAIN if there is no such package yet; -ENOTSUP if it has another
 * name. */
int perl_fit__process(uint32_t pid, uint64_t interpreter, bool is_variable, uint64_t defstash,
		      const struct perl_offsets *offsets);

#endif
