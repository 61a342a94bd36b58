// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/util.h"
#include "core/profile/recorded.h"
#include "core/profile/where_tree.h"

#define DEPTH_MAX 100 /* maximum nesting of parentheses and `not` */
#define TERMS_MAX 1000

struct parser {
	const char *text, *at;
	int64_t now_s;
	struct err *err;
	int ret; /* the first error */
	unsigned depth, terms;
};

static const struct field {
	const char *name;
	enum where_type type;
	enum where_field field;
} fields[] = {
	{ "service", WHERE_TEXT, WHERE_FIELD_SERVICE },
	{ "host", WHERE_TEXT, WHERE_FIELD_HOST },
	{ "container", WHERE_TEXT, WHERE_FIELD_CONTAINER },
	{ "process", WHERE_TEXT, WHERE_FIELD_PROCESS },
	{ "thread", WHERE_TEXT, WHERE_FIELD_THREAD },
	{ "event", WHERE_TEXT, WHERE_FIELD_EVENT },
	{ "pid", WHERE_NUMBER, WHERE_FIELD_PID },
	{ "tid", WHERE_NUMBER, WHERE_FIELD_TID },
	{ "time", WHERE_TIME, WHERE_FIELD_TIME },
	{ "trace", WHERE_TEXT, WHERE_FIELD_TRACE },
	{ "span", WHERE_TEXT, WHERE_FIELD_SPAN },
};
#define FIELDS                                                                            \
	"service, host, container, process, thread, event, pid, tid, time, trace, span, " \
	"label.KEY or value.NAME"

#define LABEL_PREFIX "label."
static const struct field label_field = { "label", WHERE_TEXT, WHERE_FIELD_LABEL };
static const struct field value_field = { "value", WHERE_VALUE, WHERE_FIELD_LABEL };

/* longer signs precede their prefixes */
static const struct {
	const char *text;
	enum where_operator operator;
} operators[] = {
	{ "!=", WHERE_NOT_EQUAL },     { "!~", WHERE_MATCHES_NOT }, { "<=", WHERE_LESS_EQUAL },
	{ ">=", WHERE_GREATER_EQUAL }, { "==", WHERE_EQUAL },	    { "=", WHERE_EQUAL },
	{ "~", WHERE_MATCHES },	       { "<", WHERE_LESS },	    { ">", WHERE_GREATER },
};

static void fail(struct parser *parser, const char *what)
{
	if (!parser->ret)
		parser->ret = err__set(parser->err, -EINVAL, "--where: %s at '%.40s'", what,
				       *parser->at ? parser->at : "the end");
}

static void skip_blanks(struct parser *parser)
{
	parser->at += strspn(parser->at, " \t\n");
}

#define NO_WORD " \t\n()=!~<>'\""

static bool take_word(struct parser *parser, const char *word)
{
	size_t len = strlen(word);

	skip_blanks(parser);
	if (strncasecmp(parser->at, word, len) != 0 ||
	    (parser->at[len] && !strchr(NO_WORD, parser->at[len])))
		return false;
	parser->at += len;
	return true;
}

static bool take_sign(struct parser *parser, char sign)
{
	skip_blanks(parser);
	if (*parser->at != sign)
		return false;
	parser->at++;
	return true;
}

/* Returns a text, owned by the caller. A quote within quotes is written twice. */
static char *take_text(struct parser *parser)
{
	char quote, *text, *to;
	size_t len;

	skip_blanks(parser);
	quote = *parser->at;
	if (quote != '\'' && quote != '"') {
		len = strcspn(parser->at, NO_WORD);
		if (!len)
			fail(parser, "a text is missing");
		text = strndup(parser->at, len);
		parser->at += len;
		return text;
	}
	to = text = malloc(strlen(parser->at));
	for (parser->at++; text && *parser->at; parser->at++) {
		if (*parser->at == quote && *++parser->at != quote) {
			*to = '\0';
			return text;
		}
		*to++ = *parser->at;
	}
	if (text)
		fail(parser, "a quote is missing");
	free(text);
	return NULL;
}

/* Parses "now", "now-90s", "now-1h". */
static bool parse_now(const char *text, int64_t now_s, int64_t *ret)
{
	static const char units[] = "smhd";
	static const int64_t seconds[] = { 1, 60, 3600, 86400 };
	const char *unit;
	char *end;
	long n;

	if (strncasecmp(text, "now", 3) != 0)
		return false;
	*ret = now_s;
	if (!text[3])
		return true;
	if (text[3] != '-' || text[4] < '0' || text[4] > '9')
		return false;
	n = strtol(text + 4, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (!unit || end[1] || n > 1000000000)
		return false;
	*ret = now_s - n * seconds[unit - units];
	return true;
}

static bool parse_time(const char *text, int64_t now_s, int64_t *ret)
{
	static const char *const forms[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S",
					     "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d" };
	char *end;

	if (parse_now(text, now_s, ret))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct tm tm = {};
		const char *rest = strptime(text, forms[i], &tm);

		if (!rest || (*rest && strcmp(rest, "Z") != 0))
			continue;
		*ret = timegm(&tm);
		return *ret >= 0;
	}
	*ret = strtoll(text, &end, 10);
	return end != text && !*end && *ret >= 0 && *ret <= UINT32_MAX;
}

/* Takes the key of a label. */
static char *take_key(struct parser *parser)
{
	size_t len = strcspn(parser->at, NO_WORD);
	char *key = strndup(parser->at, len);

	if (!len)
		fail(parser, "the key of a label is missing");
	parser->at += len;
	return key;
}

/* *@ret_key is the key of a label, owned by the caller; NULL: another field. */
static const struct field *take_field(struct parser *parser, char **ret_key)
{
	*ret_key = NULL;
	skip_blanks(parser);
	if (!strncasecmp(parser->at, LABEL_PREFIX, strlen(LABEL_PREFIX))) {
		parser->at += strlen(LABEL_PREFIX);
		*ret_key = take_key(parser);
		return *ret_key && !parser->ret ? &label_field : NULL;
	}
	if (!strncmp(parser->at, VALUE_LABEL, strlen(VALUE_LABEL))) {
		*ret_key = take_key(parser);
		if (*ret_key && !(*ret_key)[strlen(VALUE_LABEL)])
			fail(parser, "the name of a value is missing");
		return *ret_key && !parser->ret ? &value_field : NULL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (take_word(parser, fields[i].name))
			return &fields[i];
	fail(parser, FIELDS " is missing");
	return NULL;
}

static enum where_operator take_operator(struct parser *parser, enum where_type type)
{
	skip_blanks(parser);
	for (size_t i = 0; i < ARRAY_SIZE(operators); i++) {
		enum where_operator operator= operators[i].operator;

		if (strncmp(parser->at, operators[i].text, strlen(operators[i].text)) != 0)
			continue;
		if ((operator>= WHERE_LESS && type != WHERE_TIME && type != WHERE_VALUE) ||
		    ((operator== WHERE_MATCHES || operator== WHERE_MATCHES_NOT) &&
		     type != WHERE_TEXT && type != WHERE_VALUE))
			break;
		parser->at += strlen(operators[i].text);
		return operator;
	}
	fail(parser, type == WHERE_TEXT	    ? "=, !=, ~ or !~ is missing"
		     : type == WHERE_NUMBER ? "= or != is missing"
		     : type == WHERE_VALUE  ? "=, !=, ~, !~, <, <=, > or >= is missing"
					    : "=, !=, <, <=, > or >= is missing");
	return WHERE_EQUAL;
}

static void parse_value(struct parser *parser, struct where_node *node)
{
	const char *at = parser->at;
	char *end;

	node->text = parser->ret ? NULL : take_text(parser);
	if (parser->ret)
		return;
	if (!node->text) {
		parser->ret = err__set(parser->err, -ENOMEM, "out of memory");
		return;
	}
	if (node->type == WHERE_NUMBER) {
		node->number = strtoll(node->text, &end, 10);
		if (*end || end == node->text || node->number < 0 || node->number > UINT32_MAX) {
			parser->at = at;
			fail(parser, "a number is missing");
		}
	}
	if (node->type == WHERE_VALUE && node->operator>= WHERE_LESS) {
		errno = 0;
		node->number = strtoll(node->text, &end, 0);
		if (*end || end == node->text || errno) {
			parser->at = at;
			fail(parser, "a number is missing");
		}
	} else if (node->type == WHERE_VALUE) {
		node->type = WHERE_TEXT;
	}
	if (node->type == WHERE_TIME && !parse_time(node->text, parser->now_s, &node->number)) {
		parser->at = at;
		fail(parser, "a time (2026-11-24T06:30, now-1h) is missing");
	}
}

static struct where_node *new_node(struct parser *parser, enum where_type type)
{
	struct where_node *node = calloc(1, sizeof(*node));

	if (!node)
		parser->ret = err__set(parser->err, -ENOMEM, "out of memory");
	else
		node->type = type;
	return node;
}

static struct where_node *parse_or(struct parser *parser);

static struct where_node *parse_term(struct parser *parser)
{
	const struct field *field;
	struct where_node *node;
	char *key = NULL;

	if (take_sign(parser, '(')) {
		node = parse_or(parser);
		if (!parser->ret && !take_sign(parser, ')'))
			fail(parser, "a ) is missing");
		return node;
	}
	if (++parser->terms > TERMS_MAX)
		fail(parser, "there are too many comparisons");
	field = parser->ret ? NULL : take_field(parser, &key);
	node = field ? new_node(parser, field->type) : NULL;
	if (!node) {
		free(key);
		return NULL;
	}
	node->key = key;
	node->field = field->field;
	node->column = field->name;
	node->operator= take_operator(parser, field->type);
	parse_value(parser, node);
	return node;
}

static struct where_node *parse_not(struct parser *parser)
{
	struct where_node *node;

	if (++parser->depth > DEPTH_MAX)
		fail(parser, "there are too many nested ( or not");
	if (parser->ret || !take_word(parser, "not")) {
		node = parser->ret ? NULL : parse_term(parser);
	} else {
		node = new_node(parser, WHERE_NOT);
		if (node)
			node->left = parse_not(parser);
	}
	parser->depth--;
	return node;
}

/* Parses a chain of parts, which @parse_part parses, joined by @word. */
static struct where_node *parse_chain(struct parser *parser, enum where_type type, const char *word,
				      struct where_node *(*parse_part)(struct parser *))
{
	struct where_node *node = parse_part(parser), *more;

	while (!parser->ret && take_word(parser, word)) {
		more = new_node(parser, type);
		if (!more)
			break;
		more->left = node;
		more->right = parse_part(parser);
		node = more;
	}
	return node;
}

static struct where_node *parse_and(struct parser *parser)
{
	return parse_chain(parser, WHERE_AND, "and", parse_not);
}

static struct where_node *parse_or(struct parser *parser)
{
	return parse_chain(parser, WHERE_OR, "or", parse_and);
}

int where_tree__parse(const char *text, int64_t now_s, struct where_node **ret, struct err *err)
{
	struct parser parser = { .text = text, .at = text, .now_s = now_s, .err = err };

	*ret = NULL;
	if (!text || !text[strspn(text, " \t\n")])
		return 0;
	*ret = parse_or(&parser);
	skip_blanks(&parser);
	if (!parser.ret && *parser.at)
		fail(&parser, "'and' or 'or' is missing");
	return parser.ret;
}

void where_tree__free(struct where_node *node)
{
	if (!node)
		return;
	where_tree__free(node->left);
	where_tree__free(node->right);
	if (node->regex)
		regfree(node->regex);
	free(node->regex);
	free(node->text);
	free(node->key);
	free(node);
}
