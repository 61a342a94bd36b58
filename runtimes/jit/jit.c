// SPDX-License-Identifier: GPL-2.0-or-later
#include <stddef.h>

#include "runtimes/common/v8_label.h"
#include "runtimes/runtime.h"

/* Code of compilers that no other entry knows: any process may write a perf map or a jitdump file.
 * What these call it is all that is known. V8's names are recognised by their form, as programs
 * other than Node.js have V8 (Deno). */

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
