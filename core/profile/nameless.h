/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NAMELESS_H
#define BRAID_NAMELESS_H

#include "core/profile/profile.h"
#include "core/profile/recorded.h"

/* Finds how many of the native frames of all samples have no symbol, and sets the profile's note
 * about it, if they are worth one. @recorded is the recording that the samples are from; NULL: not
 * known. 0 or -ENOMEM. */
int nameless__find(struct profile *profile, const struct recorded *recorded);

/* Returns a sentence on how to get symbols of a file. @asked: debug servers were asked already. */
const char *nameless__advice(bool asked, bool has_build_id);

#endif
