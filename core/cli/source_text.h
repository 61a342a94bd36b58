/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SOURCE_TEXT_H
#define BRAID_SOURCE_TEXT_H

#include <stddef.h>

#include "core/out/output.h"

/* The text of the files with lines in a profile's frames, as far as they are readable now: the
 * lines with samples and some around them. Files with the largest own weight come first, up to a
 * limit.
 *
 * The recording, which may be anyone's, names the files, and the page may be given to others. So
 * only text in regular files is read, with a suffix and in no hidden directory. If braid is root,
 * the file must be readable for everyone. */
struct source_texts {
	struct output_source *rows;
	size_t n, cap;
};

/* Reads the files of @profile and of the @n_others other events of the same recording. Leaves out
 * unreadable files. Returns 0 or -ENOMEM. The caller must call source_texts__done() also on
 * failure. */
int source_texts__read(struct source_texts *texts, const struct profile *profile,
		       struct profile *const *others, size_t n_others);
void source_texts__done(struct source_texts *texts);

#endif
