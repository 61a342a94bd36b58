/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_COLUMNS_H
#define BRAID_COLUMNS_H

#include <stddef.h>

/* Copies the part of @text that fits into @columns of a terminal and into the buffer. A text that
 * is cut ends in "~". Characters that are invalid or without a width in the locale of LC_CTYPE
 * become '?'. Returns the number of columns used. */
int columns__cut(const char *text, int columns, char *buf, size_t size);

#endif
