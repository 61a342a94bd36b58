// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/out/out_common.h"
#include "core/out/out_diff.h"
#include "core/out/out_groups.h"
#include "core/profile/function_rules.h"

/* A report for issues, merge requests and chats: a table of functions, then the tree as a block of
 * code. The dialect is GitHub's, which GitLab and most renderers accept. */

/* Writes a cell. Signs that Markdown or HTML treats as markup become character references. */
static void put_cell(FILE *out, const char *text)
{
	static const char marked[] = "|\\`*_{}[]<>&#~$@!";

	for (; *text; text++)
		if (strchr(marked, *text))
			fprintf(out, "&#%d;", *text);
		else
			putc(*text, out);
}

/* Writes a cell of code. A table ends a cell at each | without a backslash, also within code. */
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
	char kind[OUT_KIND_BYTES];

	out_rows__kind(of, row, kind);
	fputs(" ", out);
	put_cell(out, kind);
	fputs(" | ", out);
}

static int put_row(const struct out_list *list, const struct out_row *row, int annotate, FILE *out)
{
	bool group = out_rows__is_group(&list->of, row->number);

	const struct profile *profile = list->of.profile;

	fputs("|", out);
	if (group) {
		fputs(list->scripts ? "  |  |" : "  |", out);
	} else {
		if (list->scripts)
			put_amount(profile, row->script, out);
		put_amount(profile, row->self, out);
	}
	put_amount(profile, row->total, out);
	put_kind(&list->of, row->number, out);
	return put_label(&list->of, row->number, annotate, out);
}

static void put_more(size_t n, FILE *out)
{
	if (n)
		fprintf(out, "\n%zu more rows.\n", n);
}

/* Writes each group, and below it its functions. */
static int put_groups(const struct out_list *list, const struct output_opts *opts, FILE *out)
{
	size_t n = out_groups__count(list);
	size_t max = opts->rows ? min_of(opts->rows, GROUP_FUNCTIONS) : 0;
	int ret = 0;

	for (size_t i = 0; !ret && i < min_of(n, list->n_put); i++) {
		struct out_group group;

		ret = put_row(list, &list->rows[i], opts->annotate, out);
		if (ret)
			break;
		ret = out_group__init(&group, list, &list->rows[i], opts, max);
		for (size_t k = 0; !ret && k < group.list.n_put; k++)
			ret = put_row(&group.list, &group.list.rows[k], opts->annotate, out);
		out_group__done(&group);
	}
	if (n > list->n_put)
		fprintf(out, "\n%zu more groups.\n", n - list->n_put);
	return ret;
}

static int put_table(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	bool groups = profile->group_kind && opts->group == OUTPUT_FUNCTIONS;
	struct out_list list;
	int ret = out_list__init(&list, profile, opts);

	fputs("\n|", out);
	if (list.scripts)
		fprintf(out, " %s |", code_rules__own_title(profile));
	fprintf(out, " Self | Total | Kind | %s |\n|%s---:|---:|---|---|\n",
		out_rows__title(opts->group), list.scripts ? "---:|" : "");
	if (!ret && groups)
		ret = put_groups(&list, opts, out);
	for (size_t i = 0; !ret && !groups && i < list.n_put; i++)
		ret = put_row(&list, &list.rows[i], opts->annotate, out);
	if (!groups)
		put_more(list.n - list.n_put, out);
	out_list__done(&list);
	return ret;
}

static int put_diff_table(const struct output_opts *opts, FILE *out)
{
	struct out_diff_rows rows = {};
	int ret = out_diff_rows__init(&rows, opts);
	char columns[OUT_DIFF_BYTES];

	fprintf(out, "\n| Old, new, delta, change | Kind | %s |\n|---|---|---|\n",
		out_rows__title(opts->group));
	for (size_t i = 0; !ret && i < rows.n_put; i++) {
		uint32_t row = rows.sorted[i];

		out_diff__columns(opts->diff, &rows.changes[row], columns, sizeof(columns));
		fputs("| ", out);
		put_cell(out, columns);
		fputs("|", out);
		put_kind(&rows.of, row, out);
		ret = put_label(&rows.of, row, opts->annotate, out);
	}
	put_more(rows.n - rows.n_put, out);
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
