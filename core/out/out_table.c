// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/out/out_common.h"
#include "core/out/out_diff.h"
#include "core/out/out_rows.h"

struct table {
	const struct profile *profile;
	const struct output_opts *opts;
	struct out_list list;
	int kind_width;
};

#define SHARE_WIDTH 18 /* of put_share() */

static void put_share(const struct table *table, uint64_t weight, FILE *out)
{
	char text[32];

	output__amount(table->profile, weight, text, sizeof(text));
	fprintf(out, "%5.1f%% %10s ", weight * (100.0 / table->profile->total), text);
}

/* A group has no weight of its own: its columns are blank. */
static void put_own_share(const struct table *table, const struct out_row *row, uint64_t weight,
			  FILE *out)
{
	if (!weight && out_rows__is_group(&table->list.of, row->number))
		fprintf(out, "%*s", SHARE_WIDTH, "");
	else
		put_share(table, weight, out);
}

static int put_row(const struct table *table, const struct out_row *row, FILE *out)
{
	const struct profile *profile = table->profile;
	uint8_t row_kind = table->list.of.keys[row->number].kind;
	bool colour = table->opts->colour && row->number;
	char kind[OUT_KIND_BYTES], states[OUTPUT_STATES_BYTES];
	char *label =
		table->opts->hottest
			? out_row__label(&table->list.of, row, table->opts->annotate)
			: out_rows__label(&table->list.of, row->number, table->opts->annotate);

	if (!label)
		return -ENOMEM;
	out_rows__kind(&table->list.of, row->number, kind);
	if (table->opts->group != OUTPUT_LABELS) {
		if (table->list.scripts)
			put_own_share(table, row, row->script, out);
		put_own_share(table, row, row->self, out);
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
	if (table->list.sort == OUTPUT_SORT_SAMPLES)
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
		if (table->list.scripts)
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
	fputs(table->list.sort == OUTPUT_SORT_SAMPLES ? "   Samples " : "", out);
	fprintf(out, " %-*s  %s\n", table->kind_width, "Kind", out_rows__title(table->opts->group));
}

static int put_rows(const struct table *table, FILE *out)
{
	const struct out_list *list = &table->list;
	int ret = 0;

	put_titles(table, out);
	for (size_t i = 0; i < list->n_put && !ret; i++)
		ret = put_row(table, &list->rows[i], out);
	if (list->n > list->n_put)
		fprintf(out, "(%zu more)\n", list->n - list->n_put);
	return ret;
}

int output__table(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct table table = { .profile = profile,
			       .opts = opts,
			       .kind_width = out_rows__kind_width(profile) };
	int ret = 0;

	if (opts->diff)
		return out_diff__table(opts, out);
	output__heading(profile, out);
	if (!profile->total && profile->idle.weight)
		fputs("nothing is left to show: all threads waited, idle by a rule\n", out);
	if (!profile->total)
		goto out;
	ret = out_list__init(&table.list, profile, opts);
	if (!ret)
		ret = put_rows(&table, out);
out:
	if (!ret)
		ret = output__finish(out);
	out_list__done(&table.list);
	return ret;
}
