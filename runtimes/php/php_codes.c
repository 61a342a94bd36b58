// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/php/php_codes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/php.h"
#include "core/base/util.h"
#include "runtimes/common/code_object_text.h"
#include "runtimes/common/numbered_codes.h"

#define UNREADABLE "[unreadable name]"

struct code {
	uint32_t pid;
	uint64_t handler; /* 0: written in PHP */
	bool is_trampoline;
	bool is_frameless;
	char *function;
	char *file; /* NULL: unknown */
};

struct php_codes {
	struct numbered_codes by_number;
};

/* The names are those of debug_backtrace(). */
static const char *const names[PHP_CODE_KINDS_N] = {
	[PHP_CODE_MAIN] = "<main>",	[PHP_CODE_EVAL] = "eval",
	[PHP_CODE_INCLUDE] = "include", [PHP_CODE_INCLUDE_ONCE] = "include_once",
	[PHP_CODE_REQUIRE] = "require", [PHP_CODE_REQUIRE_ONCE] = "require_once",
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

struct php_codes *php_codes__new(void)
{
	return calloc(1, sizeof(struct php_codes));
}

void php_codes__free(struct php_codes *codes)
{
	if (!codes)
		return;
	numbered_codes__done(&codes->by_number, code__free);
	free(codes);
}

/* Returns the length of a text up to its first NUL. After the NUL, the name of an anonymous class
 * contains its origin. */
static size_t visible(const char *text, size_t room, size_t len)
{
	size_t n = strnlen(text, len < room ? len : room);

	return n < room ? n : len;
}

/* "Class::method". Owned; NULL: out of memory. */
static char *function__name(const struct rec_code_object *rec, const struct php_code_table *table)
{
	char *name, *class, *text = NULL;

	if (!rec->name_kind)
		return strdup(UNREADABLE);
	name = code_object_text__dup(rec->name, CODE_OBJECT_TEXT_BYTES, rec->name_kind,
				     visible(rec->name, CODE_OBJECT_TEXT_BYTES, rec->name_len));
	if (!name || !table->class_kind)
		return name;
	class = code_object_text__dup(table->class_name, PHP_CLASS_BYTES, table->class_kind,
				      visible(table->class_name, PHP_CLASS_BYTES,
					      table->class_len));
	if (class && asprintf(&text, "%s::%s", class, name) < 0)
		text = NULL;
	free(class);
	free(name);
	return text;
}

static int code__new(const struct rec_code_object *rec, const struct php_code_table *table,
		     struct code **ret)
{
	struct code *code = calloc(1, sizeof(*code));

	if (!code)
		return -ENOMEM;
	code->pid = rec->tgid;
	code->handler = table->handler;
	code->is_frameless = table->kind == PHP_CODE_FRAMELESS;
	code->is_trampoline = table->is_trampoline;
	code->function =
		names[table->kind] ? strdup(names[table->kind]) : function__name(rec, table);
	if (rec->file_kind)
		code->file = code_object_text__dup(rec->file, CODE_OBJECT_TEXT_BYTES,
						   rec->file_kind, rec->file_len);
	if (!code->function || (rec->file_kind && !code->file)) {
		code__free(code);
		return -ENOMEM;
	}
	*ret = code;
	return 0;
}

static bool rec__valid(const struct rec_code_object *rec, size_t size)
{
	const struct php_code_table *table = (const void *)rec->table;

	return size == offsetof(struct rec_code_object, table) + sizeof(*table) && rec->code &&
	       code_object_text__valid(rec->name_kind) && code_object_text__valid(rec->file_kind) &&
	       code_object_text__valid(table->class_kind) && table->kind < PHP_CODE_KINDS_N;
}

int php_codes__add(struct php_codes *codes, const struct rec_code_object *rec, size_t size)
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

static const struct code *find_code(const struct php_codes *codes, uint64_t key)
{
	return numbered_codes__of_key(&codes->by_number, key);
}

void php_codes__forget(struct php_codes *codes, const struct u64map *listed)
{
	numbered_codes__forget(&codes->by_number, listed, code__free);
}

int php_codes__symbolize(const struct php_codes *codes, uint64_t key, struct runtime_symbol *ret)
{
	const struct code *code = find_code(codes, key);

	if (!code)
		return -ENOENT;
	*ret = (struct runtime_symbol) { code->function, code->file, FRAME_KEY_INDEX(key) };
	return 0;
}

uint64_t php_codes__handler(const struct php_codes *codes, uint64_t key)
{
	const struct code *code = find_code(codes, key);

	return code ? code->handler : 0;
}

bool php_codes__is_frameless(const struct php_codes *codes, uint64_t key)
{
	const struct code *code = find_code(codes, key);

	return code && code->is_frameless;
}

/* Returns the name that was sampled first if a function has several. */
const char *php_codes__native_name(const struct php_codes *codes, uint32_t pid, uint64_t entry)
{
	const struct code *code;

	if (!entry)
		return NULL;
	for (size_t i = 0; i < codes->by_number.n; i++) {
		code = codes->by_number.list[i].code;
		if (code->handler == entry && code->pid == pid && !code->is_trampoline)
			return code->function;
	}
	return NULL;
}
