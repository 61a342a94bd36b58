// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/out_diff.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/out/out_common.h"
#include "core/out/out_rows.h"

/* ---- headings ---- */

/* Warns of kinds of frames that only one recording has, as these make all stacks different. */
static void put_kinds(const struct diff *diff, FILE *out)
{
	static const char *const names[DIFF_SIDES] = { "old", "new" };
	bool has[DIFF_SIDES][KINDS_MAX] = {};

	for (int i = 0; i < DIFF_SIDES; i++) {
		const struct profile *profile = diff->sides[i].profile;

		for (size_t node = 1; node < profile->n_nodes; node++) {
			const struct profile_frame *frame =
				&profile->frames[profile->nodes[node].frame];
			int kind = profile__kind(diff->both, profile->kinds[frame->kind].name, "");

			if (kind >= 0 && !diff->both->kinds[kind].label)
				has[i][kind] = true;
		}
	}
	for (size_t kind = 0; kind < diff->both->n_kinds; kind++)
		if (diff->sides[DIFF_OLD].whole > 0 && diff->sides[DIFF_NEW].whole > 0 &&
		    has[DIFF_OLD][kind] != has[DIFF_NEW][kind])
			escape__line(out, "only %s has %s frames, which alone makes stacks differ",
				     names[has[DIFF_NEW][kind]], diff->both->kinds[kind].name);
}

static void put_basis(const struct diff *diff, FILE *out)
{
	const struct diff_side *old = &diff->sides[DIFF_OLD];

	if (!diff->by_value)
		fputs("compared by share: % of each recording's whole", out);
	else if (old->profile->duration_s > 0)
		fprintf(out, "compared by value: per second of each recording%s",
			diff->clock ? ", with samples as the time that they represent" : "");
	else
		fputs("compared by value: sums, because the duration is unknown", out);
	fprintf(out, "; within error: less than %d standard errors (σ)\n", DIFF_ERRORS_MIN);
}

void out_diff__heading(const struct diff *diff, FILE *out)
{
	fputs("old: ", out);
	output__heading(diff->sides[DIFF_OLD].profile, out);
	fputs("new: ", out);
	output__heading(diff->sides[DIFF_NEW].profile, out);
	put_basis(diff, out);
	put_kinds(diff, out);
}

/* ---- columns ---- */

const char *out_diff__titles(const struct diff *diff)
{
	if (!diff->by_value)
		return "  Old%   New%   Delta  Change                   ";
	return diff->sides[DIFF_NEW].profile->duration_s > 0
		       ? "     Old/s      New/s       Delta  Change                   "
		       : "       Old        New       Delta  Change                   ";
}

/* Writes a rate. Rates have fractions, while weights have none. */
static void put_rate(const struct diff *diff, double rate, char *buf, size_t size)
{
	struct profile as = { .unit = diff->clock ? PROFILE_NANOSECONDS : diff->both->unit };
	bool scaled = as.unit == PROFILE_NANOSECONDS || as.unit == PROFILE_BYTES;

	if ((scaled && rate >= 1 && rate < 1e19) || !rate)
		output__weight(&as, rate + 0.5, buf, size);
	else
		snprintf(buf, size, "%.3g%s", rate,
			 as.unit == PROFILE_NANOSECONDS ? " ns"
			 : as.unit == PROFILE_BYTES	? " B"
							: "");
}

const char *out_diff__verdict(const struct diff_change *change)
{
	static const char *const verdicts[] = { [DIFF_SAME] = "same",
						[DIFF_FEW] = "too few samples",
						[DIFF_WITHIN_ERROR] = "within error",
						[DIFF_MORE] = "more",
						[DIFF_LESS] = "less" };

	return verdicts[change->verdict];
}

static void put_verdict(const struct diff_change *change, char *buf, size_t size)
{
	const char *verdict = out_diff__verdict(change), *marked = "";
	bool sure = change->verdict == DIFF_MORE || change->verdict == DIFF_LESS;
	char errors[32] = "";

	if (change->appeared)
		marked = sure ? "new" : "new, ";
	if (change->vanished)
		marked = sure ? "gone" : "gone, ";
	if (sure && *marked)
		verdict = "";
	if (change->errors > 0)
		snprintf(errors, sizeof(errors), " %.*fσ", change->errors < 99.95 ? 1 : 0,
			 min_of(change->errors, 99999.0));
	snprintf(buf, size, "%s%s%s", marked, verdict, errors);
}

/* Returns the width of @text in columns of a terminal: σ has one column and two bytes. */
static int columns_of(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

void out_diff__columns(const struct diff *diff, const struct diff_change *change, char *buf,
		       size_t size)
{
	double delta = change->new - change->old;
	char verdict[64], text[3][32], sign = delta < 0 ? '-' : '+';
	int n;

	put_verdict(change, verdict, sizeof(verdict));
	if (!diff->by_value) {
		n = snprintf(buf, size, "%5.1f%% %5.1f%% %+6.1f%%", 100 * change->old,
			     100 * change->new, 100 * delta);
	} else {
		put_rate(diff, change->old, text[0], sizeof(text[0]));
		put_rate(diff, change->new, text[1], sizeof(text[1]));
		put_rate(diff, fabs(delta), text[2], sizeof(text[2]));
		n = snprintf(buf, size, "%10s %10s %c%10s", text[0], text[1], sign, text[2]);
	}
	snprintf(buf + n, size - n, "  %s%*s", verdict, max_of(25 - columns_of(verdict), 2), "");
}

const char *out_diff__colour(const struct diff_change *change)
{
	switch (change->verdict) {
	case DIFF_MORE:
		return "\033[31m";
	case DIFF_LESS:
		return "\033[34m";
	default:
		return OUTPUT_COLOUR_FAINT;
	}
}

/* ---- the table ---- */

/* Chooses script if it differs from self, as in tables of one recording. */
static int choose_measure(struct out_diff_rows *table)
{
	const struct profile *both = table->diff->both;
	enum output_group group = table->opts->group;
	uint32_t *owners = calloc(both->n_nodes, sizeof(*owners));
	bool scripts = false;

	if (!owners)
		return -ENOMEM;
	if (frames__script_owners(both, owners)) {
		free(owners);
		return -ENOMEM;
	}
	for (size_t i = 0; i < both->n_nodes; i++)
		scripts |= out_rows__of(&table->of, i) != out_rows__of(&table->of, owners[i]) &&
			   both->nodes[i].self;
	free(owners);
	if (group != OUTPUT_FUNCTIONS && group != OUTPUT_FILES)
		scripts = false;
	table->measure = scripts ? DIFF_SCRIPT : DIFF_SELF;
	if (table->opts->sort == OUTPUT_SORT_SELF)
		table->measure = DIFF_SELF;
	if (table->opts->sort == OUTPUT_SORT_TOTAL || group == OUTPUT_LABELS)
		table->measure = DIFF_TOTAL;
	return 0;
}

static int compare_rows(const void *a, const void *b, void *arg)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct out_diff_rows *table = arg;
	const struct diff_change *of_x = &table->changes[x], *of_y = &table->changes[y];
	double by_x = fabs(of_x->new - of_x->old), by_y = fabs(of_y->new - of_y->old);
	bool x_groups = out_rows__is_group(&table->of, x);
	bool y_groups = out_rows__is_group(&table->of, y);
	int diff = strcmp(out_rows__name(&table->of, x), out_rows__name(&table->of, y));

	if (x_groups != y_groups)
		return x_groups ? -1 : 1;
	if (table->opts->sort == OUTPUT_SORT_NAME && diff)
		return diff;
	if (by_x != by_y)
		return by_x > by_y ? -1 : 1;
	if (of_x->new != of_y->new)
		return of_x->new > of_y->new ? -1 : 1;
	return diff ? diff : (x > y) - (x < y);
}

static bool is_shown(const struct out_diff_rows *table, uint32_t row)
{
	const struct diff_change *change = &table->changes[row];

	return (change->old || change->new) &&
	       (table->opts->group != OUTPUT_LABELS || out_rows__is_group(&table->of, row));
}

int out_diff_rows__init(struct out_diff_rows *table, const struct output_opts *opts)
{
	const struct profile *both = opts->diff->both;
	uint32_t *row_of = calloc(both->n_nodes, sizeof(*row_of));
	int ret = row_of ? out_rows__init(&table->of, both, opts->group, false) : -ENOMEM;

	table->diff = opts->diff;
	table->opts = opts;
	for (size_t i = 0; !ret && i < both->n_nodes; i++)
		row_of[i] = out_rows__of(&table->of, i);
	if (!ret)
		ret = choose_measure(table);
	if (!ret)
		ret = diff_rows__init(&table->counted, table->diff, table->measure, row_of,
				      table->of.n);
	free(row_of);
	table->changes = calloc(table->of.n + 1, sizeof(*table->changes));
	table->sorted = calloc(table->of.n + 1, sizeof(*table->sorted));
	if (!table->changes || !table->sorted)
		return -ENOMEM;
	for (size_t i = 0; !ret && i < table->of.n; i++) {
		table->changes[i] = diff_rows__change(&table->counted, i);
		if (is_shown(table, i))
			table->sorted[table->n++] = i;
	}
	table->n_put = opts->rows ? min_of(opts->rows, table->n) : table->n;
	qsort_r(table->sorted, table->n, sizeof(*table->sorted), compare_rows, table);
	return ret;
}

void out_diff_rows__done(struct out_diff_rows *table)
{
	out_rows__done(&table->of);
	diff_rows__done(&table->counted);
	free(table->changes);
	free(table->sorted);
}

static int put_row(const struct out_diff_rows *table, uint32_t row, FILE *out)
{
	const struct diff_change *change = &table->changes[row];
	const struct profile *both = table->diff->both;
	char columns[OUT_DIFF_BYTES], kind[OUT_KIND_BYTES];
	char *label = out_rows__label(&table->of, row, table->opts->annotate);

	if (!label)
		return -ENOMEM;
	out_rows__kind(&table->of, row, kind);
	out_diff__columns(table->diff, change, columns, sizeof(columns));
	fprintf(out, "%s%s%-*s  %s%s\n", table->opts->colour ? out_diff__colour(change) : "",
		columns, out_rows__kind_width(both), kind, label,
		table->opts->colour ? OUTPUT_COLOUR_END : "");
	free(label);
	return 0;
}

static int put_rows(const struct out_diff_rows *table, FILE *out)
{
	static const char *const measures[] = {
		[DIFF_SELF] = "self: samples that end in the function",
		[DIFF_TOTAL] = "total: with everything that it calls",
		[DIFF_SCRIPT] = "script: self, with the native code that it calls",
	};
	int ret = 0;

	fprintf(out, "%s (--sort)\n\n%s%-*s  %s\n", measures[table->measure],
		out_diff__titles(table->diff), out_rows__kind_width(table->diff->both), "Kind",
		out_rows__title(table->opts->group));
	for (size_t i = 0; i < table->n_put && !ret; i++)
		ret = put_row(table, table->sorted[i], out);
	if (table->n > table->n_put)
		fprintf(out, "(%zu more)\n", table->n - table->n_put);
	return ret;
}

int out_diff__table(const struct output_opts *opts, FILE *out)
{
	struct out_diff_rows table = {};
	int ret;

	out_diff__heading(opts->diff, out);
	ret = out_diff_rows__init(&table, opts);
	if (!ret)
		ret = put_rows(&table, out);
	if (!ret)
		ret = output__finish(out);
	out_diff_rows__done(&table);
	return ret;
}
