// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define INVALID	    UINT32_MAX

/* One character of UTF-8 as RFC 3629 has it: shortest form only, no surrogates. Returns its bytes;
 * 1 for an invalid byte, with *ret_code INVALID. `text` must not be at its end. */
static size_t decode(const char *text, uint32_t *ret_code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *s = (const unsigned char *)text;
	size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	uint32_t code = len < 2 ? s[0] : s[0] & (0xff >> (len + 1));
	size_t i;

	*ret_code = INVALID;
	if (len == 0 || s[0] >= 0xf8)
		return 1;
	for (i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80) /* the end of the text, too */
			return 1;
		code = code << 6 | (s[i] & 0x3f);
	}
	if (code < least[len] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 1;
	*ret_code = code;
	return len;
}

static bool is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code <= 0x9f);
}

/* U+2028, U+2029 end a line in some readers; the others turn the direction of what follows. */
static bool is_layout(uint32_t code)
{
	return (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* What is replaced wherever there is a replacement character; the last two XML cannot hold. */
static bool is_unshown(uint32_t code)
{
	return code == INVALID || is_control(code) || is_layout(code) || code == 0xfffe ||
	       code == 0xffff;
}

/* In place of a character that is not shown. */
static const char *stand_in(uint32_t code)
{
	return code == '\t' || code == '\n' || code == '\r' ? " " : REPLACEMENT;
}

static const char *markup_of(uint32_t code)
{
	switch (code) {
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '&':
		return "&amp;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return is_unshown(code) ? stand_in(code) : NULL;
	}
}

void escape__markup(FILE *out, const char *text)
{
	while (*text) {
		uint32_t code;
		size_t len = decode(text, &code);
		const char *markup = markup_of(code);

		if (markup)
			fputs_unlocked(markup, out);
		else
			fwrite_unlocked(text, 1, len, out);
		text += len;
	}
}

void escape__json(FILE *out, const char *text)
{
	putc_unlocked('"', out);
	while (*text) {
		uint32_t code;
		size_t len = decode(text, &code);

		if (is_unshown(code))
			fputs_unlocked(stand_in(code), out);
		else if (code == '"' || code == '\\' || code == '<' || code == '>' || code == '&')
			fprintf(out, "\\u%04x", code);
		else
			fwrite_unlocked(text, 1, len, out);
		text += len;
	}
	putc_unlocked('"', out);
}

void escape__printable(char *text)
{
	char *to = text;

	while (*text) {
		uint32_t code;
		size_t len = decode(text, &code);

		if (is_unshown(code)) {
			*to++ = '?';
		} else {
			memmove(to, text, len);
			to += len;
		}
		text += len;
	}
	*to = '\0';
}
