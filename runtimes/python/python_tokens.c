// SPDX-License-Identifier: GPL-2.0-or-later
/* After Parser/tokenizer.c of CPython 3.6 to 3.11. There, an f-string is one token, whose fields
 * are parsed later; here as of 3.12 (PEP 701), which every f-string of before obeys, too. */
#include "runtimes/python/python_tokens.h"

#include <string.h>

#define TAB_COLUMNS 8
#define BOM	    "\xef\xbb\xbf"

void python_tokens__init(struct python_tokens *tokens, const char *text, size_t size)
{
	size_t bom = strlen(BOM);

	memset(tokens, 0, offsetof(struct python_tokens, nests));
	tokens->at = text;
	tokens->end = text + size;
	tokens->line = 1;
	if (size >= bom && !memcmp(text, BOM, bom))
		tokens->at += bom;
}

/* Returns the character @ahead characters further on; 0: the end, since no source contains it. */
static char peek(const struct python_tokens *tokens, size_t ahead)
{
	return ahead < (size_t)(tokens->end - tokens->at) ? tokens->at[ahead] : 0;
}

static bool is_newline(char c)
{
	return c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* All that is not ASCII: identifiers are the only place for it outside of strings and comments. */
static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c) ||
	       (c & 0x80);
}

/* At a newline of any of the three kinds. */
static void skip_newline(struct python_tokens *tokens)
{
	tokens->at += peek(tokens, 0) == '\r' && peek(tokens, 1) == '\n' ? 2 : 1;
	tokens->line++;
}

static void skip_comment(struct python_tokens *tokens)
{
	while (tokens->at < tokens->end && !is_newline(*tokens->at))
		tokens->at++;
}

/* To the first token of the next logical line. */
static void skip_indent(struct python_tokens *tokens)
{
	uint32_t column = 0;

	for (;;) {
		char c = peek(tokens, 0);

		if (c == '#') {
			skip_comment(tokens);
			continue;
		}
		if (is_newline(c)) {
			skip_newline(tokens);
			column = 0;
			continue;
		}
		if (c == '\t')
			column = (column / TAB_COLUMNS + 1) * TAB_COLUMNS;
		else if (c == '\f')
			column = 0;
		else if (c == ' ')
			column++;
		else
			break;
		tokens->at++;
	}
	if (tokens->at == tokens->end)
		return;
	tokens->column = column;
	tokens->line_open = tokens->starts_line = true;
}

/* Within a logical line. */
static void skip_blanks(struct python_tokens *tokens)
{
	for (;;) {
		char c = peek(tokens, 0);

		if (c == '#') {
			skip_comment(tokens);
		} else if (c == ' ' || c == '\t' || c == '\f') {
			tokens->at++;
		} else if (c == '\\' && is_newline(peek(tokens, 1))) {
			tokens->at++;
			skip_newline(tokens);
		} else if (tokens->n_nests && is_newline(c)) {
			skip_newline(tokens);
		} else {
			return;
		}
	}
}

/* NULL: in none. */
static struct python_nest *innermost(struct python_tokens *tokens)
{
	return tokens->n_nests ? &tokens->nests[tokens->n_nests - 1] : NULL;
}

static enum python_token push(struct python_tokens *tokens, struct python_nest nest)
{
	if (tokens->n_nests == PYTHON_NESTS_MAX)
		return PYTHON_TOKEN_BROKEN;
	tokens->nests[tokens->n_nests++] = nest;
	return PYTHON_TOKEN_NONE;
}

/* Skips the characters behind a backslash that belong to its escape sequence. */
static void skip_escaped(struct python_tokens *tokens, const struct python_quote *quote)
{
	char c = peek(tokens, 0);

	if (quote->fields && (c == '{' || c == '}'))
		return; /* the backslash stands for itself */
	if (quote->fields && !quote->raw && c == 'N' && peek(tokens, 1) == '{') {
		while (tokens->at < tokens->end && *tokens->at != '}' && !is_newline(*tokens->at))
			tokens->at++;
		tokens->at += peek(tokens, 0) == '}';
	} else if (is_newline(c)) {
		skip_newline(tokens);
	} else if (tokens->at < tokens->end) {
		tokens->at++;
	}
}

/* To the end of the text or its first `{` or `}` that means something, which is returned; 0: the
 * text is broken. */
static char skip_text(struct python_tokens *tokens, const struct python_quote *quote, bool spec)
{
	while (tokens->at < tokens->end) {
		char c = *tokens->at;

		if (is_newline(c)) {
			if (!quote->triple)
				return 0;
			skip_newline(tokens);
		} else if (c == '\\') {
			tokens->at++;
			skip_escaped(tokens, quote);
		} else if (c == quote->mark) {
			if (!quote->triple || (peek(tokens, 1) == c && peek(tokens, 2) == c))
				return c;
			tokens->at++;
		} else if (quote->fields && (c == '{' || c == '}')) {
			if (spec || peek(tokens, 1) != c)
				return c;
			tokens->at += 2;
		} else {
			tokens->at++;
		}
	}
	return 0;
}

/* In a string with fields, or the format of a field. */
static enum python_token read_text(struct python_tokens *tokens)
{
	struct python_nest *nest = innermost(tokens);
	bool spec = nest->kind == PYTHON_NEST_SPEC;
	char c = skip_text(tokens, &nest->quote, spec);

	tokens->text = tokens->at;
	tokens->len = 1;
	tokens->first_line = tokens->line;
	if (c == '{') {
		tokens->at++;
		return push(tokens, (struct python_nest) { .kind = PYTHON_NEST_FIELD,
							   .quote = nest->quote })
			       ? PYTHON_TOKEN_BROKEN
			       : PYTHON_TOKEN_FIELD;
	}
	if (!c || spec != (c == '}'))
		return PYTHON_TOKEN_BROKEN;
	tokens->at += !spec && nest->quote.triple ? 3 : 1;
	tokens->n_nests--;
	return spec ? PYTHON_TOKEN_CLOSE : PYTHON_TOKEN_NONE;
}

/* At the mark; its prefix is the token so far. */
static enum python_token read_string(struct python_tokens *tokens)
{
	struct python_quote quote = { .mark = *tokens->at };
	const char *prefix = tokens->text;

	for (; prefix < tokens->at; prefix++) {
		quote.raw |= (*prefix | 0x20) == 'r';
		quote.fields |= (*prefix | 0x20) == 'f';
	}
	quote.triple = peek(tokens, 1) == quote.mark && peek(tokens, 2) == quote.mark;
	tokens->at += quote.triple ? 3 : 1;
	if (quote.fields) {
		if (push(tokens,
			 (struct python_nest) { .kind = PYTHON_NEST_STRING, .quote = quote }))
			return PYTHON_TOKEN_BROKEN;
	} else {
		if (!skip_text(tokens, &quote, false))
			return PYTHON_TOKEN_BROKEN;
		tokens->at += quote.triple ? 3 : 1;
	}
	return PYTHON_TOKEN_OTHER;
}

/* At most two letters, each at most once; any such name before a quote is meant as a prefix. */
static bool is_prefix(const char *text, size_t len)
{
	return len <= 2 && strspn(text, "rRbBuUfF") >= len;
}

static enum python_token read_name(struct python_tokens *tokens)
{
	while (tokens->at < tokens->end && is_name(*tokens->at))
		tokens->at++;
	if ((peek(tokens, 0) == '"' || peek(tokens, 0) == '\'') &&
	    is_prefix(tokens->text, tokens->at - tokens->text))
		return read_string(tokens);
	return PYTHON_TOKEN_NAME;
}

/* A keyword may follow without a blank: `1if x else 2`. */
static enum python_token read_number(struct python_tokens *tokens)
{
	const char *digits = ".0123456789_";
	char c = peek(tokens, 1) | 0x20;

	if (peek(tokens, 0) == '0' && (c == 'x' || c == 'o' || c == 'b')) {
		tokens->at += 2;
		digits = c == 'x' ? "0123456789abcdefABCDEF_" : digits;
	}
	while (peek(tokens, 0) && strchr(digits, *tokens->at))
		tokens->at++;
	if ((peek(tokens, 0) | 0x20) == 'e') {
		size_t sign = peek(tokens, 1) == '-' || peek(tokens, 1) == '+';

		if (is_digit(peek(tokens, 1 + sign)))
			tokens->at += 1 + sign;
		while (is_digit(peek(tokens, 0)) || peek(tokens, 0) == '_')
			tokens->at++;
	}
	if ((peek(tokens, 0) | 0x20) == 'j')
		tokens->at++;
	return PYTHON_TOKEN_OTHER;
}

static enum python_token read_close(struct python_tokens *tokens, char c)
{
	const struct python_nest *nest = innermost(tokens);

	if (!nest || c != (nest->kind == PYTHON_NEST_FIELD ? '}' : nest->close))
		return PYTHON_TOKEN_BROKEN;
	tokens->n_nests--;
	return PYTHON_TOKEN_CLOSE;
}

static enum python_token read_operator(struct python_tokens *tokens)
{
	struct python_nest *nest = innermost(tokens);
	struct python_nest bracket = { .kind = PYTHON_NEST_BRACKET };
	char c = *tokens->at++;

	switch (c) {
	case '(':
	case '[':
	case '{':
		bracket.close = c == '(' ? ')' : c == '[' ? ']' : '}';
		return push(tokens, bracket) ? PYTHON_TOKEN_BROKEN : PYTHON_TOKEN_OPEN;
	case ')':
	case ']':
	case '}':
		return read_close(tokens, c);
	case ':':
		if (nest && nest->kind == PYTHON_NEST_FIELD) {
			nest->kind = PYTHON_NEST_SPEC;
			return PYTHON_TOKEN_NONE;
		}
		tokens->at += peek(tokens, 0) == '=';
		break;
	case 0:
		return PYTHON_TOKEN_BROKEN;
	}
	return PYTHON_TOKEN_OTHER;
}

static enum python_token read_code(struct python_tokens *tokens)
{
	char c;

	if (!tokens->line_open)
		skip_indent(tokens);
	skip_blanks(tokens);
	tokens->text = tokens->at;
	tokens->first_line = tokens->line;
	c = peek(tokens, 0);
	if (tokens->at == tokens->end && tokens->n_nests)
		return PYTHON_TOKEN_BROKEN;
	if (tokens->at == tokens->end && !tokens->line_open)
		return PYTHON_TOKEN_END;
	if (tokens->at == tokens->end || is_newline(c)) {
		tokens->line_open = false;
		if (tokens->at < tokens->end)
			skip_newline(tokens);
		return PYTHON_TOKEN_NEWLINE;
	}
	if (is_digit(c) || (c == '.' && is_digit(peek(tokens, 1))))
		return read_number(tokens);
	if (is_name(c))
		return read_name(tokens);
	if (c == '"' || c == '\'')
		return read_string(tokens);
	return read_operator(tokens);
}

static bool in_text(struct python_tokens *tokens)
{
	const struct python_nest *nest = innermost(tokens);

	return nest && (nest->kind == PYTHON_NEST_STRING || nest->kind == PYTHON_NEST_SPEC);
}

enum python_token python_tokens__next(struct python_tokens *tokens)
{
	enum python_token token;

	tokens->starts_line = false;
	do
		token = in_text(tokens) ? read_text(tokens) : read_code(tokens);
	while (token == PYTHON_TOKEN_NONE);
	tokens->len = tokens->at - tokens->text;
	return token;
}
