// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/ruby/ruby_codes.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/target/procfs.h"
#include "runtimes/common/code_object_text.h"
#include "runtimes/common/numbered_codes.h"
#include "runtimes/ruby/ruby_lines.h"

#define ENTRIES_MAX   1000000 /* limit for a line table */
#define ISEQ_SIZE_MAX (64 * 1024 * 1024)
#define UNREADABLE    "[unreadable name]"
#define GARBAGE	      "(garbage collection)"

struct code {
	uint32_t first_line;
	uint32_t pid;
	uint64_t native; /* 0: not written in C */
	char *function;
	char *file; /* NULL: unknown */
	struct ruby_lines lines;
	uint8_t *positions, *entries; /* data of `lines`; NULL: unknown */
};

struct ruby_codes {
	struct numbered_codes by_number;
};

static void code__free(void *of)
{
	struct code *code = of;

	if (!code)
		return;
	free(code->function);
	free(code->file);
	free(code->positions);
	free(code->entries);
	free(code);
}

struct ruby_codes *ruby_codes__new(void)
{
	return calloc(1, sizeof(struct ruby_codes));
}

void ruby_codes__free(struct ruby_codes *codes)
{
	if (!codes)
		return;
	numbered_codes__done(&codes->by_number, code__free);
	free(codes);
}

/* --- names --- */

/* Removes addresses from the names of anonymous classes, "#<Class:0x000...>::Inner". They mean
 * nothing to the reader, and make equal functions different. */
static void cut_addresses(char *text)
{
	char *from, *to;

	while ((from = strstr(text, ":0x"))) {
		for (to = from + 3; isxdigit((unsigned char)*to);)
			to++;
		memmove(from, to, strlen(to) + 1);
	}
}

/* Returns true if the text may be a class's name. In 3.2 that is the class's first instance
 * variable, which in an anonymous class may be anything. */
static bool is_class_path(const char *text)
{
	bool anonymous = strncmp(text, "#<", 2) == 0;

	if (!anonymous && !isupper((unsigned char)*text) && !(*text & 0x80))
		return false;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !(*text & 0x80) && !strchr("_:.", *text) &&
		    !(anonymous && strchr("#<>", *text)))
			return false;
	return true;
}

/* Returns the name of a method's owner; owned. NULL: out of memory. */
static char *owner__name(const struct ruby_code_table *table)
{
	const char *kind = table->is_refinement ? "refinement"
			   : table->is_module	? "Module"
						: "Class";
	char *name = NULL, *within = NULL, *text = NULL;
	bool named = table->owner_len > 0, refines = table->is_refinement;

	name = code_object_text__dup(table->owner_name, refines ? RUBY_WITHIN_AT : RUBY_OWNER_BYTES,
				     CODE_OBJECT_TEXT_UTF8, table->owner_len);
	within = code_object_text__dup(table->owner_name + RUBY_WITHIN_AT,
				       RUBY_OWNER_BYTES - RUBY_WITHIN_AT, CODE_OBJECT_TEXT_UTF8,
				       table->within_len);
	if (!name || !within)
		goto out;
	named = named && is_class_path(name);
	name[named ? strlen(name) : 0] = '\0';
	cut_addresses(name);
	cut_addresses(within);
	if (named && !refines && table->owner != RUBY_OWNER_OBJECT) {
		text = name;
		name = NULL;
	} else if (asprintf(&text, "#<%s%s%s%s%s>", named && !refines ? "" : kind,
			    named && refines ? ":" : "", name, refines && *within ? "@" : "",
			    refines ? within : "") < 0) {
		text = NULL;
	}
out:
	free(name);
	free(within);
	return text;
}

/* Returns the length of the prefix before the method's name in a label. */
static size_t label__prefix(const char *label)
{
	static const char *const words[] = { "block in ", "rescue in ", "ensure in " };
	size_t at = 0, before, i;
	int levels, n;

	do {
		before = at;
		for (i = 0; i < ARRAY_SIZE(words); i++)
			if (strncmp(label + at, words[i], strlen(words[i])) == 0)
				at += strlen(words[i]);
		n = 0;
		if (sscanf(label + at, "block (%d levels) in %n", &levels, &n) == 1 && n > 0)
			at += n;
	} while (at > before);
	return at;
}

/* Returns true for the body of a class or of a file, which belongs to no method (iseq.c,
 * compile.c). */
static bool label__is_body(const char *label)
{
	static const char *const bodies[] = { "<main>", "<top (required)>", "<compiled>",
					      "singleton class" };

	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++)
		if (strcmp(label, bodies[i]) == 0)
			return true;
	return strncmp(label, "<class:", 7) == 0 || strncmp(label, "<module:", 8) == 0;
}

/* Reads a text of `len` bytes that was unreadable for the kernel half. */
static void text__fetch(uint32_t pid, uint64_t address, size_t len, char *to, uint8_t *ret_kind)
{
	if (len &&
	    procfs__read_memory(pid, address, to, min_of(len, (size_t)CODE_OBJECT_TEXT_BYTES)))
		*ret_kind = CODE_OBJECT_TEXT_UTF8;
}

/* Returns the name as Ruby 3.4 has it in backtraces, "block in Class#method". Owned; NULL: out
 * of memory. */
static char *code__name(const struct rec_code_object *rec, const struct ruby_code_table *table)
{
	char *label, *owner, *text = NULL;
	size_t prefix;

	if (!rec->name_kind)
		return strdup(UNREADABLE);
	label = code_object_text__dup(rec->name, CODE_OBJECT_TEXT_BYTES, rec->name_kind,
				      rec->name_len);
	if (!label || table->owner == RUBY_OWNER_NONE)
		return label;
	prefix = table->kind == RUBY_CODE_ISEQ ? label__prefix(label) : 0;
	if (table->kind == RUBY_CODE_ISEQ && label__is_body(label + prefix))
		return label;
	owner = owner__name(table);
	if (owner && asprintf(&text, "%.*s%s%s%s", (int)prefix, label, owner,
			      table->owner == RUBY_OWNER_CLASS ? "#" : ".", label + prefix) < 0)
		text = NULL;
	free(owner);
	free(label);
	return text;
}

/* --- line tables --- */

/* Returns `size` bytes, which are at `address` of the process, and the first `here` of them at
 * `from`. Owned. NULL: unreadable, as the process has ended, or out of memory. */
static uint8_t *bytes__get(uint32_t pid, uint64_t address, size_t size, const uint8_t *from,
			   size_t here)
{
	uint8_t *bytes = malloc(size);

	if (!bytes)
		return NULL;
	if (here >= size) {
		memcpy(bytes, from, size);
	} else if (!procfs__read_memory(pid, address, bytes, size)) {
		free(bytes);
		bytes = NULL;
	}
	return bytes;
}

static void code__set_lines(struct code *code, uint32_t pid, const struct ruby_code_table *table)
{
	size_t positions = ruby_lines__positions_size(table->iseq_size);
	size_t entries = (size_t)table->n_entries * table->entry_size;

	if (!table->n_entries || table->n_entries > ENTRIES_MAX || !table->entry_size ||
	    table->entry_size > 64 || table->iseq_size > ISEQ_SIZE_MAX)
		return;
	code->entries =
		bytes__get(pid, table->entries, entries, table->entries_data,
			   min_of((size_t)table->entries_size, sizeof(table->entries_data)));
	if (table->n_entries > 1) /* else there may be no positions */
		code->positions = bytes__get(
			pid, table->positions, positions, table->positions_data,
			min_of((size_t)table->positions_size, sizeof(table->positions_data)));
	if (!code->entries || (table->n_entries > 1 && !code->positions))
		return;
	code->lines = (struct ruby_lines) { .positions = code->positions,
					    .positions_size = code->positions ? positions : 0,
					    .entries = code->entries,
					    .n_entries = table->n_entries,
					    .entry_size = table->entry_size };
}

/* --- codes --- */

static int code__new(struct rec_code_object *rec, struct code **ret)
{
	struct code *code = calloc(1, sizeof(*code));
	struct ruby_code_table table;
	int rc = -ENOMEM;

	if (!code)
		return -ENOMEM;
	if (!rec->name_kind)
		text__fetch(rec->tgid, rec->table_address, rec->name_len, rec->name,
			    &rec->name_kind);
	if (!rec->file_kind)
		text__fetch(rec->tgid, rec->address, rec->file_len, rec->file, &rec->file_kind);
	memcpy(&table, rec->table, sizeof(table));
	code->pid = rec->tgid;
	code->first_line = rec->first_line;
	if (table.kind == RUBY_CODE_C)
		code->native = table.native ? table.native : ANCHOR_FUNCTION_UNKNOWN;
	code->function = code__name(rec, &table);
	if (!code->function)
		goto out;
	if (rec->file_kind) {
		code->file = code_object_text__dup(rec->file, CODE_OBJECT_TEXT_BYTES,
						   rec->file_kind, rec->file_len);
		if (!code->file)
			goto out;
	}
	code__set_lines(code, rec->tgid, &table);
	rc = 0;
out:
	if (rc)
		code__free(code);
	else
		*ret = code;
	return rc;
}

int ruby_codes__add(struct ruby_codes *codes, const struct rec_code_object *rec, size_t size)
{
	struct code *code;
	struct rec_code_object copy;
	int rc;

	if (size < offsetof(struct rec_code_object, table) + sizeof(struct ruby_code_table) ||
	    !rec->code || !code_object_text__valid(rec->name_kind) ||
	    !code_object_text__valid(rec->file_kind))
		return -EBADMSG;
	memcpy(&copy, rec, min_of(size, sizeof(copy)));
	rc = code__new(&copy, &code);
	if (rc)
		return rc;
	return numbered_codes__put(&codes->by_number, rec->code, code, code__free);
}

static const struct code *find(const struct ruby_codes *codes, uint64_t key)
{
	return numbered_codes__of_key(&codes->by_number, key);
}

void ruby_codes__forget(struct ruby_codes *codes, const struct u64map *listed)
{
	numbered_codes__forget(&codes->by_number, listed, code__free);
}

int ruby_codes__symbolize(const struct ruby_codes *codes, uint64_t key, struct runtime_symbol *ret)
{
	uint32_t index = FRAME_KEY_INDEX(key);
	const struct code *code;

	if (FRAME_KEY_CODE(key) == RUBY_GC_CODE) {
		*ret = (struct runtime_symbol) { .function = GARBAGE };
		return 0;
	}
	code = find(codes, key);
	if (!code)
		return -ENOENT;
	*ret = (struct runtime_symbol) { .function = code->function, .file = code->file };
	if (index == RUBY_INDEX_UNKNOWN)
		return 0;
	/* The pc is after the current instruction, except for a frame that has not begun to run. */
	ret->line = code->lines.n_entries ? ruby_lines__find(&code->lines, index ? index - 1 : 0)
					  : code->first_line;
	return 0;
}

uint64_t ruby_codes__native(const struct ruby_codes *codes, uint64_t key)
{
	const struct code *code;

	if (FRAME_KEY_CODE(key) == RUBY_GC_CODE)
		return ANCHOR_FUNCTION_UNKNOWN;
	code = find(codes, key);
	return code ? code->native : 0;
}

/* Returns the first reported name if a function has several (Array#map and Array#collect). */
const char *ruby_codes__native_name(const struct ruby_codes *codes, uint32_t pid, uint64_t entry)
{
	const struct code *code;

	if (!entry || entry == ANCHOR_FUNCTION_UNKNOWN)
		return NULL;
	for (size_t i = 0; i < codes->by_number.n; i++) {
		code = codes->by_number.list[i].code;
		if (code->native == entry && code->pid == pid)
			return code->function;
	}
	return NULL;
}
