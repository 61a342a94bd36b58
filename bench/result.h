/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RESULT_H
#define BRAID_RESULT_H

#include <stdio.h>

#include "bench/figures.h"

/* The result of `braid bench`: tables, each with a title, and notes. It is written as text or as
 * JSON. Adding to it cannot fail: result__write() reports that memory was exhausted. */
struct result;

struct result *result__new(void); /* NULL: out of memory */
void result__free(struct result *result);

/* Begins a table. @name is for programs ("traps"), @title for people. @columns is NULL-terminated,
 * "name" or "name|unit" ("hit|ns"), and must live as long as the result. */
void result__table(struct result *result, const char *name, const char *title,
		   const char *const *columns);

/* Add cells to the current table, row by row from the left. Missing cells at a row's end are empty.
 */
void result__row(struct result *result);
void result__text(struct result *result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void result__number(struct result *result, double number, int decimals);
void result__figure(struct result *result, const struct figure *figure, int decimals);
/* Adds a ratio: itself or, with @percent, its difference from 1 in percent. If it does not differ
 * from 1 (figure__differs()), adds a text that states so, with the interval. One or two values give
 * no result. */
void result__ratio(struct result *result, const struct figure *ratio, bool percent);
void result__empty(struct result *result);

/* Adds a sentence below the current table (before the first table: above all). */
void result__note(struct result *result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Writes the result. Returns 0, -ENOMEM or the negative errno of a failed write. */
int result__write(const struct result *result, bool json, FILE *out);

#endif
