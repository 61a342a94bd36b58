/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MACHINE_CODE_H
#define BRAID_MACHINE_CODE_H

#include <stddef.h>

#include "core/out/output.h"

/* The machine code of native functions with addresses in a profile. A file is used only if it is
 * readable now and has the recorded build id. If there is no code, the reason is shown.
 * core/cli/shown_file.h defines the files that may be read. Functions with the largest own weight
 * come first, up to a limit. */
struct machine_code_texts {
	struct output_code *rows;
	size_t n, cap;
	size_t bytes;
};

/* Adds the functions that are not there yet; the profile must outlive them. @function selects
 * functions by name (with or without parameters), without a limit; NULL: all. Returns 0 or -ENOMEM.
 * The caller must call machine_code_texts__done() also on failure. */
int machine_code_texts__read(struct machine_code_texts *texts, const struct profile *profile,
			     const char *function);
void machine_code_texts__done(struct machine_code_texts *texts);

#endif
