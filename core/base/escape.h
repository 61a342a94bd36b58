/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ESCAPE_H
#define BRAID_ESCAPE_H

#include <stdarg.h>
#include <stdio.h>

/* Names come from targets and may contain any bytes. No part of a name may act as markup, code or a
 * terminal sequence. */

/* Hidden characters are control and format characters, all that are invisible or reorder text,
 * noncharacters, and bytes that are not UTF-8. The table is in escape.c. */

/* Writes @text as text content or a quoted attribute value of HTML or XML. Hidden characters become
 * U+FFFD, white space becomes a blank. */
void escape__markup(FILE *out, const char *text);

/* Writes @text as a JSON string with its quotes. Escapes '<', '>' and '&', so that the string may
 * stand in a script element of HTML or SVG. Hidden characters become U+FFFD, white space becomes a
 * blank. */
void escape__json(FILE *out, const char *text);

/* Replaces hidden characters in @text by '?', for terminals and line formats. The text never
 * grows. */
void escape__printable(char *text);

/* Prints one line as printf() does, and makes the whole line printable, whatever the arguments
 * are. */
void escape__line(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Returns the text of escape__line() without the newline; the caller owns it. NULL: out of
 * memory. */
char *escape__format(const char *fmt, va_list args) __attribute__((format(printf, 1, 0)));

#endif
