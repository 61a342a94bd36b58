// SPDX-License-Identifier: GPL-2.0-or-later
#include <stddef.h>

#include "runtimes/common/v8_label.h"
#include "runtimes/runtime.h"

/* Code of compilers without a runtime of their own: any process may write a perf map or a jitdump
 * file, whose names are shown. V8's names are recognized by their form, as programs other than
 * Node.js contain V8 (Deno). */

static bool jit__label(const char *symbol, char *buf, size_t size, struct runtime_label *ret)
{
	if (v8_label__is(symbol))
		return v8_label__make(symbol, buf, size, ret);
	ret->symbol.function = symbol;
	return true;
}

static const struct runtime_jit jit = {
	.label = jit__label,
};

const struct runtime runtime_jit = {
	.name = "jit",
	.suffix = "_[j]",
	.versions = "perf maps, jitdump",
	.jit = &jit,
};
