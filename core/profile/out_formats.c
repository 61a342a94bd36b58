// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "core/base/util.h"
#include "core/profile/output.h"

static const struct output_format formats[] = {
	{ "table", output__table, false, false },
	{ "tree", output__tree, false, false },
	{ "folded", output__folded, false, true },
	{ "pprof", output__pprof, true, true },
};

const struct output_format *output__find_format(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (!strcmp(name, formats[i].name))
			return &formats[i];
	return NULL;
}
