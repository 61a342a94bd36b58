// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/profile/out_common.h"
#include "core/profile/out_diff.h"
#include "core/profile/out_rows.h"

/* A report for issues, merge requests and chats: a table of functions, then the tree as a block of
 * code. The dialect is GitHub's, which GitLab and most renderers take. */

/* A cell: signs that Markdown or HTML takes for markup are written as character references. */
static void put_cell(FILE *out, const char *text)
{
	static const char marked[] = "|\\`*_{}[]<>&#~$@!";

	for (; *text; text++)
		if (strchr(marked, *text))
			fprintf(out, "&#%d;", *text);
		else
			putc(*text, out);
}

/* A cell of code. A table ends a cell at each | that has no backslash, also within code. */
static void put_code(FILE *out, const char *text)
{
	if (strpbrk(text, "`\\")) {
		put_cell(out, text);
		return;
	}
	putc('`', out);
	for (; *text; text++)
		fprintf(out, *text == '|' ? "\\%c" : "%c", *text);
	putc('`', out);
}

static int put_label(const struct out_rows *of, uint32_t row, int annotate, FILE *out)
{
	char *label = out_rows__label(of, row, annotate);

	if (!label)
		return -ENOMEM;
	put_code(out, label);
	fputs(" |\n", out);
	free(label);
	return 0;
}

static void put_amount(const struct profile *profile, uint64_t weight, FILE *out)
{
	char text[32];

	output__amount(profile, weight, text, sizeof(text));
	fprintf(out, " %.1f %% (%s) |", profile->total ? weight * (100.0 / profile->total) : 0,
		text);
}

static void put_kind(const struct out_rows *of, uint32_t row, FILE *out)
{
	char kind[sizeof(of->profile->kinds[0].name)] = "-";

	if (row)
		strcpy(kind, of->profile->kinds[of->keys[row].kind].name);
	escape__printable(kind);
	fputs(" ", out);
	put_cell(out, kind);
	fputs(" | ", out);
}

static int put_row(const struct out_rows *of, const struct out_row *row, bool scripts,
		   const struct output_opts *opts, FILE *out)
{
	fputs("|", out);
	if (scripts)
		put_amount(of->profile, row->script, out);
	put_amount(of->profile, row->self, out);
	put_amount(of->profile, row->total, out);
	put_kind(of, row->number, out);
	return put_label(of, row->number, opts->annotate, out);
}

static int put_table(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct out_rows of = {};
	struct out_row *rows = NULL;
	bool scripts = false;
	size_t n = 0;
	int ret = out_rows__init(&of, profile, opts->group);

	if (!ret)
		rows = calloc(of.n, sizeof(*rows));
	if (!ret && !rows)
		ret = -ENOMEM;
	if (!ret)
		ret = out_rows__count(&of, rows, &scripts);
	if (ret)
		goto out;
	scripts &= opts->group == OUTPUT_FUNCTIONS || opts->group == OUTPUT_FILES;
	out_rows__sort(&of, rows, opts->sort ?: scripts ? OUTPUT_SORT_SCRIPT : OUTPUT_SORT_SELF);
	fprintf(out, "\n|%s Self | Total | Kind | %s |\n|%s---:|---:|---|---|\n",
		scripts ? " Script |" : "", out_rows__title(opts->group), scripts ? "---:|" : "");
	for (size_t i = 0; !ret && i < of.n; i++) {
		bool shown =
			(rows[i].total || rows[i].calls) &&
			(opts->group != OUTPUT_LABELS || out_rows__is_group(&of, rows[i].number));

		if (shown && (!opts->rows || n < opts->rows))
			ret = put_row(&of, &rows[i], scripts, opts, out);
		n += shown;
	}
	if (opts->rows && n > opts->rows)
		fprintf(out, "\n%zu more rows.\n", n - opts->rows);
out:
	free(rows);
	out_rows__done(&of);
	return ret;
}

static int put_diff_table(const struct output_opts *opts, FILE *out)
{
	struct out_diff_rows rows = {};
	int ret = out_diff_rows__init(&rows, opts);
	char columns[OUT_DIFF_BYTES];
	size_t n = 0;

	fprintf(out, "\n| Old, new, delta, change | Kind | %s |\n|---|---|---|\n",
		out_rows__title(opts->group));
	for (size_t i = 0; !ret && i < rows.of.n; i++) {
		uint32_t row = rows.sorted[i];
		bool shown = out_diff_rows__is_shown(&rows, row);

		if (shown && (!opts->rows || n < opts->rows)) {
			out_diff__columns(opts->diff, &rows.changes[row], columns, sizeof(columns));
			fputs("| ", out);
			put_cell(out, columns);
			fputs("|", out);
			put_kind(&rows.of, row, out);
			ret = put_label(&rows.of, row, opts->annotate, out);
		}
		n += shown;
	}
	if (opts->rows && n > opts->rows)
		fprintf(out, "\n%zu more rows.\n", n - opts->rows);
	out_diff_rows__done(&rows);
	return ret;
}

/* Writes @text as a block of code. Its fence is longer than any run of backticks in it, so that no
 * name ends the block. */
static void put_block(FILE *out, const char *text)
{
	size_t fence = 3, run;

	for (const char *at = text; *at; at += run ? run : 1) {
		run = strspn(at, "`");
		fence = max_of(fence, run + 1);
	}
	for (size_t i = 0; i < fence; i++)
		putc('`', out);
	fprintf(out, "text\n%s", text);
	for (size_t i = 0; i < fence; i++)
		putc('`', out);
	putc('\n', out);
}

static int write_heading(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	if (opts->diff)
		out_diff__heading(opts->diff, out);
	else
		output__heading(profile, out);
	return 0;
}

static int put_written(int (*write)(const struct profile *, const struct output_opts *, FILE *),
		       const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	char *text = NULL;
	size_t size;
	FILE *block = open_memstream(&text, &size);
	int ret = block ? write(profile, opts, block) : -ENOMEM;

	if (block && fclose(block))
		ret = -ENOMEM;
	if (!ret)
		put_block(out, text);
	free(text);
	return ret;
}

int output__markdown(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct output_opts plain = *opts;
	int ret = put_written(write_heading, profile, opts, out);

	plain.colour = false;
	plain.headless = true;
	if (!ret && profile->total)
		ret = opts->diff ? put_diff_table(opts, out) : put_table(profile, opts, out);
	if (!ret && profile->total) {
		putc('\n', out);
		ret = put_written(output__tree, profile, &plain, out);
	}
	return ret ? ret : output__finish(out);
}
