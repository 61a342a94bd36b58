// SPDX-License-Identifier: GPL-2.0-or-later
/* The location table decoder against what each CPython 3.11 or later on this machine says about
 * its own code objects (tests/tools/dump_line_tables.py), and against broken tables. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "core/util.h"
#include "runtimes/python_lines.h"
#include "tests/tap.h"

#define DUMP	      "tests/tools/dump_line_tables.py"
#define EXIT_NOT_OURS 3
#define UNIT_BYTES    2

struct totals {
	size_t codes, units, wrong;
	size_t without_line, backwards; /* of units: what the tables must have had in them */
	size_t broken;			/* tables tried */
};

static size_t parse_hex(const char *hex, uint8_t **ret)
{
	size_t n = strlen(hex) / 2;

	*ret = malloc(n ? n : 1);
	for (size_t i = 0; *ret && i < n; i++)
		sscanf(hex + 2 * i, "%2hhx", &(*ret)[i]);
	return *ret ? n : 0;
}

static void check_code(const char *name, const uint8_t *table, size_t size, uint32_t first_line,
		       const char *lines, struct totals *totals)
{
	uint32_t before = first_line;
	size_t unit = 0;
	char *end;

	for (; *lines && *lines != '\n'; lines = *end == ',' ? end + 1 : end, unit++) {
		uint32_t want = strtoul(lines, &end, 10);
		uint32_t got = python_lines__find(table, size, first_line, UNIT_BYTES * unit);

		if (end == lines)
			break;
		totals->without_line += !want;
		totals->backwards += want && want < before;
		before = want ? want : before;
		if (got != want && totals->wrong++ < 10)
			fprintf(stderr, "# %s +%zu: line %u, not %u\n", name, unit, got, want);
	}
	if (python_lines__find(table, size, first_line, UNIT_BYTES * unit) != 0) {
		fprintf(stderr, "# %s: the table goes on after unit %zu\n", name, unit);
		totals->wrong++;
	}
	totals->units += unit;
	totals->codes++;
}

/* Any result is right as long as nothing outside the table is read (ASan) and it is a line. */
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
			if (python_lines__find(copy, cut + 1, first_line, offset) > INT32_MAX)
				totals->wrong++;
		free(copy);
		totals->broken++;
	}
}

static void check_line(char *text, struct totals *totals)
{
	char *save, *name = strtok_r(text, " ", &save), *first = strtok_r(NULL, " ", &save);
	char *hex = strtok_r(NULL, " ", &save), *lines = strtok_r(NULL, " ", &save);
	uint32_t first_line;
	uint8_t *table;
	size_t size;

	if (!lines) {
		fprintf(stderr, "# '%s' is no line of a dump\n", text);
		totals->wrong++;
		return;
	}
	first_line = strtoul(first, NULL, 10);
	size = parse_hex(hex, &table);
	check_code(name, table, size, first_line, lines, totals);
	check_broken(table, size, first_line, totals);
	free(table);
}

static bool check_python(const char *python)
{
	struct totals totals = { 0 };
	char command[512], *text = NULL;
	size_t cap = 0;
	int status;
	FILE *pipe;

	snprintf(command, sizeof(command), "%s -I " DUMP " 2>/dev/null", python);
	pipe = popen(command, "r");
	while (pipe && getline(&text, &cap, pipe) > 0)
		check_line(text, &totals);
	free(text);
	status = pipe ? pclose(pipe) : -1;
	if (status == -1 || WEXITSTATUS(status) == 127 || WEXITSTATUS(status) == EXIT_NOT_OURS)
		return false;
	is_int(status, 0, "%s: dumps its line tables", python);
	is_int(totals.wrong, 0, "%s: lines of %zu instructions in %zu code objects", python,
	       totals.units, totals.codes);
	ok(totals.units > 50000 && totals.without_line > 10 && totals.backwards > 1000,
	   "%s: %zu without a line, %zu go backwards, %zu broken tables tried", python,
	   totals.without_line, totals.backwards, totals.broken);
	return true;
}

static void check_pythons(void)
{
	/* The tables of 3.12 and 3.13 have the same form. */
	static const char *const places[] = {
		"/usr/bin/python3.1[1-3]",
		"/usr/local/bin/python3.1[1-3]",
		"~/.pyenv/versions/3.1[1-3].*/bin/python3",
	};
	glob_t found = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		glob(places[i], GLOB_TILDE | (i ? GLOB_APPEND : 0), NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++)
		n += check_python(found.gl_pathv[i]);
	globfree(&found);
	if (!n && !check_python("python3"))
		tap__skip("no CPython 3.11 or later found", "lines of real code objects");
}

struct row {
	const char *what;
	uint8_t table[16];
	size_t size;
	int32_t offset;
	uint32_t line; /* with first line 100 */
};

static const struct row rows[] = {
	{ "empty table", { 0 }, 0, 0, 0 },
	{ "before the first instruction", { 0x80 | 10 << 3 }, 1, -2, 100 },
	{ "no start of an entry", { 0x7f, 0x12, 0 }, 3, 0, 0 },
	{ "one line down", { 0x80 | 11 << 3, 1, 2 }, 3, 0, 101 },
	{ "second unit of an entry", { 0x80 | 12 << 3 | 1, 1, 2 }, 3, 2, 102 },
	{ "past the end", { 0x80 | 12 << 3 | 1, 1, 2 }, 3, 4, 0 },
	{ "three lines up", { 0x80 | 13 << 3, 7 }, 2, 0, 97 },
	{ "no columns, two bytes", { 0x80 | 13 << 3, 64 | 2, 5 }, 3, 0, 261 },
	{ "up to above line 0", { 0x80 | 13 << 3, 64 | 63, 63 }, 3, 0, 0 },
	{ "number cut off", { 0x80 | 14 << 3, 64 | 2 }, 2, 0, 101 },
	{ "number that does not end, nor its entry",
	  { 0x80 | 13 << 3, 127, 127, 127, 127, 127, 127, 127, 127, 127, 0 },
	  11,
	  0,
	  0 },
	{ "none", { 0x80 | 15 << 3 }, 1, 0, 0 },
	{ "far offset", { 0x80 | 10 << 3 | 7 }, 1, INT32_MAX, 0 },
};

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];

		is_int(python_lines__find(row->table, row->size, 100, row->offset), row->line, "%s",
		       row->what);
	}
	check_pythons();
	return tap__done();
}
