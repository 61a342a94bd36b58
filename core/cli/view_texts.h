/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_VIEW_TEXTS_H
#define BRAID_VIEW_TEXTS_H

#include "core/cli/machine_code.h"
#include "core/cli/source_text.h"

/* The texts of the files that a profile names, as read now. */
struct view_texts {
	struct source_texts sources;
	struct machine_code_texts codes;
};

/* Reads the sources of @profile and, if @code, the machine code of the functions of @profile and
 * opts->others. If @function is not NULL, reads only the machine code of that function. Stores the
 * texts in @opts. Prints the error. Returns an exit status. The caller must call view_texts__done()
 * also on failure. */
int view_texts__read(struct view_texts *texts, const struct profile *profile, const char *function,
		     bool code, struct output_opts *opts);
void view_texts__done(struct view_texts *texts);

#endif
