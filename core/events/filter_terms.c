// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/filter.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

static const char *skip_blanks(const char *at)
{
	return at + strspn(at, " \t");
}

static bool begins_name(char c)
{
	return isalpha((unsigned char)c) || c == '_';
}

static size_t name_length(const char *at)
{
	size_t len = 0;

	while (begins_name(at[len]) || (len && isdigit((unsigned char)at[len])))
		len++;
	return len;
}

/* Reads argument->field.field. */
static int read_names(const char **at, struct filter_term *term, struct err *err)
{
	const char *next = *at;

	for (;;) {
		size_t len = name_length(next);

		if (!len || len >= FILTER_NAME_MAX)
			return err__set(err, -EINVAL,
					"an argument of the tracepoint is missing at '%s'. A "
					"filter compares arguments, such as prev->prio < 100",
					next);
		if (term->n_names == FILTER_NAMES_MAX)
			return err__set(
				err, -EINVAL,
				"an argument's path may have at most %d fields: remove '%s'",
				FILTER_NAMES_MAX - 1, next);
		memcpy(term->names[term->n_names], next, len);
		term->names[term->n_names++][len] = '\0';
		next = skip_blanks(next + len);
		if (next[0] == '-' && next[1] == '>')
			next = skip_blanks(next + 2);
		else if (next[0] == '.')
			next = skip_blanks(next + 1);
		else
			break;
	}
	*at = next;
	return 0;
}

static int read_operator(const char **at, struct filter_term *term, struct err *err)
{
	static const struct {
		const char *text; /* no earlier text is a prefix of a later one */
		enum filter_op op;
	} operators[] = { { "==", FILTER_EQUAL },   { "!=", FILTER_UNEQUAL },
			  { "<=", FILTER_AT_MOST }, { ">=", FILTER_AT_LEAST },
			  { "<", FILTER_LESS },	    { ">", FILTER_GREATER },
			  { "&", FILTER_ANY_BIT } };

	for (size_t i = 0; i < ARRAY_SIZE(operators); i++) {
		size_t len = strlen(operators[i].text);

		if (strncmp(*at, operators[i].text, len) != 0 || !strncmp(*at, "&&", 2))
			continue;
		term->op = operators[i].op;
		*at = skip_blanks(*at + len);
		return 0;
	}
	return err__set(err, -EINVAL,
			"a filter compares with ==, !=, <, <=, >, >= or & (any of these bits), not "
			"with '%s'",
			*at);
}

static int read_text(const char **at, struct filter_term *term, struct err *err)
{
	char quote = **at == '"' || **at == '\'' ? *(*at)++ : '\0';
	size_t len = quote ? strcspn(*at, quote == '"' ? "\"" : "'") : strcspn(*at, " \t&|");

	if (quote && !(*at)[len])
		return err__set(err, -EINVAL,
				"the closing quote of a text in the filter is missing: %c%s", quote,
				*at);
	if (len >= sizeof(term->text))
		return err__set(err, -EINVAL,
				"a text in a filter may have at most %zu characters: %s",
				sizeof(term->text) - 1, *at);
	if (term->op != FILTER_EQUAL && term->op != FILTER_UNEQUAL)
		return err__set(err, -EINVAL, "texts can only be compared with == and !=: %.*s",
				(int)len, *at);
	term->is_text = true;
	memcpy(term->text, *at, len);
	*at += len + !!quote;
	return 0;
}

static int read_value(const char **at, struct filter_term *term, struct err *err)
{
	bool negative = **at == '-';
	char *end;

	if (**at == '"' || **at == '\'' || begins_name(**at))
		return read_text(at, term, err);
	errno = 0;
	if (!isdigit((unsigned char)(*at)[negative]))
		return err__set(err, -EINVAL,
				"a filter compares with a number or a text, not with '%s'", *at);
	term->value = strtoull(*at + negative, &end, 0);
	if (errno || isalnum((unsigned char)*end) || (negative && term->value > 1ULL << 63))
		return err__set(err, -EINVAL, "this number is malformed or larger than 64 bits: %s",
				*at);
	if (negative)
		term->value = -term->value;
	*at = end;
	return 0;
}

int filter_terms__parse_path(const char *text, struct filter_term *ret, struct err *err)
{
	const char *at = text;
	int code;

	*ret = (struct filter_term) {};
	code = read_names(&at, ret, err);
	return code || !*at ? code : err__set(err, -EINVAL, "'%s' is no path of fields", text);
}

int filter_terms__parse(const char *text, struct filter_terms *ret, struct err *err)
{
	const char *at = skip_blanks(text);
	bool begins = false;
	int code;

	*ret = (struct filter_terms) {};
	for (;;) {
		struct filter_term *term = &ret->list[ret->n];

		if (ret->n == FILTER_TESTS_MAX)
			return err__set(err, -EINVAL, "a filter may have at most %d comparisons",
					FILTER_TESTS_MAX);
		term->begins = begins;
		code = read_names(&at, term, err);
		if (!code)
			code = read_operator(&at, term, err);
		if (!code)
			code = read_value(&at, term, err);
		if (code)
			return code;
		ret->n++;
		at = skip_blanks(at);
		if (!*at)
			return 0;
		begins = !strncmp(at, "||", 2);
		if (!begins && strncmp(at, "&&", 2) != 0)
			return err__set(
				err, -EINVAL,
				"comparisons of a filter are joined with && or ||, not with '%s'",
				at);
		at = skip_blanks(at + 2);
	}
}
