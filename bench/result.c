// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/result.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "core/escape.h"
#include "core/util.h"

#define GAP 2 /* blanks between columns */

enum cell_kind { CELL_EMPTY, CELL_TEXT, CELL_NUMBER, CELL_FIGURE };

struct cell {
	enum cell_kind kind;
	int decimals;
	char *text;	      /* owned */
	struct figure figure; /* a number is its median */
};

struct row {
	struct cell *cells;
	size_t n, cap;
};

struct notes {
	char **list;
	size_t n, cap;
};

struct column {
	char *name, *unit; /* owned; unit: NULL: none */
};

struct table {
	char *name, *title;
	struct column *columns;
	size_t n_columns;
	struct row *rows;
	size_t n_rows, cap_rows;
	struct notes notes;
};

struct result {
	struct table *tables;
	size_t n_tables, cap_tables;
	struct notes notes; /* above all tables */
	bool failed;	    /* out of memory */
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

static void row__done(struct row *row)
{
	for (size_t i = 0; i < row->n; i++)
		free(row->cells[i].text);
	free(row->cells);
}

static void table__done(struct table *table)
{
	for (size_t i = 0; i < table->n_columns; i++) {
		free(table->columns[i].name);
		free(table->columns[i].unit);
	}
	for (size_t i = 0; i < table->n_rows; i++)
		row__done(&table->rows[i]);
	notes__done(&table->notes);
	free(table->columns);
	free(table->rows);
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

/* Control characters are not for terminals, nor for anybody else. */
static char *format(struct result *result, const char *fmt, va_list args)
{
	char *text;

	if (vasprintf(&text, fmt, args) < 0) {
		result->failed = true;
		return NULL;
	}
	escape__printable(text);
	return text;
}

static char *copy(struct result *result, const char *text, size_t size)
{
	char *copied = strndup(text, size);

	result->failed = result->failed || !copied;
	return copied;
}

static struct table *last_table(const struct result *result)
{
	return result->n_tables ? &result->tables[result->n_tables - 1] : NULL;
}

static struct row *last_row(const struct result *result)
{
	struct table *table = last_table(result);

	return table && table->n_rows ? &table->rows[table->n_rows - 1] : NULL;
}

static void set_columns(struct result *result, struct table *table, const char *const *columns)
{
	size_t n = 0;

	while (columns[n])
		n++;
	table->columns = calloc(n + 1, sizeof(*table->columns));
	result->failed = result->failed || !table->columns;
	for (size_t i = 0; table->columns && i < n; i++) {
		const char *unit = strchr(columns[i], '|');
		struct column *column = &table->columns[table->n_columns++];

		column->name = copy(result, columns[i],
				    unit ? (size_t)(unit - columns[i]) : strlen(columns[i]));
		column->unit = unit ? copy(result, unit + 1, strlen(unit + 1)) : NULL;
	}
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
	*table = (struct table) { .name = copy(result, name, strlen(name)),
				  .title = copy(result, title, strlen(title)) };
	if (table->title)
		escape__printable(table->title);
	set_columns(result, table, columns);
}

void result__row(struct result *result)
{
	struct table *table = last_table(result);

	if (!table || array__reserve(&table->rows, &table->cap_rows, table->n_rows + 1,
				     sizeof(*table->rows))) {
		result->failed = true;
		return;
	}
	table->rows[table->n_rows++] = (struct row) {};
}

/* Takes the cell's text. Cells beyond the last column are dropped. */
static void add(struct result *result, struct cell cell)
{
	struct row *row = last_row(result);

	if (!row || row->n >= last_table(result)->n_columns ||
	    array__reserve(&row->cells, &row->cap, row->n + 1, sizeof(*row->cells))) {
		result->failed = true;
		free(cell.text);
		return;
	}
	row->cells[row->n++] = cell;
}

void result__text(struct result *result, const char *fmt, ...)
{
	struct cell cell = { .kind = CELL_TEXT };
	va_list args;

	va_start(args, fmt);
	cell.text = format(result, fmt, args);
	va_end(args);
	add(result, cell);
}

void result__number(struct result *result, double number, int decimals)
{
	add(result, (struct cell) { .kind = isfinite(number) ? CELL_NUMBER : CELL_EMPTY,
				    .decimals = decimals,
				    .figure.median = number });
}

void result__figure(struct result *result, const struct figure *figure, int decimals)
{
	bool there = figure->n && isfinite(figure->median) && isfinite(figure->low) &&
		     isfinite(figure->high);

	add(result, (struct cell) { .kind = there ? CELL_FIGURE : CELL_EMPTY,
				    .decimals = decimals,
				    .figure = *figure });
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

void result__empty(struct result *result)
{
	add(result, (struct cell) {});
}

void result__note(struct result *result, const char *fmt, ...)
{
	struct table *table = last_table(result);
	struct notes *notes = table ? &table->notes : &result->notes;
	va_list args;

	if (array__reserve(&notes->list, &notes->cap, notes->n + 1, sizeof(*notes->list))) {
		result->failed = true;
		return;
	}
	va_start(args, fmt);
	notes->list[notes->n] = format(result, fmt, args);
	va_end(args);
	notes->n += notes->list[notes->n] != NULL;
}

/* --- text --- */

/* "12.3", "12.3 (11.9 to 12.8)", with a '?' if the interval is not sure. For the caller to free. */
static char *shown(const struct cell *cell)
{
	const struct figure *figure = &cell->figure;
	char *text = NULL;
	int n = 0;

	if (cell->kind == CELL_TEXT)
		return strdup(cell->text);
	if (cell->kind == CELL_NUMBER || (cell->kind == CELL_FIGURE && figure->n == 1))
		n = asprintf(&text, "%.*f", cell->decimals, figure->median);
	else if (cell->kind == CELL_FIGURE)
		n = asprintf(&text, "%.*f (%.*f to %.*f%s)", cell->decimals, figure->median,
			     cell->decimals, figure->low, cell->decimals, figure->high,
			     figure->unsure ? "?" : "");
	else
		return strdup("-");
	return n < 0 ? NULL : text;
}

static int width_of(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80; /* UTF-8: one per character */
	return width;
}

static char *heading(const struct column *column)
{
	char *text;

	if (!column->unit)
		return strdup(column->name);
	return asprintf(&text, "%s, %s", column->name, column->unit) < 0 ? NULL : text;
}

static void write_padded(FILE *out, const char *text, int width, bool right, bool last)
{
	int pad = max_of(width - width_of(text), 0);

	fprintf(out, "%*s%s%*s", right ? pad : 0, "", text, right || last ? 0 : pad, "");
}

/* All cells as texts, headings first: (n_rows + 1) times n_columns. NULL: out of memory. */
static char **texts_of(const struct table *table)
{
	size_t n = (table->n_rows + 1) * table->n_columns;
	char **texts = calloc(n + 1, sizeof(*texts));

	for (size_t i = 0; texts && i < n; i++) {
		size_t column = i % table->n_columns;
		const struct row *row =
			i < table->n_columns ? NULL : &table->rows[i / table->n_columns - 1];
		const struct cell nothing = {};

		texts[i] = row ? shown(column < row->n ? &row->cells[column] : &nothing)
			       : heading(&table->columns[column]);
		if (texts[i])
			continue;
		while (i)
			free(texts[--i]);
		free(texts);
		return NULL;
	}
	return texts;
}

/* Columns of numbers are aligned at the right, but for the first one. */
static bool is_right(const struct table *table, size_t column)
{
	for (size_t i = 0; i < table->n_rows; i++)
		if (column < table->rows[i].n && table->rows[i].cells[column].kind == CELL_TEXT)
			return false;
	return column > 0;
}

static int write_table(const struct table *table, FILE *out)
{
	char **texts = texts_of(table);
	size_t n = table->n_columns, i, k;
	int *widths = calloc(n + 1, sizeof(*widths));

	for (i = 0; texts && widths && i < (table->n_rows + 1) * n; i++)
		widths[i % n] = max_of(widths[i % n], width_of(texts[i]));
	fprintf(out, "%s\n", table->title);
	for (i = 0; texts && widths && i <= table->n_rows; i++) {
		for (k = 0; k < n; k++) {
			fprintf(out, "%*s", GAP, "");
			write_padded(out, texts[i * n + k], widths[k], is_right(table, k),
				     k + 1 == n);
		}
		fputc('\n', out);
	}
	for (i = 0; texts && i < (table->n_rows + 1) * n; i++)
		free(texts[i]);
	k = texts && widths;
	free(texts);
	free(widths);
	return k ? 0 : -ENOMEM;
}

static void write_notes(const struct notes *notes, const char *indent, FILE *out)
{
	for (size_t i = 0; i < notes->n; i++)
		fprintf(out, "%s%s\n", indent, notes->list[i]);
}

static int write_text(const struct result *result, FILE *out)
{
	int code = 0;

	write_notes(&result->notes, "", out);
	for (size_t i = 0; !code && i < result->n_tables; i++) {
		if (i || result->notes.n)
			fputc('\n', out);
		code = write_table(&result->tables[i], out);
		write_notes(&result->tables[i].notes, "  ", out);
	}
	return code;
}

/* --- JSON --- */

static void write_json_cell(const struct cell *cell, FILE *out)
{
	const struct figure *figure = &cell->figure;

	if (cell->kind == CELL_TEXT)
		escape__json(out, cell->text);
	else if (cell->kind == CELL_NUMBER)
		fprintf(out, "%.*f", cell->decimals + 3, figure->median);
	else if (cell->kind == CELL_FIGURE)
		fprintf(out,
			"{\"median\": %.*f, \"low\": %.*f, \"high\": %.*f, \"n\": %zu, "
			"\"unsure\": %s}",
			cell->decimals + 3, figure->median, cell->decimals + 3, figure->low,
			cell->decimals + 3, figure->high, figure->n,
			figure->unsure ? "true" : "false");
	else
		fputs("null", out);
}

static void write_json_notes(const struct notes *notes, FILE *out)
{
	fputs("\"notes\": [", out);
	for (size_t i = 0; i < notes->n; i++) {
		fputs(i ? ", " : "", out);
		escape__json(out, notes->list[i]);
	}
	fputc(']', out);
}

static void write_json_columns(const struct table *table, FILE *out)
{
	for (size_t i = 0; i < table->n_columns; i++) {
		fputs(i ? ", {\"name\": " : "{\"name\": ", out);
		escape__json(out, table->columns[i].name);
		fputs(", \"unit\": ", out);
		if (table->columns[i].unit)
			escape__json(out, table->columns[i].unit);
		else
			fputs("null", out);
		fputc('}', out);
	}
}

static void write_json_table(const struct table *table, FILE *out)
{
	const struct cell nothing = {};

	fputs("{\"name\": ", out);
	escape__json(out, table->name);
	fputs(", \"title\": ", out);
	escape__json(out, table->title);
	fputs(",\n \"columns\": [", out);
	write_json_columns(table, out);
	fputs("],\n \"rows\": [", out);
	for (size_t i = 0; i < table->n_rows; i++) {
		const struct row *row = &table->rows[i];

		fputs(i ? ",\n  [" : "\n  [", out);
		for (size_t k = 0; k < table->n_columns; k++) {
			fputs(k ? ", " : "", out);
			write_json_cell(k < row->n ? &row->cells[k] : &nothing, out);
		}
		fputc(']', out);
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
	int code = 0;

	if (result->failed)
		return -ENOMEM;
	if (json)
		write_json(result, out);
	else
		code = write_text(result, out);
	if (!code && (fflush(out) || ferror(out)))
		code = errno ? -errno : -EIO;
	return code;
}
