/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_WHERE_TREE_H
#define BRAID_WHERE_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"

/* The expression of --where as a tree, shared by where_parse.c and where.c. */

enum where_type { WHERE_AND, WHERE_OR, WHERE_NOT, WHERE_TEXT, WHERE_NUMBER, WHERE_TIME };

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

struct where_node {
	enum where_type type;
	struct where_node *left, *right; /* operands of and, or; left: operand of not */
	const char *column;		 /* column of braid_series, or "time" */
	enum where_operator operator;
	char *text;
	int64_t number; /* or seconds since 1970 */
};

/* As where__parse(). The caller owns the tree; NULL if @text is NULL. */
int where_tree__parse(const char *text, int64_t now_s, struct where_node **ret, struct err *err);
void where_tree__free(struct where_node *node); /* NULL is fine */

#endif
