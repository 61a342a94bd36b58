/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SOURCE_TEXT_H
#define BRAID_SOURCE_TEXT_H

#include <stddef.h>

#include "core/profile/output.h"

/* The text of the files that a profile's frames have lines of, as far as it can be read here and
 * now: the lines that are named and some around them, the files with the greatest own weight first,
 * up to a limit.
 *
 * What files are named is the recording's choice, which may be anyone's, and the page may be given
 * away. Hence only regular files with a suffix, in no hidden directory, of text, and for root only
 * those that everybody may read. */
struct source_texts {
	struct output_source *rows;
	size_t n, cap;
};

/* Reads the files of @profile and of the @n_others other events of the same recording. Unreadable
 * files are left out. Returns 0 or -ENOMEM; call source_texts__done in any case. */
int source_texts__read(struct source_texts *texts, const struct profile *profile,
		       struct profile *const *others, size_t n_others);
void source_texts__done(struct source_texts *texts);

#endif
