// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "core/base/util.h"
#include "core/out/output.h"

static const struct output_format formats[] = {
	{ .name = "table", .write = output__table, .diff = true },
	{ .name = "tree", .write = output__tree, .diff = true },
	{ .name = "json", .write = output__json, .diff = true },
	{ .name = "markdown", .write = output__markdown, .diff = true },
	{ .name = "folded", .write = output__folded, .bare = true, .diff = true },
	{ .name = "pprof",
	  .write = output__pprof,
	  .binary = true,
	  .bare = true,
	  .threads = true,
	  .tasks = true,
	  .events = true },
	{ .name = "perf",
	  .write = output__perf,
	  .threads = true,
	  .events = true,
	  .instants = true },
	{ .name = "dot", .write = output__dot, .bare = true },
	{ .name = "firefox",
	  .write = output__firefox,
	  .bare = true,
	  .threads = true,
	  .events = true,
	  .instants = true },
	{ .name = "otlp",
	  .write = output__otlp,
	  .binary = true,
	  .bare = true,
	  .threads = true,
	  .events = true },
	{ .name = "chrome",
	  .write = output__chrome,
	  .bare = true,
	  .threads = true,
	  .events = true,
	  .instants = true },
	{ .name = "speedscope",
	  .write = output__speedscope,
	  .bare = true,
	  .threads = true,
	  .events = true },
};

const struct output_format *output__find_format(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (!strcmp(name, formats[i].name))
			return &formats[i];
	return NULL;
}
