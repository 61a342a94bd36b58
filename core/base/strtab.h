/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_STRTAB_H
#define BRAID_STRTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Interned strings: one id per distinct text, ids dense from 0. Id 0 is always "". */
struct strtab;

struct strtab *strtab__new(void);	  /* NULL: out of memory */
void strtab__free(struct strtab *strtab); /* NULL is fine */

/* Copies `text` in at first sight. Returns its id through `ret_id`; 0 or -ENOMEM. */
int strtab__intern(struct strtab *strtab, const char *text, uint32_t *ret_id);

/* Has it been interned? */
bool strtab__has(const struct strtab *strtab, const char *text);

/* Borrowed until strtab__free. An id that was never given out yields "". */
const char *strtab__get(const struct strtab *strtab, uint32_t id);

uint32_t strtab__count(const struct strtab *strtab);

#endif
