/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_TEXT_H
#define BRAID_CODE_TEXT_H

#include <stddef.h>

#include "core/profile/output.h"

/* The machine code of the native functions that a profile has addresses of, as far as their files
 * can be read here and now, and are those that were recorded: a file is taken only if it has the
 * recorded build id. Where there is no code, it is said why. What may be read: as
 * core/cli/shown_file.h; the functions with the greatest own weight first, up to a limit. */
struct code_texts {
	struct output_code *rows;
	size_t n, cap;
	size_t bytes;
};

/* Adds those that are not there yet; the profile outlives them. `function`: only those of that name
 * (with or without parameters), without a limit; NULL: all. 0 or -ENOMEM; call code_texts__done in
 * any case. */
int code_texts__read(struct code_texts *texts, const struct profile *profile, const char *function);
void code_texts__done(struct code_texts *texts);

#endif
