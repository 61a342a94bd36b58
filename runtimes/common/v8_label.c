// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/common/v8_label.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

/* "KIND:MARKNAME FILE:LINE:COLUMN", where the mark stands for the compiler (CodeKindToMarker and
 * ComputeMarker in V8's sources) and the name may be empty:
 *   JS:*leaf /srv/a b.js:1:14          LazyCompile:~get size file:///srv/m.mjs:7:3
 *   Eval:~ /srv/a.js:1:1               JS:+\'run node:internal/main:12:5
 * "o" in front of the mark is code that took the place of its function's running loop (V8 15).
 * and other kinds in which there is no file: Builtin:ArrayMap, BytecodeHandler:LdaZero, RegExp:a+b
 */

static const char *const function_kinds[] = {
	"JS:", "LazyCompile:", "Function:", "Script:", "Eval:", "Module:", "Callback:",
};

/* Kinds without a file. */
static const char builtin[] = "Builtin:", handler[] = "BytecodeHandler:";

/* Returns the length in bytes of the compiler's mark at the start of @text; 0: no mark. */
static size_t mark_length(const char *text)
{
	size_t replaces = *text == 'o' ? 1 : 0;

	return text[replaces] && strchr("~^+*", text[replaces]) ? replaces + 1 : 0;
}

/* Returns @text without the kind of function with which the text begins; NULL: the text does not
 * name a function. */
static char *skip_kind(char *text)
{
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(function_kinds); i++) {
		len = strlen(function_kinds[i]);
		if (strncmp(text, function_kinds[i], len))
			continue;
		text += len;
		text += mark_length(text);
		return *text == '\'' ? text + 1 : text;
	}
	return NULL;
}

/* Removes a colon and a number from the end of @text. Returns the number; 0: there is none. */
static uint32_t cut_number(char *text)
{
	char *colon = strrchr(text, ':');
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
	unsigned long number;

	if (!digits || colon[1 + digits])
		return 0;
	number = strtoul(colon + 1, NULL, 10);
	*colon = '\0';
	return number < UINT32_MAX ? number : 0;
}

/* Returns true if the text begins like a file's name, and not like a word of a function's name. */
static bool is_file(const char *text)
{
	size_t n;

	if (*text == '/' || *text == '[')
		return true;
	for (n = 0; isalnum((unsigned char)text[n]) || (text[n] && strchr("+.-", text[n])); n++)
		;
	return n && text[n] == ':' && text[n + 1];
}

/* Returns the blank between name and file, which may both contain blanks. NULL: no file. */
static char *find_blank(char *text)
{
	char *at = text;

	for (at = strchr(text, ' '); at; at = strchr(at + 1, ' '))
		if (is_file(at + 1))
			return at;
	return strrchr(text, ' ');
}

static int hex_digit(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
					    : -1;
}

char *v8_label__path(char *url)
{
	char *from, *to;

	if (strncmp(url, "file:///", strlen("file:///")) != 0)
		return url;
	url += strlen("file://");
	for (from = to = url; *from; from++, to++) {
		*to = *from;
		if (*from == '%' && hex_digit(from[1]) >= 0 && hex_digit(from[2]) >= 0) {
			*to = hex_digit(from[1]) << 4 | hex_digit(from[2]);
			from += 2;
			if (!*to)
				*to = '?';
		}
	}
	*to = '\0';
	return url;
}

static void label_function(char *text, struct runtime_symbol *ret)
{
	uint32_t column = cut_number(text), line = column ? cut_number(text) : 0;
	char *blank = find_blank(text);

	if (blank)
		*blank = '\0';
	ret->function = *text ? text : "(anonymous)";
	if (!blank || !blank[1])
		return;
	ret->file = v8_label__path(blank + 1);
	ret->line = line ? line : column;
}

bool v8_label__is(const char *symbol)
{
	size_t len;

	for (size_t i = 0; i < ARRAY_SIZE(function_kinds); i++) {
		len = strlen(function_kinds[i]);
		if (!strncmp(symbol, function_kinds[i], len))
			return mark_length(symbol + len) > 0;
	}
	return !strncmp(symbol, builtin, strlen(builtin)) ||
	       !strncmp(symbol, handler, strlen(handler));
}

bool v8_label__make(const char *symbol, char *buf, size_t size, struct runtime_label *ret)
{
	char *text;

	/* Label builtins as the program's own symbols name them. */
	if (!strncmp(symbol, builtin, strlen(builtin))) {
		snprintf(buf, size, "Builtins_%s", symbol + strlen(builtin));
	} else if (!strncmp(symbol, handler, strlen(handler))) {
		snprintf(buf, size, "Builtins_%sHandler", symbol + strlen(handler));
	} else {
		snprintf(buf, size, "%s", symbol);
		text = skip_kind(buf);
		if (text) {
			label_function(text, &ret->symbol);
			return true;
		}
	}
	ret->symbol.function = buf;
	return true;
}
