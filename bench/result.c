// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/result.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"

#define GAP 2 /* blanks between columns */

struct cell {
	char *text; /* text for people; NULL: empty. Owned, as @json */
	char *json; /* JSON of a number or figure; NULL: @text is a string */
};

struct notes {
	char **list;
	size_t n, cap;
};

struct table {
	char *name, *title;
	const char *const *columns; /* borrowed: "name" or "name|unit" */
	size_t n_columns;
	struct cell *cells; /* @n_columns cells per row */
	size_t n_rows, cap_cells;
	size_t n_filled; /* filled cells of the last row */
	struct notes notes;
};

struct result {
	struct table *tables;
	size_t n_tables, cap_tables;
	struct notes notes; /* notes above all tables */
	bool failed;	    /* out of memory, or more cells than columns */
};

struct result *result__new(void)
{
	return calloc(1, sizeof(struct result));
}

static void notes__done(struct notes *notes)
{
	for (size_t i = 0; i < notes->n; i++)
		free(notes->list[i]);
	free(notes->list);
}

static void table__done(struct table *table)
{
	for (size_t i = 0; i < table->n_rows * table->n_columns; i++) {
		free(table->cells[i].text);
		free(table->cells[i].json);
	}
	notes__done(&table->notes);
	free(table->cells);
	free(table->name);
	free(table->title);
}

void result__free(struct result *result)
{
	if (!result)
		return;
	for (size_t i = 0; i < result->n_tables; i++)
		table__done(&result->tables[i]);
	notes__done(&result->notes);
	free(result->tables);
	free(result);
}

/* --- filling it --- */

static struct table *last_table(struct result *result)
{
	return result->n_tables ? &result->tables[result->n_tables - 1] : NULL;
}

void result__table(struct result *result, const char *name, const char *title,
		   const char *const *columns)
{
	struct table *table;

	if (array__reserve(&result->tables, &result->cap_tables, result->n_tables + 1,
			   sizeof(*result->tables))) {
		result->failed = true;
		return;
	}
	table = &result->tables[result->n_tables++];
	*table =
		(struct table) { .name = strdup(name), .title = strdup(title), .columns = columns };
	result->failed = result->failed || !table->name || !table->title;
	if (table->title)
		escape__printable(table->title);
	while (columns[table->n_columns])
		table->n_columns++;
}

void result__row(struct result *result)
{
	struct table *table = last_table(result);
	size_t n;

	assert(table);
	n = table->n_rows * table->n_columns;
	if (array__reserve(&table->cells, &table->cap_cells, n + table->n_columns,
			   sizeof(*table->cells))) {
		result->failed = true;
		return;
	}
	memset(&table->cells[n], 0, table->n_columns * sizeof(*table->cells));
	table->n_rows++;
	table->n_filled = 0;
}

/* Adds a cell. Takes ownership of @text and @json. */
static void add(struct result *result, char *text, char *json)
{
	struct table *table = last_table(result);

	if (!table || !table->n_rows || table->n_filled == table->n_columns) {
		result->failed = true;
		free(text);
		free(json);
		return;
	}
	table->cells[(table->n_rows - 1) * table->n_columns + table->n_filled++] =
		(struct cell) { text, json };
}

__attribute__((format(printf, 2, 3))) static char *format(struct result *result, const char *fmt,
							  ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = escape__format(fmt, args);
	va_end(args);
	result->failed = result->failed || !text;
	return text;
}

void result__text(struct result *result, const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = escape__format(fmt, args);
	va_end(args);
	result->failed = result->failed || !text;
	add(result, text, NULL);
}

void result__empty(struct result *result)
{
	add(result, NULL, NULL);
}

/* JSON has three more digits: the text is rounded for people. */
void result__number(struct result *result, double number, int decimals)
{
	if (!isfinite(number))
		result__empty(result);
	else
		add(result, format(result, "%.*f", decimals, number),
		    format(result, "%.*f", decimals + 3, number));
}

void result__figure(struct result *result, const struct figure *figure, int decimals)
{
	int more = decimals + 3;
	char *text;

	if (!figure->n || !isfinite(figure->median) || !isfinite(figure->low) ||
	    !isfinite(figure->high)) {
		result__empty(result);
		return;
	}
	if (figure->n == 1)
		text = format(result, "%.*f", decimals, figure->median);
	else
		text = format(result, "%.*f (%.*f to %.*f%s)", decimals, figure->median, decimals,
			      figure->low, decimals, figure->high, figure->unsure ? "?" : "");
	add(result, text,
	    format(result,
		   "{\"median\": %.*f, \"low\": %.*f, \"high\": %.*f, \"n\": %zu, \"unsure\": %s}",
		   more, figure->median, more, figure->low, more, figure->high, figure->n,
		   figure->unsure ? "true" : "false"));
}

static double percent_of(double ratio)
{
	return (ratio - 1) * 100;
}

void result__ratio(struct result *result, const struct figure *ratio, bool percent)
{
	struct figure shown_as = *ratio;
	int decimals = !percent ? 3 : ratio->median >= 2 ? 0 : 1;

	if (percent) {
		shown_as.median = percent_of(ratio->median);
		shown_as.low = percent_of(ratio->low);
		shown_as.high = percent_of(ratio->high);
	}
	if (ratio->n == 1)
		result__text(result, "unknown, after one run (%.*f)", decimals, shown_as.median);
	else if (ratio->n == 2)
		result__text(result, "unknown, after two runs (%.*f, %.*f)", decimals, shown_as.low,
			     decimals, shown_as.high);
	else if (ratio->n && !figure__differs(ratio))
		result__text(result, "%s (%.*f to %.*f)",
			     ratio->low <= 1 && ratio->high >= 1 ? "within the noise"
								 : "unsure, too few runs",
			     decimals, shown_as.low, decimals, shown_as.high);
	else
		result__figure(result, &shown_as, decimals);
}

void result__note(struct result *result, const char *fmt, ...)
{
	struct table *table = last_table(result);
	struct notes *notes = table ? &table->notes : &result->notes;
	va_list args;
	char *text;

	va_start(args, fmt);
	text = escape__format(fmt, args);
	va_end(args);
	if (!text ||
	    array__reserve(&notes->list, &notes->cap, notes->n + 1, sizeof(*notes->list))) {
		result->failed = true;
		free(text);
		return;
	}
	notes->list[notes->n++] = text;
}

/* --- text --- */

static int width_of(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80; /* UTF-8: one per character */
	return width;
}

static const char *text_of(const struct table *table, size_t row, size_t column)
{
	const char *text = table->cells[row * table->n_columns + column].text;

	return text ? text : "-";
}

/* Writes "name, unit" for "name|unit". */
static void write_heading(const char *column, FILE *out)
{
	size_t name = strcspn(column, "|");

	fprintf(out, "%.*s%s%s", (int)name, column, column[name] ? ", " : "",
		column[name] ? column + name + 1 : "");
}

static int heading_width(const char *column)
{
	return width_of(column) + !!strchr(column, '|');
}

/* Returns true for a column that is aligned at the right: a column of numbers, except the first
 * one. */
static bool is_right(const struct table *table, size_t column)
{
	for (size_t row = 0; row < table->n_rows; row++) {
		const struct cell *cell = &table->cells[row * table->n_columns + column];

		if (cell->text && !cell->json)
			return false;
	}
	return column > 0;
}

/* Writes a cell; @row -1: the heading. */
static void write_cell(const struct table *table, ssize_t row, size_t column, FILE *out)
{
	bool right = is_right(table, column), last = column + 1 == table->n_columns;
	const char *text = row < 0 ? table->columns[column] : text_of(table, row, column);
	int width = heading_width(table->columns[column]), pad;

	for (size_t i = 0; i < table->n_rows; i++)
		width = max_of(width, width_of(text_of(table, i, column)));
	pad = width - (row < 0 ? heading_width(text) : width_of(text));
	fprintf(out, "%*s%*s", GAP, "", right ? pad : 0, "");
	if (row < 0)
		write_heading(text, out);
	else
		fputs(text, out);
	fprintf(out, "%*s", right || last ? 0 : pad, "");
}

static void write_notes(const struct notes *notes, const char *indent, FILE *out)
{
	for (size_t i = 0; i < notes->n; i++)
		fprintf(out, "%s%s\n", indent, notes->list[i]);
}

static void write_text(const struct result *result, FILE *out)
{
	write_notes(&result->notes, "", out);
	for (size_t i = 0; i < result->n_tables; i++) {
		const struct table *table = &result->tables[i];

		fprintf(out, "%s%s\n", i || result->notes.n ? "\n" : "", table->title);
		for (ssize_t row = -1; row < (ssize_t)table->n_rows; row++) {
			for (size_t column = 0; column < table->n_columns; column++)
				write_cell(table, row, column, out);
			fputc('\n', out);
		}
		write_notes(&table->notes, "  ", out);
	}
}

/* --- JSON --- */

static void write_json_notes(const struct notes *notes, FILE *out)
{
	fputs("\"notes\": [", out);
	for (size_t i = 0; i < notes->n; i++) {
		fputs(i ? ", " : "", out);
		escape__json(out, notes->list[i]);
	}
	fputc(']', out);
}

/* Writes the columns. Names and units are braid's literals, without characters to escape. */
static void write_json_columns(const struct table *table, FILE *out)
{
	for (size_t i = 0; i < table->n_columns; i++) {
		const char *column = table->columns[i], *unit = strchr(column, '|');

		fprintf(out, "%s{\"name\": \"%.*s\", \"unit\": ", i ? ", " : "",
			(int)strcspn(column, "|"), column);
		if (unit)
			fprintf(out, "\"%s\"}", unit + 1);
		else
			fputs("null}", out);
	}
}

static void write_json_cell(const struct cell *cell, FILE *out)
{
	if (cell->text && !cell->json)
		escape__json(out, cell->text);
	else
		fputs(cell->json ? cell->json : "null", out);
}

static void write_json_table(const struct table *table, FILE *out)
{
	fputs("{\"name\": ", out);
	escape__json(out, table->name);
	fputs(", \"title\": ", out);
	escape__json(out, table->title);
	fputs(",\n \"columns\": [", out);
	write_json_columns(table, out);
	fputs("],\n \"rows\": [", out);
	for (size_t i = 0; i < table->n_rows * table->n_columns; i++) {
		size_t column = i % table->n_columns;

		fputs(column ? ", " : i ? ",\n  [" : "\n  [", out);
		write_json_cell(&table->cells[i], out);
		fputs(column + 1 == table->n_columns ? "]" : "", out);
	}
	fputs("],\n ", out);
	write_json_notes(&table->notes, out);
	fputc('}', out);
}

static void write_json(const struct result *result, FILE *out)
{
	fputc('{', out);
	write_json_notes(&result->notes, out);
	fputs(",\n\"tables\": [", out);
	for (size_t i = 0; i < result->n_tables; i++) {
		fputs(i ? ",\n" : "\n", out);
		write_json_table(&result->tables[i], out);
	}
	fputs("]}\n", out);
}

int result__write(const struct result *result, bool json, FILE *out)
{
	if (result->failed)
		return -ENOMEM;
	if (json)
		write_json(result, out);
	else
		write_text(result, out);
	if (fflush(out) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}
