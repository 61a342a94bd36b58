// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/profile/out_common.h"
#include "core/profile/out_diff.h"
#include "core/profile/out_rows.h"

struct table {
	const struct profile *profile;
	const struct output_opts *opts;
	struct out_rows of;
	struct out_row *rows; /* until they are sorted, by number */
	bool scripts;	      /* there is a difference between script and self */
	enum output_sort sort;
	int kind_width;
};

static int table_init(struct table *table)
{
	int ret = out_rows__init(&table->of, table->profile, table->opts->group);

	if (ret)
		return ret;
	table->rows = calloc(table->of.n, sizeof(*table->rows));
	return table->rows ? 0 : -ENOMEM;
}

static void table_done(struct table *table)
{
	out_rows__done(&table->of);
	free(table->rows);
}

static int table_count(struct table *table)
{
	int ret = out_rows__count(&table->of, table->rows, &table->scripts);

	/* Of a library or a kind it would tell of other libraries and kinds. */
	table->scripts &=
		table->opts->group == OUTPUT_FUNCTIONS || table->opts->group == OUTPUT_FILES;
	return ret;
}

/* ---- what is written ---- */

static void put_share(const struct table *table, uint64_t weight, FILE *out)
{
	char text[32];

	output__amount(table->profile, weight, text, sizeof(text));
	fprintf(out, "%5.1f%% %10s ", weight * (100.0 / table->profile->total), text);
}

static int put_row(const struct table *table, const struct out_row *row, FILE *out)
{
	const struct profile *profile = table->profile;
	uint8_t row_kind = table->of.keys[row->number].kind;
	bool colour = table->opts->colour && row->number;
	char kind[sizeof(profile->kinds[0].name)] = "-", states[OUTPUT_STATES_BYTES];
	char *label = out_rows__label(&table->of, row->number, table->opts->annotate);

	if (!label)
		return -ENOMEM;
	if (row->number)
		strcpy(kind, profile->kinds[row_kind].name);
	escape__printable(kind);
	if (table->opts->group != OUTPUT_LABELS) {
		if (table->scripts)
			put_share(table, row->script, out);
		put_share(table, row->self, out);
	}
	put_share(table, row->total, out);
	output__states(profile, row->total, row->waiting, row->preempted, states, sizeof(states));
	fputs(*states ? states + 1 : "", out);
	if (*states)
		putc(' ', out);
	if (profile->counts_calls)
		fprintf(out, "%10" PRIu64 " ", row->calls);
	if (profile__has_occurrences(profile))
		fprintf(out, "%11" PRIu64 " ", row->occurrences);
	if (table->sort == OUTPUT_SORT_SAMPLES)
		fprintf(out, "%10" PRIu64 " ", row->samples);
	fprintf(out, " %-*s  %s%s%s\n", table->kind_width, kind,
		colour ? output__colour(profile, row_kind) : "", label,
		colour ? OUTPUT_COLOUR_END : "");
	free(label);
	return 0;
}

static void put_titles(const struct table *table, FILE *out)
{
	const struct profile *profile = table->profile;

	putc('\n', out);
	if (table->opts->group != OUTPUT_LABELS) {
		if (table->scripts)
			fprintf(out, "%6s %9s ", "Script%", "Script");
		fprintf(out, "%6s %10s ", "Self%", "Self");
	}
	fprintf(out, "%6s %10s ", "Total%", "Total");
	if (profile__mixes(profile))
		fputs(&OUTPUT_STATES_TITLE[1], out);
	if (profile__mixes(profile))
		putc(' ', out);
	fputs(profile->counts_calls ? "     Calls " : "", out);
	fputs(profile__has_occurrences(profile) ? "Occurrences " : "", out);
	fputs(table->sort == OUTPUT_SORT_SAMPLES ? "   Samples " : "", out);
	fprintf(out, " %-*s  %s\n", table->kind_width, "Kind", out_rows__title(table->opts->group));
}

static int put_rows(const struct table *table, FILE *out)
{
	size_t rows = table->opts->rows, n = 0;
	int ret = 0;

	put_titles(table, out);
	for (size_t i = 0; i < table->of.n && !ret; i++) {
		const struct out_row *row = &table->rows[i];

		if ((!row->total && !row->calls && !row->occurrences) ||
		    (table->opts->group == OUTPUT_LABELS &&
		     !out_rows__is_group(&table->of, row->number)))
			continue;
		if (!rows || n < rows)
			ret = put_row(table, row, out);
		n++;
	}
	if (rows && n > rows)
		fprintf(out, "(%zu more)\n", n - rows);
	return ret;
}

int output__table(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct table table = { .profile = profile, .opts = opts, .kind_width = 4 };
	int ret = 0;

	if (opts->diff)
		return out_diff__table(opts, out);
	output__heading(profile, out);
	if (!profile->total)
		goto out;
	ret = table_init(&table);
	if (!ret)
		ret = table_count(&table);
	if (ret)
		goto out;
	for (size_t i = 0; i < profile->n_kinds; i++)
		table.kind_width = max_of(table.kind_width, (int)strlen(profile->kinds[i].name));
	table.sort = opts->sort	     ? opts->sort
		     : table.scripts ? OUTPUT_SORT_SCRIPT
				     : OUTPUT_SORT_SELF;
	out_rows__sort(&table.of, table.rows, table.sort);
	ret = put_rows(&table, out);
out:
	if (!ret)
		ret = output__finish(out);
	table_done(&table);
	return ret;
}
