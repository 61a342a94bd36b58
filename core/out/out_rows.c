// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/out_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/out/out_common.h"
#include "core/profile/function_rules.h"

/* Returns the text of a frame's row if rows are not functions. In a table of files, a frame without
 * a file has `[...]` with its library or kind. */
static int add_text(struct out_rows *rows, const struct profile_frame *frame, uint32_t *ret)
{
	const struct profile *profile = rows->profile;
	const char *file = strtab__get(profile->strings, frame->file);
	const char *library = strtab__get(profile->strings, frame->library);
	const char *kind = profile->kinds[frame->kind].name;
	char text[PROFILE_LIBRARY_BYTES + 2];

	if (profile->kinds[frame->kind].label)
		return strtab__intern(rows->texts, strtab__get(profile->strings, frame->name), ret);
	if (rows->group == OUTPUT_FILES && *file)
		return strtab__intern(rows->texts, file, ret);
	if (rows->group == OUTPUT_KINDS || !*library)
		library = kind;
	snprintf(text, sizeof(text), rows->group == OUTPUT_FILES ? "[%.250s]" : "%.250s", library);
	return strtab__intern(rows->texts, text, ret);
}

static int make_key(struct out_rows *rows, size_t i)
{
	const struct profile_frame *frame = &rows->profile->frames[i];
	struct out_row_key *key = &rows->frame_keys[i];

	if (rows->group == OUTPUT_FUNCTIONS) {
		bool apart = rows->lines || function_rules__is_nameless(rows->profile, frame);

		*key = (struct out_row_key) { .name = frame->name,
					      .file = frame->file,
					      .line = apart ? frame->line : 0,
					      .kind = frame->kind };
		return 0;
	}
	key->kind = frame->kind == KIND_INLINED && rows->group != OUTPUT_KINDS ? KIND_NATIVE
									       : frame->kind;
	return add_text(rows, frame, &key->name);
}

static int compare_keys(const struct out_row_key *x, const struct out_row_key *y)
{
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->kind - y->kind;
}

static int compare_frames(const void *a, const void *b, void *arg)
{
	const struct out_row_key *keys = arg;

	return compare_keys(&keys[*(const uint32_t *)a], &keys[*(const uint32_t *)b]);
}

int out_rows__init(struct out_rows *rows, const struct profile *profile, enum output_group group,
		   bool lines)
{
	size_t i, n = profile->n_frames;
	uint32_t *sorted = malloc((n + 1) * sizeof(*sorted));
	int ret = -ENOMEM;

	*rows = (struct out_rows) { .profile = profile,
				    .group = group,
				    .lines = lines,
				    .texts = strtab__new(),
				    .frame_keys = calloc(n + 1, sizeof(*rows->frame_keys)),
				    .keys = calloc(n + 1, sizeof(*rows->keys)),
				    .row_of = calloc(n + 1, sizeof(*rows->row_of)) };
	if (!sorted || !rows->texts || !rows->frame_keys || !rows->keys || !rows->row_of)
		goto out;
	for (i = 0; i < n; i++) {
		sorted[i] = i;
		if (make_key(rows, i))
			goto out;
	}
	qsort_r(sorted, n, sizeof(*sorted), compare_frames, rows->frame_keys);
	rows->n = 1;
	for (i = 0; i < n; i++) {
		const struct out_row_key *key = &rows->frame_keys[sorted[i]];

		if (!i || compare_keys(&rows->frame_keys[sorted[i - 1]], key))
			rows->keys[rows->n++] = *key;
		rows->row_of[sorted[i]] = rows->n - 1;
	}
	ret = 0;
out:
	free(sorted);
	return ret;
}

void out_rows__done(struct out_rows *rows)
{
	strtab__free(rows->texts);
	free(rows->frame_keys);
	free(rows->keys);
	free(rows->row_of);
	memset(rows, 0, sizeof(*rows));
}

bool out_rows__is_group(const struct out_rows *rows, uint32_t row)
{
	return rows->profile->group_kind && row &&
	       rows->keys[row].kind == rows->profile->group_kind;
}

const char *out_rows__name(const struct out_rows *rows, uint32_t row)
{
	return strtab__get(rows->group == OUTPUT_FUNCTIONS ? rows->profile->strings : rows->texts,
			   rows->keys[row].name);
}

/* Returns the label of a row. @line is shown for a function whose row contains all its lines. */
static char *label_at(const struct out_rows *rows, uint32_t row, int annotate, uint32_t line)
{
	const struct out_row_key *key = &rows->keys[row];
	const struct profile_frame function = { .name = key->name,
						.file = key->file,
						.line = key->line ? key->line : line,
						.kind = key->kind };
	char *label;

	if (!row)
		label = strdup("[no stack]");
	else if (rows->group == OUTPUT_FUNCTIONS)
		label = output__label(rows->profile, &function, annotate);
	else
		label = strdup(out_rows__name(rows, row));
	if (label)
		escape__printable(label);
	return label;
}

char *out_rows__label(const struct out_rows *rows, uint32_t row, int annotate)
{
	return label_at(rows, row, annotate, 0);
}

char *out_row__label(const struct out_rows *rows, const struct out_row *row, int annotate)
{
	const struct out_row_key *key = &rows->keys[row->number];
	bool has_share = row->line && !key->line && row->line_share < 0.995;
	char *label = label_at(rows, row->number, annotate, row->line), *end, *whole;

	end = label && has_share ? strrchr(label, ')') : NULL;
	if (!end)
		return label;
	*end = '\0';
	if (asprintf(&whole, "%s, %.0f %%)%s", label, 100 * row->line_share, end + 1) < 0)
		whole = NULL;
	free(label);
	return whole;
}

struct order {
	const struct out_rows *of;
	enum output_sort sort;
};

static uint64_t sorted_by(const struct out_row *row, enum output_sort sort)
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

/* Sorts groups first. */
static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct out_row *x = a, *y = b;
	const struct order *order = arg;
	const struct out_rows *of = order->of;
	bool x_groups = out_rows__is_group(of, x->number);
	bool y_groups = out_rows__is_group(of, y->number);
	const struct out_row_key *x_key = &of->keys[x->number];
	const struct out_row_key *y_key = &of->keys[y->number];
	uint64_t by_x = sorted_by(x, order->sort), by_y = sorted_by(y, order->sort);
	int diff = strcmp(out_rows__name(of, x->number), out_rows__name(of, y->number));

	if (x_groups != y_groups)
		return x_groups ? -1 : 1;
	if (order->sort == OUTPUT_SORT_NAME && diff)
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
		diff = strcmp(strtab__get(of->profile->strings, x_key->file),
			      strtab__get(of->profile->strings, y_key->file));
	if (!diff && x_key->line != y_key->line)
		diff = x_key->line < y_key->line ? -1 : 1;
	return diff ? diff : x_key->kind - y_key->kind;
}

static bool is_shown(const struct out_rows *of, const struct out_row *row)
{
	return (row->total || row->calls || row->occurrences) &&
	       (of->group != OUTPUT_LABELS || out_rows__is_group(of, row->number));
}

int out_list__init(struct out_list *list, const struct profile *profile,
		   const struct output_opts *opts)
{
	struct order order = { .of = &list->of };
	int ret;

	*list = (struct out_list) {};
	ret = out_rows__init(&list->of, profile, opts->group, opts->lines);
	if (ret)
		return ret;
	list->rows = calloc(list->of.n, sizeof(*list->rows));
	if (!list->rows)
		return -ENOMEM;
	ret = out_rows__count(&list->of, list->rows, &list->scripts);
	/* In a row of a library or a kind, the column would count other libraries and kinds. */
	list->scripts &= opts->group == OUTPUT_FUNCTIONS || opts->group == OUTPUT_FILES;
	for (size_t i = 0; i < list->of.n; i++)
		if (is_shown(&list->of, &list->rows[i]))
			list->rows[list->n++] = list->rows[i];
	list->n_put = opts->rows ? min_of(opts->rows, list->n) : list->n;
	list->sort = opts->sort	     ? opts->sort
		     : list->scripts ? OUTPUT_SORT_SCRIPT
				     : OUTPUT_SORT_SELF;
	order.sort = list->sort;
	qsort_r(list->rows, list->n, sizeof(*list->rows), compare_rows, &order);
	return ret;
}

void out_list__done(struct out_list *list)
{
	out_rows__done(&list->of);
	free(list->rows);
}

void out_rows__kind(const struct out_rows *rows, uint32_t row, char ret[OUT_KIND_BYTES])
{
	snprintf(ret, OUT_KIND_BYTES, "%s",
		 row ? rows->profile->kinds[rows->keys[row].kind].name : "-");
	escape__printable(ret);
}

int out_rows__kind_width(const struct profile *profile)
{
	int width = strlen("Kind");

	for (size_t i = 0; i < profile->n_kinds; i++)
		width = max_of(width, (int)strlen(profile->kinds[i].name));
	return width;
}

const char *out_rows__title(enum output_group group)
{
	static const char *const titles[OUTPUT_GROUPS_N] = { "Function", "File", "Library",
							     "Kind of code", "Group" };

	return titles[group];
}
