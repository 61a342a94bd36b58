// SPDX-License-Identifier: GPL-2.0-or-later
/* The decoders of line tables. The oracle is the list of lines that each CPython on this machine
 * prints for its own code objects (tests/tools/dump_line_tables.py). Also broken tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/python/python_lines.h"
#include "tests/tap.h"
#include "tests/unit/pythons.h"

#define DUMP	   "tests/tools/dump_line_tables.py"
#define UNIT_BYTES 2
#define WRONG_MAX  10 /* number of errors printed in full */

static const char *const formats[] = {
	[PYTHON_LINES_LNOTAB] = "lnotab",
	[PYTHON_LINES_RANGES] = "ranges",
	[PYTHON_LINES_LOCATIONS] = "locations",
};

struct totals {
	enum python_line_format format;
	size_t codes, units, wrong;
	size_t without_line, backwards; /* number of such units, which the tables must contain */
	size_t broken;			/* number of tables tried */
};

/* Parses @hex; "-" is an empty table. */
static bool parse_hex(const char *hex, uint8_t **ret, size_t *ret_size)
{
	size_t n = strlen(hex) / 2, i = 0;
	uint8_t *table = malloc(n ? n : 1);

	while (table && i < n && sscanf(hex + 2 * i, "%2hhx", &table[i]) == 1)
		i++;
	if (!table || i < n || (!n && strcmp(hex, "-"))) {
		free(table);
		return false;
	}
	*ret = table;
	*ret_size = n;
	return true;
}

static void check_code(const char *text, const char *name, const uint8_t *table, size_t size,
		       uint32_t first_line, const char *lines, struct totals *totals)
{
	size_t unit = 0, wrong = totals->wrong;
	uint32_t before = first_line;
	char *end;

	for (; *lines && *lines != '\n'; lines = *end == ',' ? end + 1 : end, unit++) {
		uint32_t want = strtoul(lines, &end, 10);
		uint32_t got = python_lines__find(totals->format, table, size, first_line,
						  UNIT_BYTES * unit);

		if (end == lines)
			break;
		totals->without_line += !want;
		totals->backwards += want && want < before;
		before = want ? want : before;
		if (got != want && totals->wrong++ < WRONG_MAX)
			fprintf(stderr, "# %s +%zu: line %u, not %u\n", name, unit, got, want);
	}
	if (totals->format != PYTHON_LINES_LNOTAB &&
	    python_lines__find(totals->format, table, size, first_line, UNIT_BYTES * unit) != 0 &&
	    totals->wrong++ < WRONG_MAX)
		fprintf(stderr, "# %s: the table goes on after unit %zu\n", name, unit);
	if (totals->wrong != wrong && wrong < WRONG_MAX)
		fprintf(stderr, "# of: %s", text);
	totals->units += unit;
	totals->codes++;
}

/* Decodes broken tables. Any line is right as long as no byte outside the table is read (ASan). */
static void check_broken(uint8_t *table, size_t size, uint32_t first_line, struct totals *totals)
{
	static uint32_t random = 1;

	for (int i = 0; size && i < 4; i++) {
		uint32_t at = (random = random * 1664525 + 1013904223) >> 8;
		size_t cut = at % size;
		uint8_t *copy = malloc(cut + 1);

		if (!copy)
			return;
		memcpy(copy, table, cut + 1);
		copy[(at >> 3) % (cut + 1)] ^= 1 << (at >> 20 & 7);
		copy[cut] = at >> 12;
		for (int32_t offset = -2; offset < 1000; offset += 97)
			if (python_lines__find(totals->format, copy, cut + 1, first_line, offset) >
			    INT32_MAX)
				totals->wrong++;
		free(copy);
		totals->broken++;
	}
}

static void check_line(const char *text, struct totals *totals)
{
	char *copy = strdup(text), *save = NULL;
	char *name = strtok_r(copy, " ", &save), *first = strtok_r(NULL, " ", &save);
	char *hex = strtok_r(NULL, " ", &save), *lines = strtok_r(NULL, " ", &save);
	uint32_t first_line;
	uint8_t *table;
	size_t size;

	if (!lines || !parse_hex(hex, &table, &size)) {
		fprintf(stderr, "# '%s' is no line of a dump\n", text);
		totals->wrong++;
		goto out;
	}
	first_line = strtoul(first, NULL, 10);
	check_code(text, name, table, size, first_line, lines, totals);
	check_broken(table, size, first_line, totals);
	free(table);
out:
	free(copy);
}

static bool read_format(FILE *pipe, enum python_line_format *ret)
{
	char name[16] = "";

	if (fscanf(pipe, "%15s ", name) == 1)
		for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
			if (!strcmp(name, formats[i])) {
				*ret = i;
				return true;
			}
	return false;
}

static void check_python(const struct python *python)
{
	struct totals totals = { 0 };
	char command[512], *text = NULL;
	size_t cap = 0;
	FILE *pipe;

	snprintf(command, sizeof(command), "%s -I -W ignore " DUMP, python->command);
	pipe = popen(command, "r");
	ok(pipe && read_format(pipe, &totals.format), "%s: tells its format", python->command);
	while (pipe && getline(&text, &cap, pipe) > 0)
		check_line(text, &totals);
	free(text);
	is_int(pipe ? pclose(pipe) : -1, 0, "%s: dumps its line tables", python->command);
	is_int(totals.wrong, 0, "%s: lines of %zu instructions in %zu code objects",
	       python->command, totals.units, totals.codes);
	/* Lines decrease since 3.8, which gives a call the line of its start. */
	ok(totals.units > 50000 && (python->minor < 8 || totals.backwards > 500) &&
		   (totals.format == PYTHON_LINES_LNOTAB || totals.without_line > 10),
	   "%s: %s, %zu without a line, %zu go backwards, %zu broken tables tried", python->command,
	   formats[totals.format], totals.without_line, totals.backwards, totals.broken);
}

struct row {
	enum python_line_format format;
	const char *what;
	uint8_t table[16];
	size_t size;
	int32_t offset;
	uint32_t line; /* if the first line is 100 */
};

#define LNOTAB	  PYTHON_LINES_LNOTAB
#define RANGES	  PYTHON_LINES_RANGES
#define LOCATIONS PYTHON_LINES_LOCATIONS

static const struct row rows[] = {
	{ LOCATIONS, "empty table", { 0 }, 0, 0, 0 },
	{ LOCATIONS, "before the first instruction", { 0x80 | 10 << 3 }, 1, -2, 100 },
	{ LOCATIONS, "no start of an entry", { 0x7f, 0x12, 0 }, 3, 0, 0 },
	{ LOCATIONS, "one line down", { 0x80 | 11 << 3, 1, 2 }, 3, 0, 101 },
	{ LOCATIONS, "second unit of an entry", { 0x80 | 12 << 3 | 1, 1, 2 }, 3, 2, 102 },
	{ LOCATIONS, "past the end", { 0x80 | 12 << 3 | 1, 1, 2 }, 3, 4, 0 },
	{ LOCATIONS, "three lines up", { 0x80 | 13 << 3, 7 }, 2, 0, 97 },
	{ LOCATIONS, "no columns, two bytes", { 0x80 | 13 << 3, 64 | 2, 5 }, 3, 0, 261 },
	{ LOCATIONS, "up to above line 0", { 0x80 | 13 << 3, 64 | 63, 63 }, 3, 0, 0 },
	{ LOCATIONS, "number cut off", { 0x80 | 14 << 3, 64 | 2 }, 2, 0, 101 },
	{ LOCATIONS,
	  "number that does not end, nor its entry",
	  { 0x80 | 13 << 3, 127, 127, 127, 127, 127, 127, 127, 127, 127, 0 },
	  11,
	  0,
	  0 },
	{ LOCATIONS, "none", { 0x80 | 15 << 3 }, 1, 0, 0 },
	{ LOCATIONS, "far offset", { 0x80 | 10 << 3 | 7 }, 1, INT32_MAX, 0 },

	{ RANGES, "empty table", { 0 }, 0, 0, 0 },
	{ RANGES, "before the first instruction", { 4, 1 }, 2, -2, 100 },
	{ RANGES, "last byte of a range", { 4, 1, 4, 1 }, 4, 3, 101 },
	{ RANGES, "first byte of the next", { 4, 1, 4, 1 }, 4, 4, 102 },
	{ RANGES, "no line", { 4, 1, 4, 0x80, 2, 1 }, 6, 6, 0 },
	{ RANGES, "line counts on after no line", { 4, 1, 4, 0x80, 2, 1 }, 6, 8, 102 },
	{ RANGES, "127 lines up", { 4, 0x81, 4, 30 }, 4, 5, 3 },
	{ RANGES, "up to above line 0", { 4, 0x81 }, 2, 0, 0 },
	{ RANGES, "empty ranges add lines", { 0, 127, 0, 127, 2, 1 }, 6, 1, 355 },
	{ RANGES, "past the end", { 4, 1 }, 2, 4, 0 },
	{ RANGES, "half an entry", { 4, 1, 4 }, 3, 4, 0 },

	{ LNOTAB, "empty table", { 0 }, 0, 0, 100 },
	{ LNOTAB, "before the first instruction", { 0, 1 }, 2, -2, 100 },
	{ LNOTAB, "before the first step", { 4, 1 }, 2, 3, 100 },
	{ LNOTAB, "first step", { 4, 1 }, 2, 4, 101 },
	{ LNOTAB, "long jump", { 255, 0, 45, 127, 0, 1, 2, 1 }, 8, 301, 228 },
	{ LNOTAB, "long jump not yet made", { 255, 0, 45, 127, 0, 1 }, 6, 299, 100 },
	{ LNOTAB, "back", { 6, 3, 6, 0xfd }, 4, 12, 100 },
	{ LNOTAB, "past the end", { 6, 3, 6, 0xfd }, 4, INT32_MAX, 100 },
	{ LNOTAB, "up to above line 0", { 0, 0x80 }, 2, 0, 0 },
	{ LNOTAB, "half an entry", { 4, 1, 4 }, 3, 9, 101 },
};

int main(void)
{
	struct pythons pythons;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];

		is_int(python_lines__find(row->format, row->table, row->size, 100, row->offset),
		       row->line, "%s", row->what);
	}
	pythons__find(&pythons);
	for (size_t i = 0; i < pythons.n; i++)
		check_python(&pythons.list[i]);
	if (!pythons.n)
		tap__skip("no CPython found", "lines of real code objects");
	return tap__done();
}
