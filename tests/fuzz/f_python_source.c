// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "runtimes/python/python_scan.h"
#include "tests/fuzz/fuzz.h"

/* Scans the source of a program, from which qualified names are derived. */
bool target__run(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "<lambda>", "<genexpr>", "<listcomp>", "f" };
	struct python_blocks blocks;
	bool nested = false;
	char buf[256];

	if (python_scan__blocks((const char *)data, size, &blocks) != 0)
		return false;
	for (uint32_t line = 0; line < 16; line++)
		python_blocks__qualname(&blocks, names[line % 4], line / 2, buf, sizeof(buf));
	for (size_t i = 0; i < blocks.n && i < 64; i++) {
		const struct python_block *block = &blocks.list[i];
		const char *name = python_blocks__name(&blocks, block);
		const char *qualname =
			python_blocks__qualname(&blocks, name, block->last_line, buf, sizeof(buf));

		nested |= qualname && !strcmp(qualname, "last.<locals>.<lambda>");
	}
	python_blocks__done(&blocks);
	return nested;
}

void target__seeds(void)
{
	fuzz__seed_text("# -*- coding: utf-8 -*-\n"
			"import x; y = (1,\n  2) \\\n + 3\n"
			"class C(B, metaclass=M):\n"
			"    \"\"\"doc: 'def no():'\"\"\"\n"
			"    @decorate(lambda: 1)\n"
			"    async def f(self, *a, b=[i for i in x]) -> {1: 2}:\n"
			"        r = rb'\\'' + f'{a!r:>{b}} {(lambda: 2)()}'\n"
			"        def inner(): return (j async for j in x if j)\n"
			"        return inner\n"
			"    def g[T](self, /): yield {k: v for k, v in x}\n"
			"def last():\n"
			"    class D: pass\n"
			"    match x:\n"
			"        case [1, _]: return lambda z: z\n");
}
