/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_VIEW_TEXTS_H
#define BRAID_VIEW_TEXTS_H

#include "core/cli/code_text.h"
#include "core/cli/source_text.h"

/* What is read here and now of the files that a profile names. */
struct view_texts {
	struct source_texts sources;
	struct code_texts codes;
};

/* Reads the sources of @profile and, if @code, the machine code of its and of opts->others'
 * functions. If @function is not NULL, reads only the machine code of that function. Gives them to
 * @opts. Prints the error. Returns an exit status; call view_texts__done in any case. */
int view_texts__read(struct view_texts *texts, const struct profile *profile, const char *function,
		     bool code, struct output_opts *opts);
void view_texts__done(struct view_texts *texts);

#endif
