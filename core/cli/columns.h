/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_COLUMNS_H
#define BRAID_COLUMNS_H

#include <stddef.h>

/* Copies as much of the text as has room in so many columns of a terminal and in the buffer. A
 * text that is cut ends in "~". What the terminal cannot show by the locale of LC_CTYPE, and what
 * has no width there, becomes '?'. Returns how many columns it takes. */
int columns__cut(const char *text, int columns, char *buf, size_t size);

#endif
