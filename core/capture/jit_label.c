// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/jit_label.h"

#include <string.h>

#include "core/target/compiled_code.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Sets the line. The line in a map's name is that of the function's start. The line in a jitdump
 * file is that of the code, which may be in an inlined function whose other properties are
 * unknown. */
static void add_line(const struct jit_symbol *from, struct runtime_symbol *to)
{
	if (!from->line || (to->file && strcmp(base_name(to->file), base_name(from->file)) != 0))
		return;
	to->line = from->line;
	if (!to->file)
		to->file = from->file;
}

int jit_label__of(const struct process *process, const struct jit_symbol *symbol, char *buf,
		  size_t size, struct runtime_label *ret)
{
	const struct runtime *const *runtimes = process->runtimes->list;

	for (int i = 0; runtimes[i]; i++) {
		*ret = (struct runtime_label) {};
		if (!compiled_code__has_names_of(process, i) ||
		    !runtimes[i]->jit->label(symbol->name, buf, size, ret))
			continue;
		add_line(symbol, &ret->symbol);
		return i;
	}
	return -1;
}
