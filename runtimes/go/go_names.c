// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/go/go_names.h"

#include <stdio.h>
#include <string.h>

#include "core/base/util.h"

/* src/runtime/symtab.go and funcdata.h: the number in the tree of inlined calls that is in force,
 * the tree, and its entries. */
#define VALUES_INLINED 2
#define DATA_INLINED   3
#define INLINED_MAX    65536

/* struct inlinedCall, up to Go 1.19 and since. */
static const struct {
	uint32_t bytes, name, parent_pc;
} calls[GO_LAYOUTS_N] = {
	[GO_116] = { 20, 12, 16 },
	[GO_118] = { 20, 12, 16 },
	[GO_120] = { 16, 4, 8 },
};

/* Offset of gofunc in struct moduledata, src/runtime/symtab.go. */
#define MODULE_GOFUNC_118 304
#define MODULE_GOFUNC_120 320

uint64_t go_names__data(const struct elf_file *file, const struct go_table *table)
{
	size_t gofunc = table->layout == GO_120 ? MODULE_GOFUNC_120 : MODULE_GOFUNC_118;

	return table->layout == GO_116 ? 0 : go_table__module_word(file, table, gofunc);
}

/* As Go itself shows it: what a generic function is made for is left out. */
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
	uint64_t tree; /* 0: it has inlined nothing */
	uint32_t numbers;
	struct go_names_buf *buf;
	struct runtime_symbol *symbols;
	int n;
};

static void add(struct walk *walk, const char *name, uint64_t vaddr)
{
	const struct go_function *function = walk->function;
	int32_t line = go_values__at(walk->table, function, function->line, vaddr);
	char *buf = walk->buf->texts[walk->n];

	walk->symbols[walk->n++] = (struct runtime_symbol) {
		.function = shown(name, buf, sizeof(walk->buf->texts[0])),
		.file = go_table__file(walk->table, function,
				       go_values__at(walk->table, function, function->file, vaddr)),
		.line = max_of(line, 0)
	};
}

/* The call into which the place was inlined; the place is then that of the call. */
static const char *inlined(const struct walk *walk, uint64_t *vaddr)
{
	int32_t number = go_values__at(walk->table, walk->function, walk->numbers, *vaddr), name,
		pc;
	const uint32_t bytes = calls[walk->table->layout].bytes;
	uint8_t call[20];

	if (number < 0 || number >= INLINED_MAX ||
	    elf_file__read(walk->file, walk->tree + (uint64_t)number * bytes, call, bytes))
		return NULL;
	memcpy(&name, call + calls[walk->table->layout].name, sizeof(name));
	memcpy(&pc, call + calls[walk->table->layout].parent_pc, sizeof(pc));
	if (pc < 0 || (uint64_t)pc >= walk->function->end - walk->function->start)
		return NULL;
	*vaddr = walk->function->start + pc;
	return go_table__text(walk->table, walk->table->names_at, name);
}

int go_names__resolve(const struct elf_file *file, const struct go_table *table, uint64_t data,
		      uint64_t vaddr, struct go_names_buf *buf,
		      struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX])
{
	struct go_function function;
	struct walk walk = {
		.file = file, .table = table, .function = &function, .buf = buf, .symbols = ret
	};
	const char *name;
	uint64_t tree;

	if (!go_table__find(table, vaddr, &function))
		return 0;
	if (go_function__data(table, &function, DATA_INLINED, &tree) &&
	    go_function__values(table, &function, VALUES_INLINED, &walk.numbers) &&
	    (data || table->layout == GO_116))
		walk.tree = table->layout == GO_116 ? tree : data + tree;
	while (walk.tree && walk.n < RUNTIME_SYMBOLS_MAX - 1) {
		uint64_t caller = vaddr;

		name = inlined(&walk, &caller);
		if (!name)
			break;
		add(&walk, name, vaddr);
		vaddr = caller;
	}
	add(&walk, function.name, vaddr);
	return walk.n;
}
