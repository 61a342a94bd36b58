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

struct row {
	struct profile_frame function; /* line 0 */
	uint64_t self, total, calls;
	uint64_t waiting, preempted; /* parts of total */
	uint32_t open;		     /* how many of its frames are on the path being walked */
	bool is_root;		     /* stands for samples without any frame */
};

struct table {
	const struct profile *profile;
	struct row *rows; /* the first is the root's */
	size_t n_rows;
	uint32_t *row_of; /* by frame */
};

static int compare_functions(const void *a, const void *b, void *arg)
{
	const struct profile *profile = arg;
	const struct profile_frame *x = &profile->frames[*(const uint32_t *)a];
	const struct profile_frame *y = &profile->frames[*(const uint32_t *)b];

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->kind - y->kind;
}

static int table_init(struct table *table)
{
	const struct profile *profile = table->profile;
	size_t i, n = profile->n_frames;
	uint32_t *sorted = malloc((n + 1) * sizeof(*sorted));

	table->rows = calloc(n + 1, sizeof(*table->rows));
	table->row_of = calloc(n + 1, sizeof(*table->row_of));
	if (!sorted || !table->rows || !table->row_of) {
		free(sorted);
		return -ENOMEM;
	}
	for (i = 0; i < n; i++)
		sorted[i] = i;
	qsort_r(sorted, n, sizeof(*sorted), compare_functions, (void *)profile);
	table->rows[0].is_root = true;
	table->n_rows = 1;
	for (i = 0; i < n; i++) {
		if (!i || compare_functions(&sorted[i - 1], &sorted[i], (void *)profile)) {
			table->rows[table->n_rows].function = profile->frames[sorted[i]];
			table->rows[table->n_rows++].function.line = 0;
		}
		table->row_of[sorted[i]] = table->n_rows - 1;
	}
	free(sorted);
	return 0;
}

/* The root's row is of the samples that end there. */
static void add_total(struct row *row, const struct out_tree *tree, const struct profile_node *at,
		      uint32_t node)
{
	row->total += row->is_root ? at->self : tree->total[node];
	if (!tree->waiting)
		return;
	row->waiting += row->is_root ? at->waiting : tree->waiting[node];
	row->preempted += row->is_root ? at->preempted : tree->preempted[node];
}

/* Walks depth first and remembers which functions the path has, so that a function's total takes
 * only the outermost of its frames in a stack. */
static int table_count(struct table *table)
{
	const struct profile *profile = table->profile;
	struct out_tree tree;
	uint32_t depth = 0, *path;
	size_t i;
	int err;

	err = out_tree__init(&tree, profile);
	if (err)
		return err;
	path = calloc(tree.depth_max + 1, sizeof(*path));
	for (i = 0; i < tree.n_order && path; i++) {
		uint32_t node = tree.order[i];
		uint32_t number = node ? table->row_of[profile->nodes[node].frame] : 0;
		struct row *row = &table->rows[number];

		for (; depth > tree.depth[node]; depth--)
			table->rows[path[depth - 1]].open--;
		path[depth++] = number;
		row->self += profile->nodes[node].self;
		row->calls += profile->nodes[node].calls;
		if (!row->open++)
			add_total(row, &tree, &profile->nodes[node], node);
	}
	err = path ? 0 : -ENOMEM;
	free(path);
	out_tree__done(&tree);
	return err;
}

static bool is_group(const struct profile *profile, const struct row *row)
{
	return profile->group_kind && !row->is_root && row->function.kind == profile->group_kind;
}

/* Groups come first. */
static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct row *x = a, *y = b;
	const struct strtab *strings = ((const struct profile *)arg)->strings;
	bool x_groups = is_group(arg, x), y_groups = is_group(arg, y);
	int diff;

	if (x_groups != y_groups)
		return x_groups ? -1 : 1;
	if (x_groups && x->total != y->total)
		return x->total > y->total ? -1 : 1;
	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	if (x->calls != y->calls)
		return x->calls > y->calls ? -1 : 1;
	diff = strcmp(strtab__get(strings, x->function.name),
		      strtab__get(strings, y->function.name));
	if (!diff)
		diff = strcmp(strtab__get(strings, x->function.file),
			      strtab__get(strings, y->function.file));
	return diff ? diff : x->function.kind - y->function.kind;
}

/* Printable; owned by the caller; NULL: out of memory. */
static char *function_label(const struct profile *profile, const struct row *row, int annotate)
{
	char *label = row->is_root ? strdup("[no stack]")
				   : output__label(profile, &row->function, annotate);

	if (label)
		escape__printable(label);
	return label;
}

static int put_row(const struct table *table, const struct row *row, int annotate, int kind_width,
		   FILE *out)
{
	const struct profile *profile = table->profile;
	double percent = 100.0 / profile->total;
	char kind[sizeof(profile->kinds[0].name)] = "-";
	char *label = function_label(profile, row, annotate);
	char self[32], total[32], calls[32] = "", states[OUTPUT_STATES_BYTES];

	if (!label)
		return -ENOMEM;
	if (!row->is_root)
		strcpy(kind, profile->kinds[row->function.kind].name);
	escape__printable(kind);
	output__weight(profile, row->self, self, sizeof(self));
	output__weight(profile, row->total, total, sizeof(total));
	if (profile->counts_calls)
		snprintf(calls, sizeof(calls), " %10" PRIu64, row->calls);
	output__states(profile, row->total, row->waiting, row->preempted, states, sizeof(states));
	fprintf(out, "%5.1f%% %10s %5.1f%% %10s%s%s  %-*s  %s\n", row->self * percent, self,
		row->total * percent, total, states, calls, kind_width, kind, label);
	free(label);
	return 0;
}

static int put_rows(const struct table *table, const struct output_opts *opts, FILE *out)
{
	const struct profile *profile = table->profile;
	const char *calls = profile->counts_calls ? "      Calls" : "";
	size_t i, n = 0;
	int err, kind_width = 4;

	for (i = 0; i < profile->n_kinds; i++)
		kind_width = max_of(kind_width, (int)strlen(profile->kinds[i].name));
	fprintf(out, "\n%6s %10s %6s %10s%s%s  %-*s  %s\n", "Self%", "Self", "Total%", "Total",
		profile__mixes(profile) ? OUTPUT_STATES_TITLE : "", calls, kind_width, "Kind",
		"Function");
	for (i = 0; i < table->n_rows; i++, n++) {
		const struct row *row = &table->rows[i];

		if (!row->total && !row->calls)
			break;
		if (opts->rows && n >= opts->rows)
			continue;
		err = put_row(table, row, opts->annotate, kind_width, out);
		if (err)
			return err;
	}
	if (opts->rows && n > opts->rows)
		fprintf(out, "(%zu more)\n", n - opts->rows);
	return 0;
}

int output__table(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct table table = { .profile = profile };
	int err = 0;

	output__heading(profile, out);
	if (!profile->total)
		goto out;
	err = table_init(&table);
	if (!err)
		err = table_count(&table);
	if (err)
		goto out;
	qsort_r(table.rows, table.n_rows, sizeof(*table.rows), compare_rows, (void *)profile);
	err = put_rows(&table, opts, out);
out:
	if (!err)
		err = output__finish(out);
	free(table.rows);
	free(table.row_of);
	return err;
}
