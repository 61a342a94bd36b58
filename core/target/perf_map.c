// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/perf_map.h"

#include <errno.h>
#include <string.h>

#include "core/base/util.h"

#define BLOCK_BYTES	   (256 * 1024) /* longer lines are skipped */
#define LINE_NUMBERS_BYTES 64		/* maximum length in front of a name */

/* Parses the number at @at. Returns the first character after the number, or NULL. */
static const char *parse_hex(const char *at, const char *end, uint64_t *ret)
{
	static const uint8_t digits[256] = {
		['0'] = 1,  ['1'] = 2,	['2'] = 3,  ['3'] = 4,	['4'] = 5,  ['5'] = 6,
		['6'] = 7,  ['7'] = 8,	['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
		['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
		['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
	};
	const char *first;
	uint64_t value = 0;

	if (end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
		at += 2;
	for (first = at; at < end && digits[(uint8_t)*at]; at++) {
		if (value >> 60)
			return NULL;
		value = value << 4 | (digits[(uint8_t)*at] - 1);
	}
	*ret = value;
	return at > first ? at : NULL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Skips at least one blank. Returns NULL if there is none. */
static const char *skip_blanks(const char *at, const char *end)
{
	if (!at || at == end || !is_blank(*at))
		return NULL;
	while (at < end && is_blank(*at))
		at++;
	return at;
}

bool perf_map__parse_line(const char *line, size_t len, struct perf_map_line *ret)
{
	const char *end = line + len, *at = line;

	at = skip_blanks(parse_hex(at, end, &ret->start), end);
	if (at)
		at = parse_hex(at, end, &ret->size);
	/* one blank only: a name may begin with a blank */
	if (!at || at == end || !is_blank(*at))
		return false;
	at++;
	if (end > at && end[-1] == '\r')
		end--;
	ret->name = at;
	ret->name_len = end - at;
	return at - line <= LINE_NUMBERS_BYTES && ret->name_len && ret->size &&
	       ret->size <= UINT32_MAX && !(ret->start >> 63) &&
	       !((ret->start + ret->size - 1) >> 63);
}

/* Returns the bytes of complete lines in the block, or an error of jit_index__add(). */
static int64_t read_block(const char *block, size_t n, uint64_t offset, uint64_t since_ns,
			  struct jit_index *index, struct perf_map_counts *counts)
{
	const char *line = block, *newline;

	for (; (newline = memchr(line, '\n', block + n - line)); line = newline + 1) {
		struct perf_map_line parsed;
		int rc = -EBADMSG;

		if (newline == line)
			continue;
		if (perf_map__parse_line(line, newline - line, &parsed))
			rc = jit_index__add(index, &(struct jit_entry) {
							   .start = parsed.start,
							   .size = parsed.size,
							   .since_ns = since_ns,
							   .text = offset + (line - block) + 1,
						   });
		if (rc && rc != -EBADMSG)
			return rc;
		counts->symbols += !rc;
		counts->skipped += !!rc;
	}
	return line - block;
}

int64_t perf_map__read(struct jit_file *file, uint64_t max, uint64_t since_ns,
		       struct jit_index *index, struct perf_map_counts *counts)
{
	uint64_t offset = file->done, start = offset;
	char *block = malloc(BLOCK_BYTES);
	int64_t taken = 0;
	size_t n;

	if (!block)
		return -ENOMEM;
	file->refused = 0;
	while (taken >= 0 && offset - start < max) {
		n = jit_file__read(file, offset, block, BLOCK_BYTES);
		taken = read_block(block, n, offset, since_ns, index, counts);
		if (!taken && n == BLOCK_BYTES) {
			counts->skipped++;
			taken = n; /* the rest of that line hardly parses as a line */
		}
		if (taken <= 0)
			break;
		offset += taken;
		if (offset >= JIT_FILE_MAX)
			taken = -ENOSPC;
	}
	free(block);
	jit_file__take(file, offset);
	return taken < 0 ? taken : (int64_t)(offset - start);
}

bool perf_map__name(struct jit_file *file, const struct jit_entry *entry, char *buf, size_t size)
{
	char line[LINE_NUMBERS_BYTES + 4096];
	struct perf_map_line parsed;
	const char *newline;
	size_t n, len;

	n = min_of(sizeof(line), size + LINE_NUMBERS_BYTES);
	n = jit_file__read(file, entry->text - 1, line, n);
	newline = memchr(line, '\n', n);
	n = newline ? (size_t)(newline - line) : n;
	if (!perf_map__parse_line(line, n, &parsed) || parsed.start != entry->start ||
	    parsed.size != entry->size)
		return false;
	len = min_of(parsed.name_len, size - 1);
	memcpy(buf, parsed.name, len);
	buf[len] = '\0';
	return true;
}
