/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PERL_FIT_H
#define BRAID_PERL_FIT_H

#include "core/elf/elf_file.h"
#include "runtimes/perl/perl_build.h"
#include "runtimes/perl/perl_versions.h"

/* Whether a build of Perl has the layout of a row that is not of its version. */

/* Compares the row with the names of operations and the code of exported functions. NULL: it fits
 * as far as the file says; else the part that differs. @place is by the same row. */
const char *perl_fit__file(const struct elf_file *file, const struct perl_version *version,
			   const struct perl_place *place);

/* Compares the row with a process: the package in the interpreter's field must be "main".
 * @interpreter is the address of the pointer to the interpreter, or of the variable PL_defstash if
 * @is_variable. 0; -EAGAIN: there is no such package yet; -ENOTSUP: it has another name. */
int perl_fit__process(uint32_t pid, uint64_t interpreter, bool is_variable, uint64_t defstash,
		      const struct perl_offsets *offsets);

#endif
