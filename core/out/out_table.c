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
#include "core/out/out_groups.h"
#include "core/profile/function_rules.h"

struct table {
	const struct profile *profile;
	const struct output_opts *opts;
	struct out_list list;
	int kind_width;
};

#define SHARE_WIDTH 18 /* width of the text of put_share() */

static void put_share(const struct table *table, uint64_t weight, FILE *out)
{
	char text[32];

	output__amount(table->profile, weight, text, sizeof(text));
	fprintf(out, "%5.1f%% %10s ", weight * (100.0 / table->profile->total), text);
}

/* Writes a share. The columns of a group are blank, as it has no weight of its own. */
static void put_own_share(const struct table *table, const struct out_row *row, uint64_t weight,
			  FILE *out)
{
	if (!weight && out_rows__is_group(&table->list.of, row->number))
		fprintf(out, "%*s", SHARE_WIDTH, "");
	else
		put_share(table, weight, out);
}

static int put_row(const struct table *table, const struct out_row *row, const char *indent,
		   FILE *out)
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
	fprintf(out, " %-*s  %s%s%s%s\n", table->kind_width, kind, indent,
		colour ? output__colour(profile, row_kind) : "", label,
		colour ? OUTPUT_COLOUR_END : "");
	free(label);
	return 0;
}

static void put_titles(const struct table *table, FILE *out)
{
	const struct profile *profile = table->profile;
	const char *own = code_rules__own_title(profile);

	putc('\n', out);
	if (table->opts->group != OUTPUT_LABELS) {
		if (table->list.scripts)
			fprintf(out, "%5s%%%*s ", own, 16 - (int)max_of(strlen(own), 5u), own);
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

/* Writes the functions of the group with most weight. Shares are of the whole profile. */
static int put_functions(const struct table *table, const struct out_row *row, FILE *out)
{
	size_t max = table->opts->rows ? min_of(table->opts->rows, GROUP_FUNCTIONS) : 0;
	struct out_group group;
	int ret = out_group__init(&group, &table->list, row, table->opts, max);
	const struct table inner = { .profile = table->profile,
				     .opts = table->opts,
				     .list = group.list,
				     .kind_width = table->kind_width };

	for (size_t i = 0; !ret && i < group.list.n_put; i++)
		ret = put_row(&inner, &group.list.rows[i], "  ", out);
	out_group__done(&group);
	return ret;
}

/* Writes each group, and below it its functions. */
static int put_groups(const struct table *table, FILE *out)
{
	const struct out_list *list = &table->list;
	size_t n = out_groups__count(list);
	int ret = 0;

	put_titles(table, out);
	for (size_t i = 0; !ret && i < min_of(n, list->n_put); i++) {
		ret = put_row(table, &list->rows[i], "", out);
		if (!ret)
			ret = put_functions(table, &list->rows[i], out);
	}
	if (n > list->n_put)
		fprintf(out, "(%zu more groups)\n", n - list->n_put);
	if (!ret && table->opts->rows)
		fprintf(out, "at most %zu functions of each group; --rows all shows all\n",
			(size_t)min_of(table->opts->rows, GROUP_FUNCTIONS));
	return ret;
}

static int put_rows(const struct table *table, FILE *out)
{
	const struct out_list *list = &table->list;
	int ret = 0;

	put_titles(table, out);
	for (size_t i = 0; i < list->n_put && !ret; i++)
		ret = put_row(table, &list->rows[i], "", out);
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
	if (!profile->total && (profile->idle.weight || profile->unbroken.weight))
		fputs("nothing to show: all threads were idle (--idle show shows them)\n", out);
	if (!profile->total)
		goto out;
	ret = out_list__init(&table.list, profile, opts);
	if (!ret && profile->group_kind && opts->group == OUTPUT_FUNCTIONS)
		ret = put_groups(&table, out);
	else if (!ret)
		ret = put_rows(&table, out);
	if (!ret && table.list.scripts && opts->group == OUTPUT_FUNCTIONS)
		fprintf(out, "%s: a function's own weight, with the native code that it calls\n",
			code_rules__own_title(profile));
out:
	if (!ret)
		ret = output__finish(out);
	out_list__done(&table.list);
	return ret;
}
