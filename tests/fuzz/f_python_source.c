// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/python_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "<lambda>", "<genexpr>", "<listcomp>", "f" };
	struct python_blocks blocks;
	char buf[256];

	if (python_scan__blocks((const char *)data, size, &blocks) != 0)
		return 0;
	for (uint32_t line = 0; line < 16; line++)
		python_blocks__qualname(&blocks, names[line % 4], line / 2, buf, sizeof(buf));
	for (size_t i = 0; i < blocks.n && i < 64; i++)
		python_blocks__qualname(&blocks, python_blocks__name(&blocks, &blocks.list[i]),
					blocks.list[i].last_line, buf, sizeof(buf));
	python_blocks__done(&blocks);
	return 0;
}
