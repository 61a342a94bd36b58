// SPDX-License-Identifier: GPL-2.0-or-later
/* Scopes and their names as of Python/compile.c of CPython 3.6 to 3.10 (compiler_set_qualname). */
#include "runtimes/python/python_scan.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/fnv.h"
#include "core/base/u64map.h"
#include "core/base/util.h"
#include "runtimes/python/python_tokens.h"

#define BLOCKS_MAX   (64 * 1024)
#define GLOBALS_MAX  8192
#define SUITES_MAX   100 /* CPython's limit of indentations */
#define CONTEXTS_MAX (2 * PYTHON_NESTS_MAX)

/* The scanner's state in an expression: one for each open bracket and unfinished lambda. */
struct context {
	enum {
		IN_BRACKET,
		IN_PARAMETERS, /* a lambda's */
		IN_BODY,
	} kind;
	enum {
		PHASE_ELEMENT, /* or no comprehension at all */
		PHASE_TARGET,
		PHASE_ITERABLE, /* the first one: it belongs to the scope outside */
		PHASE_REST,
	} phase;	       /* a bracket's */
	uint8_t comprehension; /* kind of block that a `for` makes of a bracket */
	uint32_t outer, scope; /* block around it, block that now is in force */
	uint32_t block;	       /* the lambda's or comprehension's */
	uint32_t first_block;  /* number of blocks when it opened */
	uint32_t first_line, inner_line;
};

struct scanner {
	struct python_tokens tokens;
	struct python_blocks *blocks;
	struct context contexts[CONTEXTS_MAX];
	size_t n_contexts;
	struct {
		uint32_t block, column;
	} suites[SUITES_MAX]; /* bodies of functions and classes */
	size_t n_suites;
	enum {
		HEADER_NONE,
		HEADER_NAME, /* comes next */
		HEADER_REST, /* up to the colon */
	} header;
	uint8_t header_kind;
	uint32_t header_block, header_column, header_line;
	uint32_t decorator_line; /* 0: none above this line */
	uint32_t last_line;	 /* line in which the last token ended */
	bool statement;		 /* one starts with this token */
	bool global;		 /* in a `global` statement */
	struct u64map globals;	 /* scope and name, hashed together */
};

static struct context *innermost(struct scanner *scanner)
{
	return scanner->n_contexts ? &scanner->contexts[scanner->n_contexts - 1] : NULL;
}

static uint32_t scope_of(const struct scanner *scanner)
{
	if (scanner->n_contexts)
		return scanner->contexts[scanner->n_contexts - 1].scope;
	return scanner->n_suites ? scanner->suites[scanner->n_suites - 1].block : PYTHON_MODULE;
}

static bool token_is(const struct scanner *scanner, const char *word)
{
	const struct python_tokens *tokens = &scanner->tokens;

	return tokens->len == strlen(word) && !memcmp(tokens->text, word, tokens->len);
}

static int add_block(struct scanner *scanner, const struct python_block *block, uint32_t *ret)
{
	struct python_blocks *blocks = scanner->blocks;

	if (blocks->n == BLOCKS_MAX)
		return -EBADMSG;
	if (array__reserve(&blocks->list, &blocks->cap, blocks->n + 1, sizeof(*block)))
		return -ENOMEM;
	*ret = blocks->n;
	blocks->list[blocks->n++] = *block;
	return 0;
}

/* --- expressions --- */

static int push(struct scanner *scanner, const struct context *context)
{
	if (scanner->n_contexts == CONTEXTS_MAX)
		return -EBADMSG;
	scanner->contexts[scanner->n_contexts++] = *context;
	return 0;
}

static int open_lambda(struct scanner *scanner)
{
	struct python_block block = { .kind = PYTHON_BLOCK_LAMBDA, .parent = scope_of(scanner) };
	struct context context = { .kind = IN_PARAMETERS, .scope = block.parent };
	int rc;

	block.first_line = block.inner_line = scanner->tokens.first_line;
	rc = add_block(scanner, &block, &context.block);
	return rc ? rc : push(scanner, &context);
}

static void close_lambda(struct scanner *scanner)
{
	uint32_t block = scanner->contexts[--scanner->n_contexts].block;

	scanner->blocks->list[block].last_line = scanner->last_line;
}

/* Closes lambdas' bodies at a token that cannot be part of them. */
static void close_bodies(struct scanner *scanner)
{
	while (scanner->n_contexts && innermost(scanner)->kind == IN_BODY)
		close_lambda(scanner);
}

static int open_bracket(struct scanner *scanner, bool field)
{
	struct context context = { .kind = IN_BRACKET };
	char c = *scanner->tokens.text;

	context.comprehension = field || c == '(' ? PYTHON_BLOCK_GENERATOR
				: c == '['	  ? PYTHON_BLOCK_LIST
						  : PYTHON_BLOCK_SET;
	context.outer = context.scope = scope_of(scanner);
	context.first_block = scanner->blocks->n;
	context.first_line = scanner->tokens.first_line;
	return push(scanner, &context);
}

static int close_bracket(struct scanner *scanner)
{
	struct context *context;

	close_bodies(scanner);
	context = innermost(scanner);
	if (!context || context->kind != IN_BRACKET)
		return -EBADMSG;
	if (context->phase != PHASE_ELEMENT)
		scanner->blocks->list[context->block].last_line = scanner->tokens.first_line;
	scanner->n_contexts--;
	return 0;
}

/* The bracket turns out to hold a comprehension, whose element has been seen. */
static int open_comprehension(struct scanner *scanner, struct context *context)
{
	struct python_blocks *blocks = scanner->blocks;
	struct python_block block = {
		.kind = context->comprehension,
		.parent = context->outer,
		.first_line = context->first_line,
		.inner_line = context->inner_line,
	};
	int rc;

	/* Sets and dictionaries have always started at their brace. */
	if (block.kind > PYTHON_BLOCK_LIST)
		block.inner_line = block.first_line;
	rc = add_block(scanner, &block, &context->block);
	if (rc)
		return rc;
	for (uint32_t i = context->first_block; i < context->block; i++)
		if (blocks->list[i].parent == context->outer)
			blocks->list[i].parent = context->block;
	context->phase = PHASE_TARGET;
	context->scope = context->block;
	return 0;
}

static int take_for(struct scanner *scanner)
{
	struct context *context;

	close_bodies(scanner);
	context = innermost(scanner);
	if (!context)
		return 0; /* a statement */
	if (context->kind != IN_BRACKET)
		return -EBADMSG;
	if (context->phase == PHASE_ELEMENT)
		return open_comprehension(scanner, context);
	context->phase = PHASE_REST;
	context->scope = context->block;
	return 0;
}

/* --- statements --- */

static void close_suites(struct scanner *scanner, uint32_t column)
{
	while (scanner->n_suites && scanner->suites[scanner->n_suites - 1].column >= column) {
		uint32_t block = scanner->suites[--scanner->n_suites].block;

		scanner->blocks->list[block].last_line = scanner->last_line;
	}
}

static void begin_line(struct scanner *scanner)
{
	const struct python_tokens *tokens = &scanner->tokens;
	bool decorator = tokens->len && *tokens->text == '@'; /* the text may end here */

	close_suites(scanner, tokens->column);
	scanner->statement = true;
	scanner->header_column = tokens->column;
	scanner->header_line = tokens->first_line;
	if (decorator && !scanner->decorator_line)
		scanner->decorator_line = tokens->first_line;
	else if (!decorator && scanner->decorator_line) {
		scanner->header_line = scanner->decorator_line;
		scanner->decorator_line = 0;
	}
}

static int end_line(struct scanner *scanner)
{
	scanner->last_line = scanner->tokens.first_line;
	close_bodies(scanner);
	if (scanner->n_contexts || scanner->header != HEADER_NONE)
		return -EBADMSG;
	scanner->global = false;
	return 0;
}

/* Two scopes' names have the same hash once in 2^64 times. */
static uint64_t hash_name(uint32_t scope, const char *name, size_t len)
{
	return fnv__add((FNV_BEGIN ^ scope) * FNV_PRIME, name, len);
}

static int begin_block(struct scanner *scanner)
{
	const struct python_tokens *tokens = &scanner->tokens;
	struct python_blocks *blocks = scanner->blocks;
	struct python_block block = {
		.kind = scanner->header_kind,
		.parent = scope_of(scanner),
		.name = blocks->names_len,
		.first_line = scanner->header_line,
		.inner_line = scanner->header_line,
	};

	if (array__reserve(&blocks->names, &blocks->names_cap, blocks->names_len + tokens->len + 1,
			   1))
		return -ENOMEM;
	memcpy(blocks->names + blocks->names_len, tokens->text, tokens->len);
	blocks->names_len += tokens->len;
	blocks->names[blocks->names_len++] = '\0';
	scanner->header = HEADER_REST;
	return add_block(scanner, &block, &scanner->header_block);
}

static int declare_global(struct scanner *scanner)
{
	const struct python_tokens *tokens = &scanner->tokens;

	if (scanner->globals.n == GLOBALS_MAX)
		return -EBADMSG;
	return u64map__put(&scanner->globals,
			   hash_name(scope_of(scanner), tokens->text, tokens->len), 1);
}

static int begin_suite(struct scanner *scanner)
{
	if (scanner->n_suites == SUITES_MAX)
		return -EBADMSG;
	scanner->suites[scanner->n_suites].block = scanner->header_block;
	scanner->suites[scanner->n_suites++].column = scanner->header_column;
	scanner->header = HEADER_NONE;
	return 0;
}

/* --- tokens --- */

static int take_name(struct scanner *scanner, bool statement)
{
	const struct python_tokens *tokens = &scanner->tokens;
	struct context *context = innermost(scanner);

	if (scanner->header == HEADER_NAME)
		return begin_block(scanner);
	if (scanner->global)
		return declare_global(scanner);
	if (statement && (token_is(scanner, "def") || token_is(scanner, "class"))) {
		scanner->header = HEADER_NAME;
		scanner->header_kind =
			*tokens->text == 'd' ? PYTHON_BLOCK_FUNCTION : PYTHON_BLOCK_CLASS;
	} else if (statement && token_is(scanner, "async")) {
		scanner->statement = true;
	} else if (statement && token_is(scanner, "global")) {
		scanner->global = true;
	} else if (token_is(scanner, "lambda")) {
		return open_lambda(scanner);
	} else if (token_is(scanner, "for")) {
		return take_for(scanner);
	} else if (context && context->phase == PHASE_TARGET && token_is(scanner, "in")) {
		context->phase = PHASE_ITERABLE;
		context->scope = context->outer;
	} else if (context && context->phase == PHASE_ITERABLE && token_is(scanner, "if")) {
		context->phase = PHASE_REST;
		context->scope = context->block;
	}
	return 0;
}

static int take_colon(struct scanner *scanner)
{
	struct context *context;

	close_bodies(scanner);
	context = innermost(scanner);
	if (!context) {
		scanner->statement = true;
		return scanner->header == HEADER_REST ? begin_suite(scanner) : 0;
	}
	if (context->kind == IN_PARAMETERS) {
		context->kind = IN_BODY;
		context->scope = context->block;
	} else if (context->comprehension == PYTHON_BLOCK_SET) {
		context->comprehension = PYTHON_BLOCK_DICT;
	}
	return 0;
}

static int take_other(struct scanner *scanner)
{
	if (scanner->tokens.len != 1)
		return 0;
	switch (*scanner->tokens.text) {
	case ':':
		return take_colon(scanner);
	case ',':
		close_bodies(scanner);
		break;
	case ';':
		close_bodies(scanner);
		scanner->global = false;
		scanner->statement = !scanner->n_contexts;
		break;
	}
	return 0;
}

static int take(struct scanner *scanner, enum python_token token)
{
	struct context *context;
	bool statement;

	if (scanner->tokens.starts_line)
		begin_line(scanner);
	context = innermost(scanner);
	if (context && !context->inner_line)
		context->inner_line = scanner->tokens.first_line;
	statement = scanner->statement;
	scanner->statement = false;
	switch (token) {
	case PYTHON_TOKEN_NAME:
		return take_name(scanner, statement);
	case PYTHON_TOKEN_OPEN:
		return open_bracket(scanner, false);
	case PYTHON_TOKEN_FIELD:
		return open_bracket(scanner, true);
	case PYTHON_TOKEN_CLOSE:
		return close_bracket(scanner);
	case PYTHON_TOKEN_NEWLINE:
		return end_line(scanner);
	case PYTHON_TOKEN_OTHER:
		return take_other(scanner);
	default:
		return -EBADMSG;
	}
}

/* Marks global names. That is possible only at the end of a scope. */
static void mark_globals(const struct scanner *scanner)
{
	struct python_blocks *blocks = scanner->blocks;

	for (size_t i = 0; scanner->globals.n && i < blocks->n; i++) {
		struct python_block *block = &blocks->list[i];
		const char *name = python_blocks__name(blocks, block);

		block->global = u64map__get(&scanner->globals,
					    hash_name(block->parent, name, strlen(name))) != 0;
	}
}

int python_scan__blocks(const char *text, size_t size, struct python_blocks *ret)
{
	struct python_blocks blocks = { 0 };
	struct scanner *scanner = calloc(1, sizeof(*scanner));
	enum python_token token;
	int rc = 0;

	if (!scanner)
		return -ENOMEM;
	scanner->blocks = &blocks;
	python_tokens__init(&scanner->tokens, text, size);
	while (!rc && (token = python_tokens__next(&scanner->tokens)) != PYTHON_TOKEN_END) {
		rc = take(scanner, token);
		if (token != PYTHON_TOKEN_NEWLINE)
			scanner->last_line = scanner->tokens.line;
	}
	close_suites(scanner, 0);
	mark_globals(scanner);
	if (rc)
		python_blocks__done(&blocks);
	else
		*ret = blocks;
	u64map__done(&scanner->globals);
	free(scanner);
	return rc;
}
