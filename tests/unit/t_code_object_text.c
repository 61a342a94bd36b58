// SPDX-License-Identifier: GPL-2.0-or-later
/* Texts from a target become UTF-8, in any source encoding. */
#include <iconv.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/shared.h"
#include "core/base/util.h"
#include "runtimes/common/code_object_text.h"
#include "tests/tap.h"

#define R "\xef\xbf\xbd" /* U+FFFD, the replacement for an invalid character */

/* Copies the text to memory that ends with it, for ASan. The result is owned by the caller. */
static char *dup_exact(const void *from, size_t room, unsigned int kind, size_t len)
{
	char *exact = malloc(room ? room : 1), *text;

	memcpy(exact, from, room);
	text = code_object_text__dup(exact, room, kind, len);
	free(exact);
	return text;
}

static void check(const void *from, size_t room, unsigned int kind, size_t len, const char *want,
		  const char *what)
{
	char *text = dup_exact(from, room, kind, len);

	is_str(text, want, "%s", what);
	free(text);
}

static void test_utf8(void)
{
	static const struct {
		const char *what, *from, *want;
	} cases[] = {
		{ "nothing", "", "" },
		{ "ASCII, control characters too", "a\x01\x7f", "a\x01\x7f" },
		{ "the first and last of each length",
		  "\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
		  "\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf" },
		{ "continuation bytes alone", "\x80y\xbf", R "y" R },
		{ "bytes that there are not", "\xf8\x88\x80\x80\x80\xfe\xff", R R R R R R R },
		{ "characters cut short", "\xc3y\xe2\x82y\xf0\x9f\x94y", R "y" R "y" R "y" },
		{ "at the end", "y\xf0\x9f\x94", "y" R },
		{ "one byte of it", "y\xe2", "y" R },
		{ "one begins in another", "\xe2\x82\xe2\x82\xac", R "\xe2\x82\xac" },
		{ "longer than need be", "\xc0\xaf|\xc1\xbf|\xe0\x9f\xbf|\xf0\x8f\xbf\xbf",
		  R "|" R "|" R "|" R },
		{ "halves of surrogate pairs", "\xed\xa0\x80|\xed\xbf\xbf|\xed\x9f\xbf",
		  R "|" R "|\xed\x9f\xbf" },
		{ "behind the last", "\xf4\x90\x80\x80|\xf7\xbf\xbf\xbf", R "|" R },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t len = strlen(cases[i].from);

		check(cases[i].from, len, CODE_OBJECT_TEXT_UTF8, len, cases[i].want, cases[i].what);
	}
	check("ab\0cd", 5, CODE_OBJECT_TEXT_UTF8, 5, "ab", "UTF-8 ends at a NUL byte");
	check("\xc3\0x", 3, CODE_OBJECT_TEXT_UTF8, 3, R, "also within a character");
}

static void test_wide(void)
{
	static const uint16_t two[] = { 'a', 0xe9, 0x20ac, 0xd83d, 0xdfff, 0, 0xffff };
	static const uint32_t four[] = { 'a',	   0x1f600, 0xd800,	0xdfff,
					 0x110000, 0,	    UINT32_MAX, 0x10ffff };

	check("caf\xe9\xff", 5, 1, 5, "caf\xc3\xa9\xc3\xbf", "Latin-1");
	check("a\0b", 3, 1, 3, "a" R "b", "with a NUL character");
	check(two, sizeof(two), 2, ARRAY_SIZE(two), "a\xc3\xa9\xe2\x82\xac" R R R "\xef\xbf\xbf",
	      "two bytes per character");
	check(four, sizeof(four), 4, ARRAY_SIZE(four),
	      "a\xf0\x9f\x98\x80" R R R R R "\xf4\x8f\xbf\xbf", "four bytes per character");
}

static void test_cut(void)
{
	static const unsigned int kinds[] = { 1, 2, 4, CODE_OBJECT_TEXT_UTF8 };
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t bytes = kinds[i] == CODE_OBJECT_TEXT_UTF8 ? 1 : kinds[i], n = 32 / bytes, k;
		char want[64];

		memset(text, 0, sizeof(text));
		for (k = 0; k < n; k++)
			text[k * bytes] = 'x';
		memset(want, 'x', n);
		want[n] = 0;
		check(text, 32, kinds[i], n, want, "all that there is room for");
		strcpy(want + n, "...");
		check(text, 32, kinds[i], n + 1, want, "one more");
		check(text, 32, kinds[i], UINT32_MAX, want, "many more");
		check(text, 0, kinds[i], 1, "...", "no room");
		want[n - 1] = 0;
		check(text, 32, kinds[i], n - 1, want, "one less");
	}
	check("x\0\0\0y\0\0", 7, 4, 2, "x...", "room for a character and a half");
	check("xy\xe2\x82", 4, CODE_OBJECT_TEXT_UTF8, 5, "xy" R "...", "cut within a character");
}

/* State of a fixed sequence (linear congruential generator of Numerical Recipes). */
static uint32_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % n;
}

static bool is_utf8(const char *text, size_t size)
{
	iconv_t convert = iconv_open("UTF-32LE", "UTF-8");
	char *from = (char *)text, buf[1024], *to = buf;
	size_t left = size, room = sizeof(buf);
	bool valid = iconv(convert, &from, &left, &to, &room) != (size_t)-1;

	iconv_close(convert);
	return valid;
}

/* Converts random bytes, weighted towards bytes that begin and continue characters. iconv is the
 * oracle. */
static void test_random(void)
{
	size_t unchanged = 0;
	int bad = 0;

	for (int round = 0; round < 20000; round++) {
		static const unsigned int kinds[] = { 1, 2, 4, CODE_OBJECT_TEXT_UTF8,
						      CODE_OBJECT_TEXT_UTF8 };
		unsigned int kind = kinds[round % ARRAY_SIZE(kinds)];
		size_t size = random_below(12), i;
		char bytes[16], *text;

		for (i = 0; i < size; i++)
			bytes[i] = random_below(3) ? 0x80 + random_below(0x80)
						   : 1 + random_below(0x7f);
		text = dup_exact(bytes, size, kind,
				 size / (kind == CODE_OBJECT_TEXT_UTF8 ? 1 : kind));
		bad += !text || !is_utf8(text, strlen(text));
		if (kind == CODE_OBJECT_TEXT_UTF8 && is_utf8(bytes, size)) {
			bad += strlen(text) != size || memcmp(text, bytes, size) != 0;
			unchanged++;
		}
		free(text);
	}
	is_int(bad, 0, "random bytes become UTF-8");
	ok(unchanged > 500, "what is, stays as it is: %zu", unchanged);
}

int main(void)
{
	int valid = 0;

	for (unsigned int kind = 0; kind < 256; kind++)
		valid += code_object_text__valid(kind);
	ok(valid == 5 && code_object_text__valid(0) && code_object_text__valid(1) &&
		   code_object_text__valid(2) && code_object_text__valid(4) &&
		   code_object_text__valid(CODE_OBJECT_TEXT_UTF8),
	   "kinds of text");
	test_utf8();
	test_wide();
	test_cut();
	test_random();
	return tap__done();
}
