// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/common/code_object_text.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/shared.h"
#include "core/base/util.h"

#define UTF8_BYTES_MAX 4 /* per character */
#define REPLACEMENT    0xfffd

/* Returns the number of bytes written, 1 to UTF8_BYTES_MAX. */
static size_t put_utf8(char *to, uint32_t c)
{
	/* A string in the target may hold any code point, also halves of surrogate pairs. */
	if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		c = REPLACEMENT;
	if (c < 0x80) {
		to[0] = c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = 0xc0 | c >> 6;
		to[1] = 0x80 | (c & 0x3f);
		return 2;
	}
	if (c < 0x10000) {
		to[0] = 0xe0 | c >> 12;
		to[1] = 0x80 | (c >> 6 & 0x3f);
		to[2] = 0x80 | (c & 0x3f);
		return 3;
	}
	to[0] = 0xf0 | c >> 18;
	to[1] = 0x80 | (c >> 12 & 0x3f);
	to[2] = 0x80 | (c >> 6 & 0x3f);
	to[3] = 0x80 | (c & 0x3f);
	return 4;
}

static uint32_t get_char(const char *from, size_t i, unsigned int kind)
{
	uint32_t c4;
	uint16_t c2;

	if (kind == 1)
		return (unsigned char)from[i];
	if (kind == 2) {
		memcpy(&c2, from + 2 * i, sizeof(c2));
		return c2;
	}
	memcpy(&c4, from + 4 * i, sizeof(c4));
	return c4;
}

/* Returns one character of UTF-8; advances `at` by its bytes, at least 1. */
static uint32_t get_utf8(const unsigned char *from, size_t size, size_t *at)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char first = from[*at];
	size_t n = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2, i;
	uint32_t c = n == 1 ? first : first & (0xff >> (n + 1));

	(*at)++;
	if ((first >= 0x80 && first < 0xc0) || first >= 0xf8)
		return REPLACEMENT;
	for (i = 1; i < n; i++) {
		if (*at >= size || (from[*at] & 0xc0) != 0x80)
			return REPLACEMENT;
		c = c << 6 | (from[(*at)++] & 0x3f);
	}
	return c < least[n] ? REPLACEMENT : c;
}

/* Copies @from as valid UTF-8, up to a NUL byte or @size bytes. Returns the number of bytes
 * written. */
static size_t copy_utf8(char *to, const char *from, size_t size)
{
	size_t at = 0, bytes = 0;

	while (at < size && from[at])
		bytes += put_utf8(to + bytes, get_utf8((const unsigned char *)from, size, &at));
	return bytes;
}

bool code_object_text__valid(unsigned int kind)
{
	return kind == 0 || kind == 1 || kind == 2 || kind == 4 || kind == CODE_OBJECT_TEXT_UTF8;
}

char *code_object_text__dup(const char *from, size_t room, unsigned int kind, size_t len)
{
	size_t n = min_of(len, kind == CODE_OBJECT_TEXT_UTF8 ? room : room / kind), bytes = 0;
	char *text = malloc(n * UTF8_BYTES_MAX + sizeof("..."));

	if (!text)
		return NULL;
	if (kind == CODE_OBJECT_TEXT_UTF8)
		bytes = copy_utf8(text, from, n);
	else
		for (size_t i = 0; i < n; i++)
			bytes += put_utf8(text + bytes, get_char(from, i, kind));
	strcpy(text + bytes, n < len ? "..." : "");
	return text;
}
