// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "probes/usdt_args.h"
#include "tests/fuzz/fuzz.h"

/* Parses the arguments of a probe site alone. */
bool target__run(const uint8_t *data, size_t size)
{
	struct probe_arg args[USDT_ARGS_MAX];
	char *text = malloc(size + 1);
	struct err err = {};
	int n;

	if (!text)
		return false;
	memcpy(text, data, size);
	text[size] = '\0';
	n = usdt_args__parse(text, NULL, 0x1000, args, &err);
	if (n > USDT_ARGS_MAX || (n < 0 && !err.text[0]))
		abort();
	for (int i = 0; i < n; i++) {
		if (!args[i].size || args[i].size > 8 || args[i].scale_log2 > 3)
			abort();
	}
	free(text);
	return n > 0;
}

void target__seeds(void)
{
	fuzz__seed_text("8@%rbp -4@%eax 2@%bp 1@%bpl -1@%dl 4@%r8d -2@%r10w 1@%r15b");
	fuzz__seed_text("8@(%rsp) -4@-296(%rbp) 8@0x10(%r12) 8@16(%rsp,%rax,8) 8@8(,%rcx,2)");
	fuzz__seed_text(" -4@$5 -8@$-5 8@$0xffffffffffffffff  8@$9223372036854775807 ");
}
