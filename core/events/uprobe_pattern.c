// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/uprobe_pattern.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/elf/debugfile.h"
#include "core/elf/elf_symbols.h"
#include "core/elf/minidebug.h"
#include "core/events/values.h"

/* Symbols that match, with aliases, before duplicates are removed. */
#define SYMBOLS_MAX (8 * EVENT_PLACES_MAX)

bool is_pattern(const char *text)
{
	const char *at = text;

	while ((at = strpbrk(at, "*?[")) && at > text && go_receiver__begins(text, at - 1))
		at++;
	return at;
}

static bool matches(const char *pattern, const char *name)
{
	/* A name of Go may have brackets of its own: main.Sum[go.shape.int_0] */
	return !strcmp(pattern, name) || !fnmatch(pattern, name, 0);
}

static int add_matching(const struct elf_file *file, const char *section, const char *pattern,
			struct matched_functions *to)
{
	struct elf_symbols symbols;
	GElf_Sym symbol;

	if (!elf_symbols__open(file, section, &symbols))
		return 0;
	for (size_t i = 0; i < symbols.n; i++) {
		const char *name = elf_symbols__get(&symbols, i, &symbol);

		if (!name || GELF_ST_TYPE(symbol.st_info) != STT_FUNC ||
		    symbol.st_shndx == SHN_UNDEF || !symbol.st_value || !matches(pattern, name))
			continue;
		if (to->n == SYMBOLS_MAX)
			return -E2BIG;
		if (array__reserve(&to->list, &to->cap, to->n + 1, sizeof(*to->list)))
			return -ENOMEM;
		to->list[to->n] = (struct matched_function) { symbol.st_value, strdup(name) };
		if (!to->list[to->n++].name)
			return -ENOMEM;
	}
	return 0;
}

static int add_from(const struct elf_file *file, const char *pattern, struct matched_functions *to)
{
	int code = add_matching(file, ".dynsym", pattern, to);

	return code ? code : add_matching(file, ".symtab", pattern, to);
}

static int compare(const void *a, const void *b)
{
	const struct matched_function *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Leaves one name of each address: the first in the alphabet. */
static void remove_aliases(struct matched_functions *functions)
{
	size_t n = 0;

	if (functions->n)
		qsort(functions->list, functions->n, sizeof(*functions->list), compare);
	for (size_t i = 0; i < functions->n; i++) {
		if (n && functions->list[n - 1].vaddr == functions->list[i].vaddr)
			free(functions->list[i].name);
		else
			functions->list[n++] = functions->list[i];
	}
	functions->n = n;
}

int matched_functions__find(const struct elf_file *file, const char *pattern,
			    struct matched_functions *ret, struct err *err)
{
	struct elf_file *other = NULL;
	int code = add_from(file, pattern, ret);

	if (!code && !minidebug__open(file, &other))
		code = add_from(other, pattern, ret);
	elf_file__free(other);
	other = NULL;
	if (!code && !debugfile__open(file, "", false, &other))
		code = add_from(other, pattern, ret);
	elf_file__free(other);
	remove_aliases(ret);
	if (code == -E2BIG || ret->n > EVENT_PLACES_MAX)
		return err__set(err, -E2BIG,
				"%s matches %zu%s functions of %s, and at most %d can be probed. "
				"Make the pattern narrower",
				pattern, ret->n, code ? " or more" : "", file->path,
				EVENT_PLACES_MAX);
	return code ? err__set(err, code, "out of memory") : 0;
}

void matched_functions__done(struct matched_functions *functions)
{
	while (functions->n)
		free(functions->list[--functions->n].name);
	free(functions->list);
	*functions = (struct matched_functions) {};
}
