/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NAMELESS_H
#define BRAID_NAMELESS_H

#include "core/profile/profile.h"
#include "core/profile/recorded.h"

/* Finds the share of native frames without a symbol, over all samples. Sets the profile's note if
 * the share is at least 5 %. @recorded is the recording of the samples; NULL: unknown. Returns 0 or
 * -ENOMEM. */
int nameless__find(struct profile *profile, const struct recorded *recorded);

/* Returns a sentence on how to get symbols of a file. @queried is set if debug servers were queried
 * already. */
const char *nameless__advice(bool queried, bool has_build_id);

#endif
