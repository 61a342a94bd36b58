/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PAGER_H
#define BRAID_PAGER_H

#include <stdbool.h>

/* Long texts on a terminal, as git shows them: by BRAID_PAGER, PAGER or less, which ends by itself
 * if all fits on the screen. "" and "cat" are no pager. */

/* Is standard output a terminal that understands colours, and does the user want them
 * (https://no-color.org)? Ask before there is a pager. */
bool pager__wants_colour(void);

/* What is written to standard output from now on goes to the pager, if there is to be one. */
void pager__start(void);

/* Waits for its end. */
void pager__finish(void);

#endif
