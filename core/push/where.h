/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_WHERE_H
#define BRAID_WHERE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/err.h"

/* The expression of --where (core/profile/where_tree.h), converted to ClickHouse's SQL. ~ is a
 * regular expression of RE2. A database has no request contexts. */

struct where {
	char *series;  /* condition on a row of braid_series, without conditions on the time */
	char *samples; /* condition on a row of braid_samples whose series matches */
	int64_t from_s, to_s; /* limits of the selected times; 0 and INT64_MAX: none */
};

/* Parses @text; NULL: no condition. @now_s: seconds since 1970. Returns 0, -EINVAL with a message
 * that shows the error's place, or -ENOMEM. The caller must call where__done() also on failure. */
int where__parse(const char *text, int64_t now_s, struct where *ret, struct err *err);
void where__done(struct where *where);

/* Writes @text as a string of ClickHouse's SQL. */
void where__quote(FILE *out, const char *text);

#endif
