// SPDX-License-Identifier: GPL-2.0-or-later
/* Names of functions and variables are those of src/runtime/proc.go and runtime2.go of Go 1.16 to
 * 1.27. */
#include "runtimes/go/go_layout.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/util.h"

#define CODE_MAX    4096
#define TARGETS_MAX 64

/* Fields of struct g that follow goid: schedlink, waitsince, waitreason. */
#define GOID_TO_SINCE  16
#define GOID_TO_REASON 24
#define STATUS_TO_GOID 8

struct code {
	uint8_t bytes[CODE_MAX];
	size_t n;
	uint64_t start;
};

static uint32_t number_at(const struct code *code, size_t at)
{
	uint32_t number = 0;

	if (at + sizeof(number) <= code->n)
		memcpy(&number, code->bytes + at, sizeof(number));
	return number;
}

/* Returns the address that an instruction with a 32-bit distance at byte @at refers to, if the
 * distance ends the instruction. */
static uint64_t target_of(const struct code *code, size_t at)
{
	return code->start + at + 4 + (int64_t)(int32_t)number_at(code, at);
}

/* Finds the variable of three words that allgadd appends to: its loads and stores by `mov` refer to
 * all three words, and to no other three adjacent words. */
static uint64_t find_goroutines(const struct code *code)
{
	uint64_t targets[TARGETS_MAX], found = 0;
	size_t n = 0;

	for (size_t i = 0; i + 7 <= code->n && n < TARGETS_MAX; i++) {
		const uint8_t *at = code->bytes + i;

		if ((at[0] & 0xfb) == 0x48 && (at[1] == 0x8b || at[1] == 0x89) &&
		    (at[2] & 0xc7) == 0x05)
			targets[n++] = target_of(code, i + 3);
	}
	for (size_t i = 0; i < n; i++) {
		bool second = false, third = false;

		for (size_t j = 0; j < n; j++) {
			second |= targets[j] == targets[i] + 8;
			third |= targets[j] == targets[i] + 16;
		}
		if (!second || !third || targets[i] == found)
			continue;
		if (found || targets[i] % 8)
			return 0;
		found = targets[i];
	}
	return found;
}

/* Returns true if gopark stores a byte at @offset of a struct. */
static bool stores_byte(const struct code *code, uint32_t offset)
{
	for (size_t i = 0; i + 6 <= code->n; i++)
		if (code->bytes[i] == 0x88 && (code->bytes[i + 1] & 0xc0) == 0x80 &&
		    (code->bytes[i + 1] & 7) != 4 && number_at(code, i + 2) == offset)
			return true;
	return false;
}

/* waitReason.String compares its argument with the number of texts, multiplies it by 16 and adds
 * the array's address. */
static void find_reasons(const struct code *code, struct go_fields *ret)
{
	static const uint8_t shift[] = { 0x48, 0xc1, 0xe1, 0x04, 0x48, 0x8d, 0x15 };
	const uint8_t *at = memmem(code->bytes, code->n, shift, sizeof(shift));
	size_t after = at ? at - code->bytes + sizeof(shift) : 0;

	if (!at || code->n < 2 || code->bytes[0] != 0x3c || after + 4 > code->n)
		return;
	ret->n_reasons = code->bytes[1];
	ret->reasons = target_of(code, after);
}

static bool read_code(const struct elf_file *file, const struct go_function *function,
		      struct code *ret)
{
	ret->start = function->start;
	ret->n = min_of(function->end - function->start, (uint64_t)CODE_MAX);
	return !elf_file__read(file, ret->start, ret->bytes, ret->n);
}

void go_layout__find(const struct elf_file *file, const struct go_table *table,
		     const struct go_places *places, struct go_fields *ret)
{
	uint32_t id = places->goid_at;
	struct go_function function;
	uint64_t goroutines = 0;
	bool parks = false;
	struct code code;

	*ret = (struct go_fields) { .status = id - STATUS_TO_GOID,
				    .id = id,
				    .since = id + GOID_TO_SINCE,
				    .reason = id + GOID_TO_REASON };
	for (size_t i = 0; id && !(goroutines && parks && ret->reasons) && i < table->n_functions &&
			   !quota__look_at(i);
	     i++) {
		if (!go_table__function(table, i, &function) ||
		    strncmp(function.name, "runtime.", 8) != 0)
			continue;
		if (go_function__is(&function, "runtime.allgadd") &&
		    read_code(file, &function, &code))
			goroutines = find_goroutines(&code);
		else if (go_function__is(&function, "runtime.gopark") &&
			 read_code(file, &function, &code))
			parks = stores_byte(&code, ret->reason);
		else if (go_function__is(&function, "runtime.waitReason.String") &&
			 read_code(file, &function, &code))
			find_reasons(&code, ret);
	}
	if (parks && id + GOID_TO_REASON + sizeof(uint64_t) <= GO_GOROUTINE_READ)
		ret->goroutines = goroutines;
}
