/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RESULT_H
#define BRAID_RESULT_H

#include <stdio.h>

#include "bench/figures.h"

/* What `braid bench` has found out: tables, each with a title, and notes; to be written as text or
 * as JSON. Adding to it cannot fail: running out of memory is reported by result__write. */
struct result;

struct result *result__new(void); /* NULL: out of memory */
void result__free(struct result *result);

/* A new table. `name` is for programs ("traps"), `title` for people. `columns`: NULL-terminated,
 * "name" or "name|unit" ("hit|ns"), which live as long as the result. */
void result__table(struct result *result, const char *name, const char *title,
		   const char *const *columns);

/* Cells of the current table, row by row from the left; what is missing at a row's end is empty. */
void result__row(struct result *result);
void result__text(struct result *result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void result__number(struct result *result, double number, int decimals);
void result__figure(struct result *result, const struct figure *figure, int decimals);
/* Of a ratio to what it is compared with: itself, or in percent what it is more than 1. Where it
 * does not differ (figure__differs): a text that says so, with the interval. Of one or two values
 * nothing can be said. */
void result__ratio(struct result *result, const struct figure *ratio, bool percent);
void result__empty(struct result *result);

/* A sentence below the current table (before the first one: above all). */
void result__note(struct result *result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* 0, -ENOMEM or the negative errno of a failed write. */
int result__write(const struct result *result, bool json, FILE *out);

#endif
