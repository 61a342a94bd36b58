// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/jit_labels.h"

#include <string.h>

#include "core/spaces.h"
#include "core/util.h"

static bool is_attached(const struct process *process, int i)
{
	return process->space && process->space->attached & 1U << i;
}

bool jit_labels__know(const struct jit_labels *labels, const struct process *process, int i)
{
	const struct runtime *runtime = labels->runtimes[i];

	return runtime->label && labels->enabled & 1U << i &&
	       (!runtime->detect || is_attached(process, i));
}

bool jit_labels__wanted(const struct jit_labels *labels, const struct process *process)
{
	for (int i = 0; labels->runtimes[i]; i++)
		if (jit_labels__know(labels, process, i))
			return true;
	return false;
}

static bool is_anonymous(const struct mapped *mapped)
{
	return mapped && (!mapped->path[0] || strncmp(mapped->path, "[anon", 5) == 0);
}

bool jit_labels__is_made(const struct mapped *mapped)
{
	static const char *const shared[] = { "/memfd:", "/dev/zero" };
	bool made = is_anonymous(mapped);

	for (size_t i = 0; mapped && i < ARRAY_SIZE(shared); i++)
		made = made || strncmp(mapped->path, shared[i], strlen(shared[i])) == 0;
	return made;
}

const struct runtime *jit_labels__compiler(const struct jit_labels *labels,
					   const struct process *process,
					   const struct mapped *mapped)
{
	bool anonymous = is_anonymous(mapped);

	for (int i = 0; anonymous && labels->runtimes[i]; i++)
		if (is_attached(process, i) && labels->runtimes[i]->jit)
			return labels->runtimes[i];
	return NULL;
}

uint32_t jit_labels__skew(const struct jit_labels *labels, const struct process *process)
{
	for (int i = 0; labels->runtimes[i]; i++)
		if (is_attached(process, i) && labels->runtimes[i]->jitdump_skew)
			return labels->runtimes[i]->jitdump_skew;
	return 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The line of a map's name is where the function begins, that of a jitdump file where the code is:
 * in an inlined function, maybe, of which only the line is known. */
static void add_line(const struct code_symbol *from, struct runtime_symbol *to)
{
	if (!from->line || (to->file && strcmp(base_name(to->file), base_name(from->file)) != 0))
		return;
	to->line = from->line;
	if (!to->file)
		to->file = from->file;
}

int jit_labels__label(const struct jit_labels *labels, const struct process *process,
		      const struct code_symbol *symbol, char *buf, size_t size,
		      struct runtime_label *ret)
{
	for (int i = 0; labels->runtimes[i]; i++) {
		*ret = (struct runtime_label) {};
		if (!jit_labels__know(labels, process, i) ||
		    !labels->runtimes[i]->label(symbol->name, buf, size, ret))
			continue;
		add_line(symbol, &ret->symbol);
		return i;
	}
	return -1;
}
