// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/push/where.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/where_tree.h"

static const char *const signs[WHERE_OPERATORS_N] = {
	[WHERE_EQUAL] = "=",	   [WHERE_NOT_EQUAL] = "!=", [WHERE_LESS] = "<",
	[WHERE_LESS_EQUAL] = "<=", [WHERE_GREATER] = ">",    [WHERE_GREATER_EQUAL] = ">=",
};

/* Writes a quoted text. Only plain characters stay unescaped. All versions support \xHH. */
void where__quote(FILE *out, const char *text)
{
	fputc('\'', out);
	for (; *text; text++) {
		unsigned char c = *text;

		if (c < ' ' || c > '~' || strchr("'\\`\"", c))
			fprintf(out, "\\x%02x", c);
		else
			fputc(c, out);
	}
	fputc('\'', out);
}

static bool has_time(const struct where_node *node)
{
	return node && (node->type == WHERE_TIME || has_time(node->left) || has_time(node->right));
}

static bool has_contexts(const struct where_node *node)
{
	return node && (node->field >= WHERE_FIELD_TRACE || has_contexts(node->left) ||
			has_contexts(node->right));
}

static void put_term(FILE *out, const struct where_node *node)
{
	switch (node->type) {
	case WHERE_TIME:
		fprintf(out, "time %s toDateTime(%" PRId64 ")", signs[node->operator],
			max_of(node->number, 0));
		return;
	case WHERE_NUMBER:
		fprintf(out, "%s %s %" PRId64, node->column, signs[node->operator], node->number);
		return;
	default:
		break;
	}
	if (node->operator== WHERE_MATCHES || node->operator== WHERE_MATCHES_NOT)
		fprintf(out, "%smatch(%s, ", node->operator== WHERE_MATCHES ? "" : "NOT ",
			node->column);
	else
		fprintf(out, "%s %s ", node->column, signs[node->operator]);
	where__quote(out, node->text);
	if (node->operator== WHERE_MATCHES || node->operator== WHERE_MATCHES_NOT)
		fputc(')', out);
}

/* writes a condition for a part of the tree */
typedef void (*put_fn)(FILE *out, const struct where_node *node);

static void put_inner(FILE *out, const struct where_node *node, put_fn put)
{
	fputs(node->type == WHERE_NOT ? "(NOT " : "(", out);
	put(out, node->left);
	if (node->type != WHERE_NOT) {
		fputs(node->type == WHERE_AND ? " AND " : " OR ", out);
		put(out, node->right);
	}
	fputc(')', out);
}

static void put_plain(FILE *out, const struct where_node *node)
{
	if (node->type >= WHERE_TEXT)
		put_term(out, node);
	else
		put_inner(out, node, put_plain);
}

/* Writes the condition on samples. A part without a time is a single condition on braid_series. */
static void put_samples(FILE *out, const struct where_node *node)
{
	if (!has_time(node)) {
		fputs("series GLOBAL IN (SELECT series FROM braid_series WHERE ", out);
		put_plain(out, node);
		fputc(')', out);
	} else if (node->type == WHERE_TIME) {
		put_term(out, node);
	} else {
		put_inner(out, node, put_samples);
	}
}

/* Writes a necessary condition on series with matching samples at some time. A part that combines
 * times and other terms in another way than by `and` adds no condition. */
static void put_series(FILE *out, const struct where_node *node)
{
	if (!has_time(node))
		put_plain(out, node);
	else if (node->type == WHERE_AND)
		put_inner(out, node, put_series);
	else
		fputc('1', out);
}

/* Returns true if the expression is equal to the condition of put_series(), combined with
 * conditions on times only. */
static bool is_separate(const struct where_node *node)
{
	if (node->type == WHERE_AND)
		return is_separate(node->left) && is_separate(node->right);
	return node->type == WHERE_TIME || !has_time(node);
}

static void put_times(FILE *out, const struct where_node *node)
{
	if (node->type == WHERE_AND)
		put_inner(out, node, put_times);
	else if (node->type == WHERE_TIME)
		put_term(out, node);
	else
		fputc('1', out);
}

static void find_times(struct where *where, const struct where_node *node)
{
	if (node->type == WHERE_AND) {
		find_times(where, node->left);
		find_times(where, node->right);
	}
	if (node->type != WHERE_TIME)
		return;
	if (node->operator== WHERE_GREATER || node->operator== WHERE_GREATER_EQUAL || node->
	    operator== WHERE_EQUAL)
		where->from_s = max_of(where->from_s, node->number);
	if (node->operator== WHERE_LESS || node->operator== WHERE_LESS_EQUAL || node->operator==
	    WHERE_EQUAL)
		where->to_s = min_of(where->to_s, node->number);
}

static char *write_condition(const struct where_node *node, put_fn put)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out && node)
		put(out, node);
	else if (out)
		fputc('1', out);
	if (out && fclose(out)) {
		free(text);
		return NULL;
	}
	return out ? text : NULL;
}

int where__parse(const char *text, int64_t now_s, struct where *ret, struct err *err)
{
	struct where_node *tree = NULL;
	int code = where_tree__parse(text, now_s, &tree, err);

	*ret = (struct where) { .to_s = INT64_MAX };
	if (!code && has_contexts(tree))
		code = err__set(err, -EINVAL,
				"--where: a database has no trace, span and label.KEY: they are in "
				"recordings");
	if (!code) {
		ret->samples =
			write_condition(tree, tree && is_separate(tree) ? put_times : put_samples);
		ret->series = write_condition(tree, put_series);
		if (tree)
			find_times(ret, tree);
		if (!ret->samples || !ret->series)
			code = err__set(err, -ENOMEM, "out of memory");
	}
	where_tree__free(tree);
	return code;
}

void where__done(struct where *where)
{
	free(where->samples);
	free(where->series);
	*where = (struct where) {};
}
