// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/node/node_builtins.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/elf/elf_symbols.h"

#define PREFIX "Builtins_"

static bool is_loop(const char *name)
{
	return !fnmatch(PREFIX "InterpreterEntryTrampoline*", name, 0) ||
	       !fnmatch(PREFIX "*Handler", name, 0);
}

static int add_loop(struct node_builtins *builtins, const struct runtime_range *range)
{
	if (array__reserve(&builtins->loops, &builtins->cap_loops, builtins->n_loops + 1,
			   sizeof(*builtins->loops)))
		return -ENOMEM;
	builtins->loops[builtins->n_loops++] = *range;
	return 0;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct runtime_range *left = a, *right = b;

	return left->start < right->start ? -1 : left->start > right->start;
}

/* Adjacent builtins become one range: only alignment lies between them. */
#define ALIGNMENT 64

static void merge_loops(struct node_builtins *builtins)
{
	struct runtime_range *loops = builtins->loops;
	size_t n = 0;

	if (!builtins->n_loops)
		return;
	qsort(loops, builtins->n_loops, sizeof(*loops), compare_ranges);
	for (size_t i = 1; i < builtins->n_loops; i++)
		if (loops[i].start < loops[n].end + ALIGNMENT)
			loops[n].end = max_of(loops[n].end, loops[i].end);
		else
			loops[++n] = loops[i];
	builtins->n_loops = n + 1;
}

int node_builtins__read(const struct elf_file *file, struct node_builtins *ret)
{
	struct elf_symbols symbols;
	int rc = 0;

	memset(ret, 0, sizeof(*ret));
	if (!elf_symbols__open(file, ".symtab", &symbols))
		return 0;
	for (size_t i = 0; !rc && i < symbols.n; i++) {
		struct runtime_range range;
		GElf_Sym sym;
		const char *name = elf_symbols__get(&symbols, i, &sym);

		if (!name || strncmp(name, PREFIX, strlen(PREFIX)) != 0 || !sym.st_size ||
		    sym.st_shndx == SHN_UNDEF)
			continue;
		range = (struct runtime_range) { sym.st_value, sym.st_value + sym.st_size };
		if (range.end < range.start)
			continue;
		if (!ret->all.end || range.start < ret->all.start)
			ret->all.start = range.start;
		ret->all.end = max_of(ret->all.end, range.end);
		if (is_loop(name))
			rc = add_loop(ret, &range);
	}
	merge_loops(ret);
	return rc;
}

void node_builtins__done(struct node_builtins *builtins)
{
	free(builtins->loops);
	memset(builtins, 0, sizeof(*builtins));
}
