/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ESCAPE_H
#define BRAID_ESCAPE_H

#include <stdarg.h>
#include <stdio.h>

/* Names come from targets: any bytes. Nothing of them may be taken for markup, code or a terminal
 * sequence. */

/* Not shown as they are: control and format characters, all that are invisible by themselves or
 * reorder text, noncharacters, and bytes that are not UTF-8. The table is in escape.c. */

/* Text content or a quoted attribute value, for HTML and for XML. What is not shown becomes
 * U+FFFD, white space a blank. */
void escape__markup(FILE *out, const char *text);

/* A JSON string with its quotes, that may stand in a script element of HTML or of SVG: without
 * '<', '>' and '&'. What is not shown becomes U+FFFD, white space a blank. */
void escape__json(FILE *out, const char *text);

/* In place, for terminals and line formats: what is not shown becomes '?'. Never gets longer. */
void escape__printable(char *text);

/* printf for one line: all of it, whatever the arguments were, is made printable. */
void escape__line(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same as a text, without the newline; owned by the caller. NULL: out of memory. */
char *escape__format(const char *fmt, va_list args) __attribute__((format(printf, 1, 0)));

#endif
