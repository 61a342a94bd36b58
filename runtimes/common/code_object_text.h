/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_OBJECT_TEXT_H
#define BRAID_CODE_OBJECT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Texts of struct rec_code_object. They come from the target: untrusted. */

/* Returns true if @kind is a kind of text, or 0. */
bool code_object_text__valid(unsigned int kind);

/* Returns a text as valid UTF-8 without NUL bytes, owned by the caller, or NULL if out of memory.
 * The text has `len` characters (CODE_OBJECT_TEXT_UTF8: bytes) of a valid `kind` that is not 0. The
 * `room` bytes at `from` hold as many of them as fit; if some are missing, "..." is appended. */
char *code_object_text__dup(const char *from, size_t room, unsigned int kind, size_t len);

#endif
