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

/* What tells the rows apart: texts of the profile, or of the table where rows are of anything but
 * functions. */
struct key {
	uint32_t name, file;
	uint8_t kind;
};

struct row {
	struct key key;
	uint64_t self, script, total, calls;
	uint64_t waiting, preempted, samples; /* parts of total */
	uint32_t open; /* how many of its frames are on the path being walked */
	bool is_root;  /* stands for samples without any frame */
};

struct table {
	const struct profile *profile;
	const struct output_opts *opts;
	struct strtab *texts;
	struct key *keys; /* by frame */
	struct row *rows; /* the first is the root's */
	size_t n_rows;
	uint32_t *row_of;  /* by frame */
	uint64_t *samples; /* by node, with those of everything above it */
	bool scripts;	   /* there is a difference between script and self */
	enum output_sort sort;
	int kind_width;
};

static bool is_label(const struct profile *profile, uint8_t kind)
{
	return profile->kinds[kind].label;
}

/* What a frame's row is called where rows are not of functions; printf's `[...]` where it is not
 * known in which file it is. */
static int add_text(struct table *table, const struct profile_frame *frame, uint32_t *ret)
{
	const struct profile *profile = table->profile;
	const char *file = strtab__get(profile->strings, frame->file);
	const char *library = strtab__get(profile->strings, frame->library);
	const char *kind = profile->kinds[frame->kind].name;
	char text[PROFILE_LIBRARY_BYTES + 2];

	if (is_label(profile, frame->kind))
		return strtab__intern(table->texts, strtab__get(profile->strings, frame->name),
				      ret);
	if (table->opts->group == OUTPUT_FILES && *file)
		return strtab__intern(table->texts, file, ret);
	if (table->opts->group == OUTPUT_KINDS || !*library)
		library = kind;
	snprintf(text, sizeof(text), table->opts->group == OUTPUT_FILES ? "[%.250s]" : "%.250s",
		 library);
	return strtab__intern(table->texts, text, ret);
}

static int make_key(struct table *table, size_t i)
{
	const struct profile_frame *frame = &table->profile->frames[i];
	struct key *key = &table->keys[i];

	if (table->opts->group == OUTPUT_FUNCTIONS) {
		*key = (struct key) { frame->name, frame->file, frame->kind };
		return 0;
	}
	key->kind = frame->kind == KIND_INLINED && table->opts->group != OUTPUT_KINDS ? KIND_NATIVE
										      : frame->kind;
	return add_text(table, frame, &key->name);
}

static int compare_keys(const struct key *x, const struct key *y)
{
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->kind - y->kind;
}

static int compare_frames(const void *a, const void *b, void *arg)
{
	const struct key *keys = arg;

	return compare_keys(&keys[*(const uint32_t *)a], &keys[*(const uint32_t *)b]);
}

static int table_init(struct table *table)
{
	const struct profile *profile = table->profile;
	size_t i, n = profile->n_frames;
	uint32_t *sorted = malloc((n + 1) * sizeof(*sorted));
	int ret = -ENOMEM;

	table->texts = strtab__new();
	table->keys = calloc(n + 1, sizeof(*table->keys));
	table->rows = calloc(n + 1, sizeof(*table->rows));
	table->row_of = calloc(n + 1, sizeof(*table->row_of));
	if (!sorted || !table->texts || !table->keys || !table->rows || !table->row_of)
		goto out;
	for (i = 0; i < n; i++) {
		sorted[i] = i;
		if (make_key(table, i))
			goto out;
	}
	qsort_r(sorted, n, sizeof(*sorted), compare_frames, table->keys);
	table->rows[0].is_root = true;
	table->n_rows = 1;
	for (i = 0; i < n; i++) {
		const struct key *key = &table->keys[sorted[i]];

		if (!i || compare_keys(&table->keys[sorted[i - 1]], key))
			table->rows[table->n_rows++].key = *key;
		table->row_of[sorted[i]] = table->n_rows - 1;
	}
	ret = 0;
out:
	free(sorted);
	return ret;
}

static void table_done(struct table *table)
{
	strtab__free(table->texts);
	free(table->keys);
	free(table->rows);
	free(table->row_of);
	free(table->samples);
}

/* The root's row is of the samples that end there. */
static void add_total(const struct table *table, struct row *row, const struct out_tree *tree,
		      uint32_t node)
{
	const struct profile_node *at = &table->profile->nodes[node];

	row->total += row->is_root ? at->self : tree->total[node];
	row->samples += row->is_root ? at->samples : table->samples[node];
	if (!tree->waiting)
		return;
	row->waiting += row->is_root ? at->waiting : tree->waiting[node];
	row->preempted += row->is_root ? at->preempted : tree->preempted[node];
}

static uint32_t row_number(const struct table *table, uint32_t node)
{
	return node ? table->row_of[table->profile->nodes[node].frame] : 0;
}

/* Walks depth first and remembers which rows the path has, so that a row's total takes only the
 * outermost of its frames in a stack. Rows of labels have all that is in them. */
static int count(struct table *table, const struct out_tree *tree, const uint32_t *owners)
{
	const struct profile *profile = table->profile;
	uint32_t depth = 0, *path = calloc(tree->depth_max + 1, sizeof(*path));

	for (size_t i = 0; i < tree->n_order && path; i++) {
		uint32_t node = tree->order[i], number = row_number(table, node);
		struct row *row = &table->rows[number];

		for (; depth > tree->depth[node]; depth--)
			table->rows[path[depth - 1]].open--;
		path[depth++] = number;
		row->self += profile->nodes[node].self;
		row->calls += profile->nodes[node].calls;
		table->rows[row_number(table, owners[node])].script += profile->nodes[node].self;
		table->scripts |=
			row_number(table, owners[node]) != number && profile->nodes[node].self;
		if (!row->open++)
			add_total(table, row, tree, node);
	}
	free(path);
	return path ? 0 : -ENOMEM;
}

static int table_count(struct table *table)
{
	const struct profile *profile = table->profile;
	size_t n = profile->n_nodes;
	uint32_t *owners = calloc(n, sizeof(*owners));
	struct out_tree tree;
	int ret = -ENOMEM;

	table->samples = calloc(n, sizeof(*table->samples));
	if (!owners || !table->samples || out_tree__init(&tree, profile))
		goto out;
	frames__script_owners(profile, owners);
	for (size_t i = n; i-- > 0;) {
		table->samples[i] += profile->nodes[i].samples;
		if (i)
			table->samples[profile->nodes[i].parent] += table->samples[i];
	}
	ret = count(table, &tree, owners);
	/* Of a library or a kind it would tell of other libraries and kinds. */
	table->scripts &=
		table->opts->group == OUTPUT_FUNCTIONS || table->opts->group == OUTPUT_FILES;
	out_tree__done(&tree);
out:
	free(owners);
	return ret;
}

/* ---- order ---- */

static bool is_group(const struct table *table, const struct row *row)
{
	return table->profile->group_kind && !row->is_root &&
	       row->key.kind == table->profile->group_kind;
}

static const char *name_of(const struct table *table, const struct row *row)
{
	return strtab__get(table->opts->group == OUTPUT_FUNCTIONS ? table->profile->strings
								  : table->texts,
			   row->key.name);
}

static uint64_t sorted_by(const struct row *row, enum output_sort sort)
{
	switch (sort) {
	case OUTPUT_SORT_TOTAL:
		return row->total;
	case OUTPUT_SORT_SCRIPT:
		return row->script;
	case OUTPUT_SORT_SAMPLES:
		return row->samples;
	default:
		return row->self;
	}
}

/* Groups come first. */
static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct row *x = a, *y = b;
	const struct table *table = arg;
	bool x_groups = is_group(table, x), y_groups = is_group(table, y);
	uint64_t by_x = sorted_by(x, table->sort), by_y = sorted_by(y, table->sort);
	int diff = strcmp(name_of(table, x), name_of(table, y));

	if (x_groups != y_groups)
		return x_groups ? -1 : 1;
	if (table->sort == OUTPUT_SORT_NAME && diff)
		return diff;
	if (x_groups && x->total != y->total)
		return x->total > y->total ? -1 : 1;
	if (by_x != by_y)
		return by_x > by_y ? -1 : 1;
	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	if (x->calls != y->calls)
		return x->calls > y->calls ? -1 : 1;
	if (!diff)
		diff = strcmp(strtab__get(table->profile->strings, x->key.file),
			      strtab__get(table->profile->strings, y->key.file));
	return diff ? diff : x->key.kind - y->key.kind;
}

/* ---- what is written ---- */

/* Printable; owned by the caller; NULL: out of memory. */
static char *row_label(const struct table *table, const struct row *row)
{
	const struct profile_frame function = { .name = row->key.name,
						.file = row->key.file,
						.kind = row->key.kind };
	char *label;

	if (row->is_root)
		label = strdup("[no stack]");
	else if (table->opts->group == OUTPUT_FUNCTIONS)
		label = output__label(table->profile, &function, table->opts->annotate);
	else
		label = strdup(name_of(table, row));
	if (label)
		escape__printable(label);
	return label;
}

static void put_share(const struct table *table, uint64_t weight, FILE *out)
{
	char text[32];

	output__amount(table->profile, weight, text, sizeof(text));
	fprintf(out, "%5.1f%% %10s ", weight * (100.0 / table->profile->total), text);
}

static int put_row(const struct table *table, const struct row *row, FILE *out)
{
	const struct profile *profile = table->profile;
	bool colour = table->opts->colour && !row->is_root;
	char kind[sizeof(profile->kinds[0].name)] = "-", states[OUTPUT_STATES_BYTES];
	char *label = row_label(table, row);

	if (!label)
		return -ENOMEM;
	if (!row->is_root)
		strcpy(kind, profile->kinds[row->key.kind].name);
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
	if (table->sort == OUTPUT_SORT_SAMPLES)
		fprintf(out, "%10" PRIu64 " ", row->samples);
	fprintf(out, " %-*s  %s%s%s\n", table->kind_width, kind,
		colour ? output__colour(profile, row->key.kind) : "", label,
		colour ? OUTPUT_COLOUR_END : "");
	free(label);
	return 0;
}

static void put_titles(const struct table *table, FILE *out)
{
	static const char *const titles[OUTPUT_GROUPS_N] = { "Function", "File", "Library",
							     "Kind of code", "Group" };
	const struct profile *profile = table->profile;

	putc('\n', out);
	if (table->opts->group != OUTPUT_LABELS) {
		if (table->scripts)
			fprintf(out, "%6s %9s ", "Script%", "Script");
		fprintf(out, "%6s %10s ", "Self%", "Self");
	}
	fprintf(out, "%6s %10s ", "Total%", "Total");
	if (profile__mixes(profile))
		fputs(OUTPUT_STATES_TITLE + 1, out);
	if (profile__mixes(profile))
		putc(' ', out);
	fputs(profile->counts_calls ? "     Calls " : "", out);
	fputs(table->sort == OUTPUT_SORT_SAMPLES ? "   Samples " : "", out);
	fprintf(out, " %-*s  %s\n", table->kind_width, "Kind", titles[table->opts->group]);
}

static int put_rows(const struct table *table, FILE *out)
{
	size_t rows = table->opts->rows, n = 0;
	int ret = 0;

	put_titles(table, out);
	for (size_t i = 0; i < table->n_rows && !ret; i++) {
		const struct row *row = &table->rows[i];

		if ((!row->total && !row->calls) ||
		    (table->opts->group == OUTPUT_LABELS && !is_group(table, row)))
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
	qsort_r(table.rows, table.n_rows, sizeof(*table.rows), compare_rows, &table);
	ret = put_rows(&table, out);
out:
	if (!ret)
		ret = output__finish(out);
	table_done(&table);
	return ret;
}
