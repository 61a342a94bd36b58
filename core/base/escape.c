// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/escape.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define INVALID	    UINT32_MAX

/* Decodes one character of UTF-8 by RFC 3629: shortest form only, no surrogates. Returns its length
 * in bytes. An invalid byte has length 1 and sets *@ret_code to INVALID. @text must not be at its
 * end. */
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
		if ((s[i] & 0xc0) != 0x80) /* also the end of the text */
			return 1;
		code = code << 6 | (s[i] & 0x3f);
	}
	if (code < least[len] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 1;
	*ret_code = code;
	return len;
}

/* Characters that are invisible, or that change how their neighbours are shown. From the Unicode
 * Character Database 14.0: the properties Default_Ignorable_Code_Point, Bidi_Control and
 * Noncharacter_Code_Point, and the general categories Cc, Zl, Zp and Cf. Characters of Cf with the
 * property Prepended_Concatenation_Mark are visible and left out. The last two characters of each
 * plane are noncharacters, too, and not in the table. */
static const struct {
	uint32_t first, last;
} unseen[] = {
	{ 0x0000, 0x001f },   /* C0 controls */
	{ 0x007f, 0x009f },   /* delete, C1 controls */
	{ 0x00ad, 0x00ad },   /* soft hyphen */
	{ 0x034f, 0x034f },   /* combining grapheme joiner */
	{ 0x061c, 0x061c },   /* Arabic letter mark */
	{ 0x115f, 0x1160 },   /* Hangul fillers */
	{ 0x17b4, 0x17b5 },   /* Khmer inherent vowels */
	{ 0x180b, 0x180f },   /* Mongolian selectors and separator */
	{ 0x200b, 0x200f },   /* zero-width space and joiners, directional marks */
	{ 0x2028, 0x202e },   /* line and paragraph separators, embeddings, overrides */
	{ 0x2060, 0x206f },   /* word joiner, invisible operators, isolates */
	{ 0x3164, 0x3164 },   /* Hangul filler */
	{ 0xfdd0, 0xfdef },   /* noncharacters */
	{ 0xfe00, 0xfe0f },   /* variation selectors */
	{ 0xfeff, 0xfeff },   /* byte order mark */
	{ 0xffa0, 0xffa0 },   /* halfwidth Hangul filler */
	{ 0xfff0, 0xfffb },   /* interlinear annotation */
	{ 0x13430, 0x13438 }, /* hieroglyph format controls */
	{ 0x1bca0, 0x1bca3 }, /* shorthand format controls */
	{ 0x1d173, 0x1d17a }, /* musical format controls */
	{ 0xe0000, 0xe0fff }, /* tags, further variation selectors */
};

static bool is_unshown(uint32_t code)
{
	size_t low = 0, high = ARRAY_SIZE(unseen), middle;

	if (code >= ' ' && code <= '~')
		return false;
	if (code == INVALID || (code & 0xfffe) == 0xfffe)
		return true;
	while (low < high) {
		middle = (low + high) / 2;
		if (code > unseen[middle].last)
			low = middle + 1;
		else
			high = middle;
	}
	return low < ARRAY_SIZE(unseen) && code >= unseen[low].first;
}

/* Returns the replacement for a character that is not shown. */
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

char *escape__format(const char *fmt, va_list args)
{
	char *text;

	if (vasprintf(&text, fmt, args) < 0)
		return NULL;
	escape__printable(text);
	return text;
}

void escape__line(FILE *out, const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = escape__format(fmt, args);
	va_end(args);
	fprintf(out, "%s\n", text ? text : "(out of memory)");
	free(text);
}
