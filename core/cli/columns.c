// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/columns.h"

#include <stdbool.h>
#include <string.h>
#include <wchar.h>

/* the next character, its replacement if it cannot be shown, and its columns */
struct piece {
	const char *text;
	size_t len, taken;
	int columns;
};

static struct piece next_piece(const char *text)
{
	mbstate_t state = {};
	wchar_t wide;
	size_t len = mbrtowc(&wide, text, strlen(text), &state);
	int columns;

	if (!len || len > strlen(text)) /* invalid, or truncated */
		return (struct piece) { "?", 1, 1, 1 };
	columns = wcwidth(wide);
	if (columns < 0)
		return (struct piece) { "?", 1, len, 1 };
	return (struct piece) { text, len, len, columns };
}

int columns__cut(const char *text, int columns, char *buf, size_t size)
{
	size_t at = 0, fits = 0; /* up to `fits` there is room for the mark */
	int taken = 0, fits_taken = 0;

	while (*text) {
		struct piece piece = next_piece(text);

		if (taken + piece.columns > columns || at + piece.len + 1 > size) {
			at = fits;
			taken = fits_taken;
			if (columns > 0 && size > 1) {
				buf[at++] = '~';
				taken++;
			}
			break;
		}
		memcpy(buf + at, piece.text, piece.len);
		at += piece.len;
		taken += piece.columns;
		text += piece.taken;
		if (taken < columns && at + 2 <= size) {
			fits = at;
			fits_taken = taken;
		}
	}
	if (size)
		buf[at] = '\0';
	return taken;
}
