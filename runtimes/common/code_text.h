/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_TEXT_H
#define BRAID_CODE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Texts of struct rec_code: from the target, so anything. */

/* Is this a kind of text, or 0? */
bool code_text__valid(unsigned int kind);

/* As proper UTF-8 without NUL bytes, owned: `len` characters (CODE_TEXT_UTF8: bytes) of a valid
 * kind that is not 0, of which the `room` bytes at `from` hold as many as fit; "..." follows if
 * that is not all. NULL: out of memory. */
char *code_text__dup(const char *from, size_t room, unsigned int kind, size_t len);

#endif
