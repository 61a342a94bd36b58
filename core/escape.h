/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ESCAPE_H
#define BRAID_ESCAPE_H

#include <stdio.h>

/* Names come from targets: any bytes. Nothing of them may be taken for markup, code or a terminal
 * sequence. */

/* Not shown as they are: control characters, line and paragraph separators, marks that reorder
 * text, U+FFFE, U+FFFF, and bytes that are not UTF-8. */

/* Text content or a quoted attribute value, for HTML and for XML. What is not shown becomes
 * U+FFFD, white space a blank. */
void escape__markup(FILE *out, const char *text);

/* A JSON string with its quotes, that may stand in a script element of HTML or of SVG: without
 * '<', '>' and '&'. What is not shown becomes U+FFFD, white space a blank. */
void escape__json(FILE *out, const char *text);

/* In place, for terminals and line formats: what is not shown becomes '?'. Never gets longer. */
void escape__printable(char *text);

#endif
