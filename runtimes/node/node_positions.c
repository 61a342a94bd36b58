// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/node/node_positions.h"

/* Numbers of seven bits a byte, the lowest first; the top bit says that more follow
 * (deps/v8/src/base/vlq.h). */
struct numbers {
	const uint8_t *at, *end;
};

static bool take_number(struct numbers *numbers, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; numbers->at < numbers->end && shift < 64; shift += 7) {
		uint8_t byte = *numbers->at++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

/* Reads a number that has its sign in the lowest bit. */
static bool take_signed(struct numbers *numbers, int64_t *ret)
{
	uint64_t value;

	if (!take_number(numbers, &value))
		return false;
	*ret = (int64_t)(value >> 1 ^ -(value & 1));
	return true;
}

/* Reads the distance of an entry's code from the entry before. The number's sign says
 * whether a statement begins there. Newer versions have two bits instead: one for that, and one for
 * places where a debugger may stop. */
static bool take_distance(struct numbers *numbers, bool with_bits, uint64_t *ret)
{
	int64_t distance;

	if (with_bits) {
		if (!take_number(numbers, ret))
			return false;
		*ret >>= 2;
		return true;
	}
	if (!take_signed(numbers, &distance))
		return false;
	*ret = (uint64_t)(distance < 0 ? -(distance + 1) : distance);
	return true;
}

/* Each entry has two differences to the entry before: that of the code offset, which starts from
 * -1, and that of the position. */
bool node_positions__find(const struct node_positions *positions, uint32_t offset, uint64_t *ret)
{
	struct numbers numbers = { positions->table, positions->table + positions->size };
	uint64_t at = UINT64_MAX, found = 0, distance;
	int64_t position;
	bool any = false;

	while (take_distance(&numbers, positions->with_bits, &distance)) {
		at += distance;
		if ((int64_t)at > (int64_t)offset || !take_signed(&numbers, &position))
			break;
		found += (uint64_t)position;
		any = true;
	}
	*ret = found;
	return any;
}

enum { PREFIX_WIDE, PREFIX_EXTRA_WIDE, PREFIX_DEBUG_WIDE, PREFIX_DEBUG_EXTRA_WIDE, PREFIXES_N };

/* Returns the bytes of the bytecode at @at with its prefix, or 0 if there is no bytecode. */
static size_t bytecode_size(const struct node_bytecodes *bytecodes, size_t at)
{
	uint8_t code = bytecodes->code[at];
	size_t row = 0, prefix = 0;

	if (code < PREFIXES_N) {
		row = code == PREFIX_WIDE || code == PREFIX_DEBUG_WIDE ? 1 : 2;
		prefix = 1;
		if (at + 1 >= bytecodes->n)
			return 0;
		code = bytecodes->code[at + 1];
	}
	if (code >= bytecodes->n_sizes)
		return 0;
	return prefix + bytecodes->sizes[row * bytecodes->n_sizes + code];
}

bool node_positions__bytecode(const uint8_t *table, size_t size,
			      const struct node_bytecodes *bytecodes, uint32_t offset,
			      uint32_t *ret)
{
	struct numbers numbers = { table, table + size };
	uint64_t end = 0, length;
	size_t at = 0, bytes;

	/* The code before the first bytecode has a length, too. */
	if (!take_number(&numbers, &length))
		return false;
	end = length;
	while (at < bytecodes->n && take_number(&numbers, &length)) {
		end += length;
		if (offset < end) {
			*ret = at;
			return true;
		}
		bytes = bytecode_size(bytecodes, at);
		if (!bytes)
			return false;
		at += bytes;
	}
	return false;
}
