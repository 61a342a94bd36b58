// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/perl/perl_codes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/perl.h"
#include "core/base/util.h"
#include "runtimes/common/code_object_text.h"
#include "runtimes/common/numbered_codes.h"

#define UNREADABLE "[unreadable name]"

struct code {
	bool is_main;
	char *function;
	char *file; /* NULL: unknown */
};

struct perl_codes {
	struct numbered_codes by_number;
};

/* The names in Carp's stack traces. */
static const char *const names[PERL_CODE_KINDS_N] = {
	[PERL_CODE_MAIN] = "<main>",	       [PERL_CODE_EVAL_BLOCK] = "eval {...}",
	[PERL_CODE_EVAL_TEXT] = "eval '...'",  [PERL_CODE_REQUIRE] = "require",
	[PERL_CODE_SORT_BLOCK] = "sort {...}", [PERL_CODE_PATTERN] = "(?{...})",
};

static void code__free(void *of)
{
	struct code *code = of;

	if (!code)
		return;
	free(code->function);
	free(code->file);
	free(code);
}

struct perl_codes *perl_codes__new(void)
{
	return calloc(1, sizeof(struct perl_codes));
}

void perl_codes__free(struct perl_codes *codes)
{
	if (!codes)
		return;
	numbered_codes__done(&codes->by_number, code__free);
	free(codes);
}

/* Returns "Package::sub", owned by the caller; NULL: out of memory. */
static char *sub__name(const struct rec_code_object *rec, const struct perl_code_table *table)
{
	char *name, *package, *text = NULL;

	if (!rec->name_kind)
		return strdup(UNREADABLE);
	name = code_object_text__dup(rec->name, CODE_OBJECT_TEXT_BYTES, rec->name_kind,
				     rec->name_len);
	if (!name || !table->package_kind)
		return name;
	package = code_object_text__dup(table->package, PERL_PACKAGE_BYTES, table->package_kind,
					table->package_len);
	if (package && asprintf(&text, "%s::%s", package, name) < 0)
		text = NULL;
	free(package);
	free(name);
	return text;
}

/* Removes the number from "(eval N)", the file name of an evaluated text, since it would separate
 * equal functions. */
static void cut_number(char *file)
{
	static const char start[] = "(eval ";
	size_t len = strlen(start), digits;

	if (strncmp(file, start, len) != 0)
		return;
	digits = strspn(file + len, "0123456789");
	if (digits && strcmp(file + len + digits, ")") == 0)
		strcpy(file + len - 1, ")");
}

static int code__new(const struct rec_code_object *rec, const struct perl_code_table *table,
		     struct code **ret)
{
	struct code *code = calloc(1, sizeof(*code));

	if (!code)
		return -ENOMEM;
	code->is_main = table->kind == PERL_CODE_MAIN;
	code->function = names[table->kind] ? strdup(names[table->kind]) : sub__name(rec, table);
	if (rec->file_kind)
		code->file = code_object_text__dup(rec->file, CODE_OBJECT_TEXT_BYTES,
						   rec->file_kind, rec->file_len);
	if (!code->function || (rec->file_kind && !code->file)) {
		code__free(code);
		return -ENOMEM;
	}
	if (code->file)
		cut_number(code->file);
	*ret = code;
	return 0;
}

static bool rec__valid(const struct rec_code_object *rec, size_t size)
{
	const struct perl_code_table *table = (const void *)rec->table;

	return size == offsetof(struct rec_code_object, table) + sizeof(*table) && rec->code &&
	       code_object_text__valid(rec->name_kind) && code_object_text__valid(rec->file_kind) &&
	       code_object_text__valid(table->package_kind) && table->kind < PERL_CODE_KINDS_N;
}

int perl_codes__add(struct perl_codes *codes, const struct rec_code_object *rec, size_t size)
{
	struct code *code;
	int ret;

	if (!rec__valid(rec, size))
		return -EBADMSG;
	if (numbered_codes__find(&codes->by_number, rec->code))
		return -EBADMSG; /* numbers are never used again */
	ret = code__new(rec, (const void *)rec->table, &code);
	if (ret)
		return ret;
	return numbered_codes__put(&codes->by_number, rec->code, code, code__free);
}

static const struct code *find_code(const struct perl_codes *codes, uint64_t key)
{
	return numbered_codes__of_key(&codes->by_number, key);
}

void perl_codes__forget(struct perl_codes *codes, const struct u64map *listed)
{
	numbered_codes__forget(&codes->by_number, listed, code__free);
}

int perl_codes__symbolize(const struct perl_codes *codes, uint64_t key, struct runtime_symbol *ret)
{
	const struct code *code = find_code(codes, key);

	if (!code)
		return -ENOENT;
	*ret = (struct runtime_symbol) { code->function, code->file, FRAME_KEY_INDEX(key) };
	return 0;
}

bool perl_codes__is_main(const struct perl_codes *codes, uint64_t key)
{
	const struct code *code = find_code(codes, key);

	return code && code->is_main;
}
