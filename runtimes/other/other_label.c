// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/other/other_label.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/common/v8_label.h"

/* Forms of the names that compilers write to perf maps. The form identifies the compiler. A
 * function returns false if @text, which it may change, has another form. */
typedef bool (*form_fn)(char *text, struct runtime_symbol *ret);

static bool starts_with(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Parses a name of Erlang's: "MODULE:FUNCTION/ARITY". In a perf map, "$" precedes the name, and
 * shared code is "$global::NAME". A function's prologue has an entry of its own, with
 * "-CodeInfoPrologue" after the arity. */
static bool beam__parse(char *text, struct runtime_symbol *ret)
{
	static const char prologue[] = "-CodeInfoPrologue";
	char *end = text + strlen(text), *slash;
	bool shared = *text == '$';

	if (!strchr(text, ':'))
		return false;
	if (end - text > (ptrdiff_t)strlen(prologue) && !strcmp(end - strlen(prologue), prologue))
		*(end -= strlen(prologue)) = '\0';
	slash = strrchr(text, '/');
	if (!shared && (!slash || !slash[1] || slash[1 + strspn(slash + 1, "0123456789")]))
		return false;
	ret->function = text + shared;
	return true;
}

/* .NET: "[instance ]RETURN [ASSEMBLY] CLASS::METHOD(PARAMETERS)[TIER]". Assemblies of the types of
 * the return value are directly in front of the type. */
static bool dotnet__parse(char *text, struct runtime_symbol *ret)
{
	char *class = strstr(text, "] "), *colons = class ? strstr(class, "::") : NULL;
	char *parameters = colons ? strchr(colons, '(') : NULL;

	if (!parameters)
		return false;
	class += strlen("] ");
	*parameters = '\0';
	memmove(colons + 1, colons + 2, strlen(colons + 2) + 1);
	*colons = '.';
	ret->function = class;
	return true;
}

/* .NET: "stub BLOCK<KIND>". */
static bool dotnet_stub__parse(char *text, struct runtime_symbol *ret)
{
	char *kind = strchr(text, '<'), *end = text + strlen(text);

	if (!starts_with(text, "stub ") || !kind || end[-1] != '>')
		return false;
	end[-1] = ']';
	*kind = '[';
	ret->function = kind;
	return true;
}

/* JavaScriptCore: "JSC-TIER: FUNCTION#HASH", where the function of a module is its file. */
static bool jsc__parse(char *text, struct runtime_symbol *ret)
{
	static const char *const tiers[] = { "JSC-Baseline: ", "JSC-DFG: ", "JSC-FTL: " };
	char *name = NULL, *hash;

	for (size_t i = 0; i < ARRAY_SIZE(tiers); i++)
		if (starts_with(text, tiers[i]))
			name = text + strlen(tiers[i]);
	hash = name ? strrchr(name, '#') : NULL;
	if (!hash)
		return false;
	*hash = '\0';
	ret->function = *name == '/' ? "(module)" : *name ? name : "(anonymous)";
	ret->file = *name == '/' ? name : NULL;
	return true;
}

/* LuaJIT: "TRACE_NUMBER::FILE:LINE", of the first line of the trace. */
static bool luajit__parse(char *text, struct runtime_symbol *ret)
{
	char *colons = strstr(text, "::"), *line = colons ? strrchr(colons + 2, ':') : NULL;

	if (!starts_with(text, "TRACE_") || !line)
		return false;
	*colons = *line = '\0';
	text[strlen("TRACE")] = ' ';
	ret->function = text;
	ret->file = colons + 2;
	ret->line = strtoul(line + 1, NULL, 10);
	return true;
}

/* Julia: "KIND_NAME_NUMBER"; the number differs between runs. */
static bool julia__parse(char *text, struct runtime_symbol *ret)
{
	static const char *const kinds[] = { "julia_", "japi1_", "japi3_", "jlsys_" };
	char *number = strrchr(text, '_');

	for (size_t i = 0; number && i < ARRAY_SIZE(kinds); i++) {
		size_t len = strlen(kinds[i]);

		if (!starts_with(text, kinds[i]) || number <= text + len || !number[1] ||
		    number[1 + strspn(number + 1, "0123456789")])
			continue;
		*number = '\0';
		ret->function = text + len;
		return true;
	}
	return false;
}

/* Mono: "[(wrapper KIND) ]CLASS:METHOD (PARAMETERS)". */
static bool mono__parse(char *text, struct runtime_symbol *ret)
{
	char *parameters = strstr(text, " ("), *colon;

	if (starts_with(text, "(wrapper "))
		parameters = strstr(text + 1, " (");
	colon = parameters ? memrchr(text, ':', parameters - text) : NULL;
	if (!colon || colon == text || text[strlen(text) - 1] != ')')
		return false;
	*parameters = '\0';
	*colon = '.';
	ret->function = text;
	return true;
}

bool other_label__make(const char *symbol, char *buf, size_t size, struct runtime_label *ret)
{
	static const form_fn forms[] = { jsc__parse,	     luajit__parse, dotnet__parse,
					 dotnet_stub__parse, julia__parse,  mono__parse,
					 beam__parse };

	if (v8_label__is(symbol))
		return v8_label__make(symbol, buf, size, ret);
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		snprintf(buf, size, "%s", symbol);
		if (forms[i](buf, &ret->symbol))
			return true;
	}
	return false;
}
