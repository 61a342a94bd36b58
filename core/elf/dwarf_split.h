/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DWARF_SPLIT_H
#define BRAID_DWARF_SPLIT_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "core/elf/dwarf.h"

/* The other halves of skeleton units: from .dwo files and .dwp packages (DWARF 5, 7.3.2; for DWARF
 * 4 GNU DebugFission). */

struct dwarf_split {
	const struct dwarf_files *files; /* borrowed; NULL: no other halves are searched */
	struct elf_file *package;	 /* NULL: none */
	bool package_queried;
};

/* Joins the skeleton unit @skeleton of @image with its other half. Finds the other half by its name
 * or in the package, and by the 64-bit number that both have. *@ret is the entry of the other half,
 * and *@ret_has_lines is set if it has file names of its own. Charges *@ret_bytes bytes of memory
 * to the account of @image; the caller releases them after dwarf_end(). Returns 0, -ENOENT, -EFBIG,
 * -EINTR or -ENOMEM. */
int dwarf_split__join(struct dwarf_split *split, const struct elf_file *image, Dwarf_Die *skeleton,
		      Dwarf_Die *ret, bool *ret_has_lines, uint64_t *ret_bytes);

/* Returns the name of the .dwo file of @skeleton, borrowed from libdw, or NULL. It may have
 * changed after dwarf_split__join(). */
const char *dwarf_split__name(Dwarf_Die *skeleton);

/* Frees the package. Idempotent. */
void dwarf_split__done(struct dwarf_split *split);

#endif
