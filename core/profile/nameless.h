/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NAMELESS_H
#define BRAID_NAMELESS_H

#include "core/profile/profile.h"

/* Finds how many of the native frames of all samples have no symbol, and sets the profile's note
 * about it, if they are worth one. `asked`: debug servers have been asked already. 0 or -ENOMEM. */
int nameless__find(struct profile *profile, bool asked);

/* A sentence on how to get symbols; @asked as above. */
const char *nameless__advice(bool asked);

#endif
