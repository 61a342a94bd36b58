/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_WHERE_H
#define BRAID_WHERE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/err.h"

/* What --where says, as an expression of ClickHouse:
 *
 *	EXPRESSION: TERM, or EXPRESSION and|or EXPRESSION, not EXPRESSION, (EXPRESSION)
 *	TERM: service|host|container|process|thread|event =|!=|~|!~ TEXT
 *	      pid|tid =|!= NUMBER
 *	      time =|!=|<|<=|>|>= TIME
 *	TEXT: 'any', "any" or a word without blanks, quotes, parentheses and operators
 *	TIME: YYYY-MM-DD[THH:MM[:SS]] in UTC, quoted if it has a blank instead of the T; seconds
 *	      since 1970; now, or now-N and s, m, h or d
 *
 * `and` binds more than `or`. ~ is a regular expression (RE2) that some of the text fits. */

struct where {
	char *series; /* a condition on a row of braid_series: what is said with any time allowed */
	char *samples;	      /* on a row of braid_samples whose series fits: the rest */
	int64_t from_s, to_s; /* all times that it allows lie in there; 0 and INT64_MAX: any */
};

/* `text` NULL: all. `now_s`: since 1970. -EINVAL: the sentence says where it is wrong; -ENOMEM.
 * Call where__done in any case. */
int where__parse(const char *text, int64_t now_s, struct where *ret, struct err *err);
void where__done(struct where *where);

/* `text` as a string of ClickHouse's SQL, into a stream. */
void where__quote(FILE *out, const char *text);

#endif
