/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_STRTAB_H
#define BRAID_STRTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Interned strings: one id per distinct text, with dense ids from 0. Id 0 is always "". */
struct strtab;

struct strtab *strtab__new(void);	  /* NULL: out of memory */
void strtab__free(struct strtab *strtab); /* NULL is fine */

/* Copies @text if it is new. Returns 0 or -ENOMEM; *@ret_id is the id of the text. */
int strtab__intern(struct strtab *strtab, const char *text, uint32_t *ret_id);

/* Returns true if @text is interned. */
bool strtab__has(const struct strtab *strtab, const char *text);

/* Returns the text, borrowed until strtab__free(). An id that was never assigned gives "". */
const char *strtab__get(const struct strtab *strtab, uint32_t id);

uint32_t strtab__count(const struct strtab *strtab);

#endif
