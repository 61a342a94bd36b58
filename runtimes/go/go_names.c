// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/go/go_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/util.h"

/* src/runtime/symtab.go and funcdata.h: the number in the tree of inlined calls that is in force,
 * the tree, and its entries. */
#define VALUES_INLINED 2
#define DATA_INLINED   3
#define INLINED_MAX    65536

#define CALL_BYTES_MAX 20

/* struct inlinedCall, up to Go 1.19 and since: its size, offsets of its fields, and of @zeroes
 * bytes of padding. */
static const struct {
	uint32_t bytes, name, parent_pc, zero, zeroes;
} calls[GO_LAYOUTS_N] = {
	[GO_116] = { 20, 12, 16, 3, 1 },
	[GO_118] = { 20, 12, 16, 3, 1 },
	[GO_120] = { 16, 4, 8, 1, 3 },
};

/* One entry of a tree. */
struct call {
	const char *name;
	uint32_t parent_pc; /* offset of the call in the function */
	bool exact;	    /* all bytes are as the linker writes them */
};

static bool read_call(const struct elf_file *file, const struct go_table *table,
		      const struct go_function *function, uint64_t tree, int32_t number,
		      struct call *ret)
{
	static const uint8_t zeroes[CALL_BYTES_MAX];
	const uint32_t bytes = calls[table->layout].bytes;
	uint8_t call[CALL_BYTES_MAX];
	int32_t name, pc;

	if (number < 0 || number >= INLINED_MAX ||
	    elf_file__read(file, tree + (uint64_t)number * bytes, call, bytes))
		return false;
	memcpy(&name, call + calls[table->layout].name, sizeof(name));
	memcpy(&pc, call + calls[table->layout].parent_pc, sizeof(pc));
	if (pc < 0 || (uint64_t)pc >= function->end - function->start)
		return false;
	ret->name = go_table__text(table, table->names_at, name);
	ret->parent_pc = pc;
	ret->exact = ret->name && ret->name[0] && (!name || !ret->name[-1]) &&
		     memcmp(call, zeroes, bytes) != 0 &&
		     !memcmp(call + calls[table->layout].zero, zeroes, calls[table->layout].zeroes);
	return ret->name != NULL;
}

/* --- where the trees are --- */

/* Range of words of struct moduledata (src/runtime/symtab.go) that includes gofunc: at 304 in Go
 * 1.18, 320 from 1.20 on, 344 from 1.27 on. All of these have the same magic number. */
#define MODULE_FROM 256
#define MODULE_N    32

#define CHECKED_MAX    64   /* functions whose trees are checked */
#define CONSIDERED_MAX 4096 /* functions that the search reads */

struct checked {
	struct go_function function;
	uint64_t tree;	  /* from gofunc; up to Go 1.17 an address */
	uint32_t numbers; /* go_function__values() */
};

static bool has_tree(const struct go_table *table, const struct go_function *function,
		     uint64_t *ret_tree, uint32_t *ret_numbers)
{
	return go_function__data(table, function, DATA_INLINED, ret_tree) &&
	       go_function__values(table, function, VALUES_INLINED, ret_numbers);
}

static size_t choose_functions(const struct go_table *table, struct checked ret[CHECKED_MAX])
{
	size_t step = max_of(table->n_functions / CONSIDERED_MAX, (size_t)1), n = 0;

	for (size_t i = 0; i < table->n_functions && n < CHECKED_MAX; i += step)
		if (go_table__function(table, i, &ret[n].function) &&
		    has_tree(table, &ret[n].function, &ret[n].tree, &ret[n].numbers))
			n++;
	return n;
}

/* Returns true if each number of the function leads to an entry of its tree. */
static bool is_tree(const struct elf_file *file, const struct go_table *table,
		    const struct checked *checked, uint64_t data)
{
	struct go_values values = go_values__of(table, &checked->function, checked->numbers);
	struct call call;

	for (size_t i = 0; go_values__next(&values) && !quota__look_at(i); i++)
		if (values.value >= 0 && (!read_call(file, table, &checked->function,
						     data + checked->tree, values.value, &call) ||
					  !call.exact))
			return false;
	return true;
}

int go_names__data(const struct elf_file *file, const struct go_table *table, uint64_t *ret)
{
	struct checked *checked = calloc(CHECKED_MAX, sizeof(*checked));
	size_t n = checked ? choose_functions(table, checked) : 0, n_words = MODULE_N, passed;
	uint64_t words[MODULE_N] = {};
	int n_found = 0;

	*ret = 0;
	if (!checked)
		return -ENOMEM;
	if (!n)
		n_words = 0;
	else if (table->layout == GO_116)
		n_words = 1;
	else if (!go_table__module_words(file, table, MODULE_FROM, words, MODULE_N))
		n_words = 0;
	for (size_t i = 0; i < n_words; i++) {
		if (!words[i] && table->layout != GO_116)
			continue;
		for (passed = 0; passed < n; passed++)
			if (!is_tree(file, table, &checked[passed], words[i]))
				break;
		if (passed < n || (n_found && words[i] == *ret))
			continue;
		n_found++;
		*ret = words[i];
	}
	free(checked);
	if (n_found == 1 || !n)
		return 0;
	*ret = GO_NAMES_NO_DATA;
	return -ENOENT;
}

/* Returns the name as Go prints it: without the type arguments of a generic function. */
static const char *shown(const char *name, char *buf, size_t size)
{
	const char *open = strchr(name, '['), *close = open ? strrchr(name, ']') : NULL;
	size_t len = strlen(name);

	if (!close && (len < 5 || strcmp(name + len - 5, ".abi0") != 0))
		return name;
	if (close)
		snprintf(buf, size, "%.*s[...]%s", (int)min_of(open - name, 400L), name, close + 1);
	else
		snprintf(buf, size, "%.*s", (int)min_of(len - 5, size - 1), name);
	return buf;
}

struct walk {
	const struct elf_file *file;
	const struct go_table *table;
	const struct go_function *function;
	struct go_names_buf *buf;
	struct runtime_symbol *symbols;
	int n;
};

/* Unless @placed, leaves file and line unset: the table's values for @vaddr belong to an inlined
 * function whose name is unreadable. */
static void add(struct walk *walk, const char *name, uint64_t vaddr, bool placed)
{
	const struct go_function *function = walk->function;
	struct runtime_symbol *symbol = &walk->symbols[walk->n];
	char *buf = walk->buf->texts[walk->n++];

	*symbol = (struct runtime_symbol) { .function =
						    shown(name, buf, sizeof(walk->buf->texts[0])) };
	if (!placed)
		return;
	symbol->file = go_table__file(walk->table, function,
				      go_values__at(walk->table, function, function->file, vaddr));
	symbol->line =
		max_of(go_values__at(walk->table, function, function->line, vaddr), (int32_t)0);
}

int go_names__resolve(const struct elf_file *file, const struct go_table *table, uint64_t data,
		      uint64_t vaddr, struct go_names_buf *buf,
		      struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX])
{
	struct go_function function;
	struct walk walk = {
		.file = file, .table = table, .function = &function, .buf = buf, .symbols = ret
	};
	int32_t number = -1;
	uint32_t numbers;
	struct call call;
	uint64_t tree;

	if (!go_table__find(table, vaddr, &function))
		return 0;
	if (has_tree(table, &function, &tree, &numbers))
		number = go_values__at(table, &function, numbers, vaddr);
	while (number >= 0 && walk.n < RUNTIME_SYMBOLS_MAX - 1) {
		if (data == GO_NAMES_NO_DATA || (!data && table->layout != GO_116) ||
		    !read_call(file, table, &function, data + tree, number, &call))
			break;
		/* The place is then that of the call into which it was inlined. */
		add(&walk, call.name, vaddr, true);
		vaddr = function.start + call.parent_pc;
		number = go_values__at(table, &function, numbers, vaddr);
	}
	add(&walk, function.name, vaddr, number < 0);
	return walk.n;
}
