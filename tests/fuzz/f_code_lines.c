// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/jvm/jvm_lines.h"
#include "runtimes/jvm/jvm_scopes.h"
#include "runtimes/python/python_lines.h"
#include "runtimes/ruby/ruby_lines.h"
#include "tests/fuzz/fuzz.h"

#define OFFSETS 64

static bool python(enum python_line_format format, const uint8_t *data, size_t size)
{
	bool found = false;

	for (int32_t offset = 0; offset < OFFSETS; offset += 2)
		found |= python_lines__find(format, data, size, 100, offset) == 103;
	python_lines__find(format, data, size, UINT32_MAX, INT32_MAX);
	return found;
}

/* Reads Ruby's lines. The table begins with its number of entries. */
static bool ruby(const uint8_t *data, size_t size)
{
	struct ruby_lines lines = { .entry_size = 8 };
	bool found = false;

	if (!size)
		return false;
	lines.n_entries = min_of((size_t)data[0], (size - 1) / lines.entry_size);
	lines.entries = data + 1;
	lines.positions = data + 1 + lines.n_entries * lines.entry_size;
	lines.positions_size = data + size - lines.positions;
	for (uint32_t position = 0; position < 2 * OFFSETS; position++)
		found |= ruby_lines__find(&lines, position) == 103;
	ruby_lines__find(&lines, UINT32_MAX);
	return found;
}

static bool jvm_lines(bool is_without_zero, const uint8_t *data, size_t size)
{
	struct jvm_stream stream = { .bytes = data,
				     .size = size,
				     .is_without_zero = is_without_zero };
	struct jvm_method_lines *lines = NULL;
	bool found = false;

	if (jvm_lines__decode(&stream, &lines) != 0)
		return false;
	for (uint32_t bci = 0; bci < OFFSETS; bci++)
		found |= jvm_lines__find(lines, bci) == 3;
	free(lines);
	return found;
}

/* Reads scopes of a JVM. A walk from any scope must end. */
static bool jvm_scopes(bool is_without_zero, const uint8_t *data, size_t size)
{
	const struct jvm_scopes scopes = { .data = (uint8_t *)data,
					   .size = size,
					   .is_without_zero = is_without_zero };
	struct jvm_scope_place place;
	bool found = false;

	for (uint32_t scope = 1; scope < OFFSETS; scope++) {
		for (uint32_t at = scope; at && !jvm_scopes__read(&scopes, at, &place);
		     at = place.caller) {
			if (place.caller >= at)
				abort();
			found |= place.caller && place.method == 3;
		}
	}
	return found;
}

enum what { WHAT_RUBY = PYTHON_LINES_LOCATIONS + 1, WHAT_JVM_LINES, WHAT_JVM_SCOPES, WHATS_N };

/* Reads the line tables of code objects, as they are in the target's memory. The first byte selects
 * their kind. */
bool target__run(const uint8_t *data, size_t size)
{
	unsigned int what = size ? data[0] % WHATS_N : WHATS_N;
	bool flag = size && data[0] / WHATS_N % 2;

	if (!size)
		return false;
	data++;
	size--;
	switch (what) {
	case WHAT_RUBY:
		return ruby(data, size);
	case WHAT_JVM_LINES:
		return jvm_lines(flag, data, size);
	case WHAT_JVM_SCOPES:
		return jvm_scopes(flag, data, size);
	default:
		return python((enum python_line_format)what, data, size);
	}
}

/* Writes a seed of each kind, by the documents of its interpreter; see the parsers' headers. */
void target__seeds(void)
{
	static const uint8_t lnotab[] = { PYTHON_LINES_LNOTAB, 0, 1, 6, 2, 4, 0xff, 0, 4, 8, 1 };
	static const uint8_t ranges[] = { PYTHON_LINES_RANGES, 4, 1, 6, 2, 2, 0x80, 4, 1 };
	static const uint8_t locations[] = {
		PYTHON_LINES_LOCATIONS,
		0x80 | 10 << 3 | 1,
		0,
		0, /* short form: one line */
		0x80 | 13 << 3 | 3,
		4,		/* no columns: two lines */
		0x80 | 15 << 3, /* no line */
		0x80 | 14 << 3,
		2,
		0,
		1,
		1, /* long form */
		0x80 | 11 << 3,
		1,
		2, /* one line, columns */
	};
	static const uint8_t jvm[] = { WHAT_JVM_LINES, 1 << 3 | 2, 2 << 3 | 1, 0xff, 10, 4, 0 };
	static const uint8_t scopes[] = { WHAT_JVM_SCOPES, 0, 0, 2, 1, 1, 3, 4, 4, 3, 5 };
	uint8_t ruby_table[1 + 1 + 3 * 8 + 48] = { WHAT_RUBY, 3 };
	const int32_t lines[] = { 101, 103, -1 };
	const uint64_t ranks = 1 | 1 << 7 | 2 << 14 | 3 << 21;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		memcpy(ruby_table + 2 + 8 * i, &lines[i], sizeof(lines[i]));
	memcpy(ruby_table + 2 + 3 * 8, &ranks, sizeof(ranks));
	fuzz__seed(lnotab, sizeof(lnotab));
	fuzz__seed(ranges, sizeof(ranges));
	fuzz__seed(locations, sizeof(locations));
	fuzz__seed(ruby_table, sizeof(ruby_table));
	fuzz__seed(jvm, sizeof(jvm));
	fuzz__seed(scopes, sizeof(scopes));
}
