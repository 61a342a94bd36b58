/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_TOKENS_H
#define BRAID_PYTHON_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CPython allows 200 brackets; the fields of f-strings come on top. */
#define PYTHON_NESTS_MAX 256

enum python_token {
	PYTHON_TOKEN_NONE, /* never returned */
	PYTHON_TOKEN_END,
	PYTHON_TOKEN_BROKEN,  /* no Python, or beyond the limits: the end, too */
	PYTHON_TOKEN_NEWLINE, /* a logical line ends */
	PYTHON_TOKEN_NAME,    /* or keyword */
	PYTHON_TOKEN_OPEN,    /* ( [ { */
	PYTHON_TOKEN_FIELD,   /* the { of a replacement field in an f-string */
	PYTHON_TOKEN_CLOSE,   /* end of either */
	PYTHON_TOKEN_OTHER,   /* number, string, or (mostly one character of) an operator */
};

/* The tokens of a Python source, as far as it takes to see its block structure: comments, blank
 * lines, the inside of strings and joined lines are skipped, but replacement fields of f-strings
 * are tokens. The source may be anything. */
struct python_tokens {
	/* the token */
	const char *text; /* in the source */
	size_t len;
	uint32_t first_line; /* from 1 */
	bool starts_line;    /* the token starts a logical line, indented by `column` */
	uint32_t column;     /* columns; tabs to 8 */

	/* after the token */
	const char *at, *end;
	uint32_t line;
	bool line_open; /* a logical line has begun */
	size_t n_nests;
	struct python_nest {
		enum {
			PYTHON_NEST_BRACKET,
			PYTHON_NEST_STRING,
			PYTHON_NEST_FIELD,
			PYTHON_NEST_SPEC, /* format at the end of a field: text, too */
		} kind;
		char close; /* closes a BRACKET */
		struct python_quote {
			char mark;
			bool triple, raw, fields;
		} quote; /* the string around the others */
	} nests[PYTHON_NESTS_MAX];
};

void python_tokens__init(struct python_tokens *tokens, const char *text, size_t size);
enum python_token python_tokens__next(struct python_tokens *tokens);

#endif
