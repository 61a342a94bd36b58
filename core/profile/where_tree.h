/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_WHERE_TREE_H
#define BRAID_WHERE_TREE_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"

/* The expression of --where as a tree:
 *
 * 	EXPRESSION: TERM, or EXPRESSION and|or EXPRESSION, not EXPRESSION, (EXPRESSION)
 * 	TERM: service|host|container|process|thread|event|trace|span|label.KEY =|!=|~|!~ TEXT
 * 	      value.NAME =|!=|~|!~ TEXT, value.NAME <|<=|>|>= NUMBER
 * 	      pid|tid =|!= NUMBER
 * 	      time =|!=|<|<=|>|>= TIME
 * 	TEXT: 'any', "any" or a word without blanks, quotes, parentheses and operators
 * 	TIME: YYYY-MM-DD[THH:MM[:SS]] in UTC, quoted if it has a blank instead of the T; seconds
 * 	      since 1970; now, or now-N and s, m, h or d
 *
 * `and` binds tighter than `or`. ~ is a regular expression that matches a part of the text. It is
 * evaluated on a recording by where_match.c, and on a database by core/push/where.c. */

enum where_type {
	WHERE_AND,
	WHERE_OR,
	WHERE_NOT,
	WHERE_TEXT,
	WHERE_NUMBER,
	WHERE_TIME,
	WHERE_VALUE
};

enum where_operator {
	WHERE_EQUAL,
	WHERE_NOT_EQUAL,
	WHERE_MATCHES,
	WHERE_MATCHES_NOT,
	WHERE_LESS,
	WHERE_LESS_EQUAL,
	WHERE_GREATER,
	WHERE_GREATER_EQUAL,
	WHERE_OPERATORS_N
};

enum where_field {
	WHERE_FIELD_NONE, /* and, or, not */
	WHERE_FIELD_SERVICE,
	WHERE_FIELD_HOST,
	WHERE_FIELD_CONTAINER,
	WHERE_FIELD_PROCESS,
	WHERE_FIELD_THREAD,
	WHERE_FIELD_EVENT,
	WHERE_FIELD_PID,
	WHERE_FIELD_TID,
	WHERE_FIELD_TIME,
	WHERE_FIELD_TRACE,
	WHERE_FIELD_SPAN,
	WHERE_FIELD_LABEL,
};

struct where_node {
	enum where_type type;
	struct where_node *left, *right; /* operands of and, or; left: operand of not */
	const char *column;		 /* column of braid_series, or the field's name */
	enum where_field field;
	char *key;	/* key of WHERE_FIELD_LABEL, also of a WHERE_VALUE; else NULL */
	regex_t *regex; /* private to where_match.c; NULL: none */
	enum where_operator operator;
	char *text;
	int64_t number; /* or seconds since 1970 */
};

/* Parses @text; NULL: no condition. @now_s: seconds since 1970. Returns 0, -EINVAL with a message
 * that shows the error's place, or -ENOMEM. The caller owns the tree, also on failure; NULL: none.
 */
int where_tree__parse(const char *text, int64_t now_s, struct where_node **ret, struct err *err);
void where_tree__free(struct where_node *node); /* NULL is fine */

#endif
