// SPDX-License-Identifier: GPL-2.0-or-later
/* Names of targets are cut to the columns of a terminal, for any characters. */
#include "core/cli/columns.h"

#include <locale.h>
#include <string.h>

#include "tests/tap.h"

static void check(const char *text, int columns, size_t size, const char *want, int want_columns)
{
	char buf[64];
	int got;

	memset(buf, 'x', sizeof(buf));
	got = columns__cut(text, columns, buf, size);
	is_str(buf, want, "'%s' of %d columns and %d bytes", want, columns, (int)size);
	is_int(got, want_columns, "its columns");
	ok(buf[size] == 'x', "nothing behind the buffer");
}

int main(void)
{
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	check("", 5, 60, "", 0);
	check("abc", 5, 60, "abc", 3);
	check("abc", 3, 60, "abc", 3);
	check("abcd", 3, 60, "ab~", 3);
	check("abcd", 1, 60, "~", 1);
	check("abcd", 0, 60, "", 0);
	check("abcd", 9, 4, "ab~", 3);
	check("abcd", 9, 5, "abcd", 4);
	check("a", 9, 1, "", 0);
	check("für", 3, 60, "für", 3);
	check("日本語", 6, 60, "日本語", 6);
	check("日本語", 5, 60, "日本~", 5);
	check("日本語", 4, 60, "日~", 3);
	check("日本", 9, 5, "日~", 3);
	check("e\u0301x", 2, 60, "e\u0301x", 2);
	check("a\xff\xe6\x97", 9, 60, "a???", 4);
	check("a\033[2Jb\n", 9, 60, "a?[2Jb?", 7);
	setlocale(LC_CTYPE, "C");
	check("für", 9, 60, "f??r", 4);
	return tap__done();
}
