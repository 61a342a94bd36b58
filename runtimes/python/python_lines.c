// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/python/python_lines.h"

#define RANGE_BYTES 2 /* an entry of the formats before 3.11 */
#define RANGE_NONE  (-128)

/* PYTHON_LINES_LOCATIONS: one entry per range of code units. Only its first byte has ENTRY_START
 * set. That byte has the kind in bits 3-6, and the range's length in units, less one, in bits 0-2.
 * The line is stored as the difference from the previous entry's line. The rest (columns, end line)
 * is skipped. */
#define ENTRY_START 0x80
#define UNIT_BYTES  2

enum {			   /* kinds; below KIND_ONE_LINE: short forms, on the same line */
       KIND_ONE_LINE = 10, /* KIND_ONE_LINE + n: n lines further down, 0 to 2 */
       KIND_NO_COLUMNS = 13,
       KIND_LONG = 14,
       KIND_NONE = 15,
};

struct cursor {
	const uint8_t *at, *end;
};

/* Six bits per byte, the lowest first; bit 6: more follow. */
static uint32_t read_varint(struct cursor *cursor)
{
	uint32_t value = 0;

	for (unsigned int shift = 0; cursor->at < cursor->end && shift < 32; shift += 6) {
		uint8_t byte = *cursor->at;

		if (byte & ENTRY_START)
			break;
		cursor->at++;
		value |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value;
}

/* The sign is in the lowest bit. */
static int64_t read_svarint(struct cursor *cursor)
{
	uint32_t value = read_varint(cursor);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* Reads the line difference behind the first byte of an entry of this kind. */
static int64_t read_line_delta(struct cursor *cursor, unsigned int kind)
{
	if (kind == KIND_NO_COLUMNS || kind == KIND_LONG)
		return read_svarint(cursor);
	if (kind >= KIND_ONE_LINE && kind < KIND_NO_COLUMNS)
		return kind - KIND_ONE_LINE;
	return 0;
}

/* Deltas may add up to anything in a broken table. */
static uint32_t to_line(int64_t line)
{
	return line < 0 || line > INT32_MAX ? 0 : line;
}

static uint32_t find_location(struct cursor cursor, int64_t line, int32_t offset)
{
	int64_t end = 0;

	while (cursor.at < cursor.end) {
		uint8_t first = *cursor.at++;
		unsigned int kind = first >> 3 & 15;

		if (!(first & ENTRY_START))
			continue;
		line += read_line_delta(&cursor, kind);
		end += UNIT_BYTES * ((first & 7) + 1);
		if (offset < end)
			return kind == KIND_NONE ? 0 : to_line(line);
	}
	return 0;
}

/* Entries: length in bytes, difference of lines or RANGE_NONE. */
static uint32_t find_range(struct cursor cursor, int64_t line, int32_t offset)
{
	for (int64_t end = 0; cursor.end - cursor.at >= RANGE_BYTES; cursor.at += RANGE_BYTES) {
		int8_t delta = cursor.at[1];

		line += delta == RANGE_NONE ? 0 : delta;
		end += cursor.at[0];
		if (offset < end)
			return delta == RANGE_NONE ? 0 : to_line(line);
	}
	return 0;
}

/* Entries: bytes since the entry before it, difference of lines from there on. */
static uint32_t find_lnotab(struct cursor cursor, int64_t line, int32_t offset)
{
	for (int64_t start = 0; cursor.end - cursor.at >= RANGE_BYTES; cursor.at += RANGE_BYTES) {
		start += cursor.at[0];
		if (start > offset)
			break;
		line += (int8_t)cursor.at[1];
	}
	return to_line(line);
}

uint32_t python_lines__find(enum python_line_format format, const uint8_t *table, size_t size,
			    uint32_t first_line, int32_t offset)
{
	struct cursor cursor = { .at = table, .end = table + size };

	if (offset < 0)
		return first_line;
	switch (format) {
	case PYTHON_LINES_LNOTAB:
		return find_lnotab(cursor, first_line, offset);
	case PYTHON_LINES_RANGES:
		return find_range(cursor, first_line, offset);
	case PYTHON_LINES_LOCATIONS:
		return find_location(cursor, first_line, offset);
	}
	return 0;
}
