// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "core/elf/disassembly.h"
#include "tests/fuzz/fuzz.h"

#define START 0x401000

struct taken {
	uint64_t next;
	size_t calls; /* calls of other places */
};

static int take(void *ctx, const struct instruction *instruction)
{
	struct taken *taken = ctx;

	if (instruction->address != taken->next || !instruction->size || !*instruction->text)
		abort();
	taken->next += instruction->size;
	taken->calls += instruction->target && !strncmp(instruction->text, "call", 4);
	return 0;
}

/* Disassembles machine code. Instructions must follow each other and cover all of it, for any
 * input. */
bool target__run(const uint8_t *data, size_t size)
{
	struct taken taken = { .next = START };

	if (disassembly__run(data, size, START, take, &taken) || taken.next != START + size)
		abort();
	return taken.calls;
}

void target__seeds(void)
{
	static const uint8_t calls[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xe8, 0x10, 0, 0, 0, 0xc3 };
	static const uint8_t vectors[] = { 0x62, 0xf1, 0xfd, 0x48, 0x6f, 0x06, 0xc4, 0xe2,
					   0xf1, 0xf7, 0xc0, 0xe8, 0,	 0,    0,    0x80 };

	fuzz__seed(calls, sizeof(calls));
	fuzz__seed(vectors, sizeof(vectors));
	fuzz__seed_elf("-O1", "int f(int n); int main(void) { return f(1) + f(2); }\n"
			      "__attribute__((noinline)) int f(int n) { return n * 3; }\n");
}
