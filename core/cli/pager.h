/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PAGER_H
#define BRAID_PAGER_H

#include <stdbool.h>

/* Shows long texts on a terminal as git does: by BRAID_PAGER, PAGER or less, which quits if the
 * text fits the screen. "" and "cat" mean no pager. */

/* Returns true if standard output is a terminal with colours, and the user has not disabled them
 * (https://no-color.org). Must be called before the pager starts. */
bool pager__wants_colour(void);

/* Redirects standard output to the pager, if there is one. */
void pager__start(void);

/* Waits for the end of the pager. */
void pager__finish(void);

#endif
