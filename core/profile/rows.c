// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/intern.h"
#include "core/base/util.h"
#include "core/profile/out_common.h"

#define NO_STACK "[no stack]"

struct counting {
	const struct profile *profile;
	struct rows *rows;
	uint32_t *row_of; /* by frame; row 0 is of samples without any frame */
	uint32_t *open;	  /* by row: how many of its frames are on the path being walked */
	uint32_t *owners; /* by node */
};

void rows__done(struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		free(rows->list[i].label);
	free(rows->list);
	*rows = (struct rows) {};
}

/* Frames that differ by their library only are one function. */
static int number_frames(struct counting *counting)
{
	const struct profile *profile = counting->profile;
	struct rows *rows = counting->rows;
	struct intern index;
	int ret = 0;

	intern__init(&index, UINT32_MAX);
	rows->n = 1;
	rows->list[0].label = strdup(NO_STACK);
	for (size_t i = 0; !ret && i < profile->n_frames; i++) {
		const struct profile_frame *frame = &profile->frames[i];
		uint32_t *place =
			intern__at(&index, (uint64_t)frame->name << 32 | frame->file, frame->kind);

		if (place && !*place) {
			rows->list[rows->n].kind = frame->kind;
			rows->list[rows->n].label = output__label(profile, frame, false);
			*place = rows->n;
			rows->n++;
		}
		if (!place || !rows->list[*place].label)
			ret = -ENOMEM;
		else
			counting->row_of[i] = *place;
	}
	intern__done(&index);
	return rows->list[0].label ? ret : -ENOMEM;
}

static uint32_t row_number(const struct counting *counting, uint32_t node)
{
	return node ? counting->row_of[counting->profile->nodes[node].frame] : 0;
}

/* Depth first, so that a row's total takes only the outermost of its frames in a stack. */
static int count(struct counting *counting, const struct out_tree *tree)
{
	const struct profile *profile = counting->profile;
	uint32_t depth = 0, *path = calloc(tree->depth_max + 1, sizeof(*path));

	for (size_t i = 0; path && i < tree->n_order; i++) {
		uint32_t node = tree->order[i], number = row_number(counting, node);
		uint32_t owner = row_number(counting, counting->owners[node]);
		uint64_t self = profile->nodes[node].self;
		struct row *row = &counting->rows->list[number];

		for (; depth > tree->depth[node]; depth--)
			counting->open[path[depth - 1]]--;
		path[depth++] = number;
		row->self += self;
		counting->rows->list[owner].script += self;
		counting->rows->scripts |= owner != number && self;
		if (!counting->open[number]++)
			row->total += node ? tree->total[node] : self;
	}
	free(path);
	return path ? 0 : -ENOMEM;
}

static void drop_empty(struct rows *rows)
{
	size_t n = 0;

	for (size_t i = 0; i < rows->n; i++) {
		if (rows->list[i].total)
			rows->list[n++] = rows->list[i];
		else
			free(rows->list[i].label);
	}
	rows->n = n;
	for (size_t i = 0; i < n; i++)
		escape__printable(rows->list[i].label);
}

int rows__functions(const struct profile *profile, struct rows *ret)
{
	struct counting counting = { .profile = profile, .rows = ret };
	size_t n = profile->n_frames + 1;
	struct out_tree tree;
	int code = -ENOMEM;

	*ret = (struct rows) { .list = calloc(n, sizeof(*ret->list)), .cap = n };
	counting.row_of = calloc(n, sizeof(*counting.row_of));
	counting.open = calloc(n, sizeof(*counting.open));
	counting.owners = calloc(profile->n_nodes, sizeof(*counting.owners));
	if (!ret->list || !counting.row_of || !counting.open || !counting.owners ||
	    number_frames(&counting) || out_tree__init(&tree, profile))
		goto out;
	frames__script_owners(profile, counting.owners);
	code = count(&counting, &tree);
	out_tree__done(&tree);
out:
	free(counting.row_of);
	free(counting.open);
	free(counting.owners);
	if (code)
		rows__done(ret);
	else
		drop_empty(ret);
	return code;
}

/* "name (process)", as many threads of a pool are called after it. */
static char *thread_label(const struct profile_thread *thread)
{
	char *label;

	if (asprintf(&label, "%s (%s)", *thread->name ? thread->name : "?", thread->process) < 0)
		return NULL;
	return label;
}

int rows__threads(const struct profile *profile, struct rows *ret)
{
	uint32_t *row_of = calloc(profile->n_threads + 1, sizeof(*row_of));
	struct intern index;
	int code = 0;

	intern__init(&index, UINT32_MAX);
	*ret = (struct rows) { .list = calloc(profile->n_threads + 1, sizeof(*ret->list)),
			       .cap = profile->n_threads + 1 };
	if (!row_of || !ret->list)
		code = -ENOMEM;
	for (size_t i = 0; !code && i < profile->n_threads; i++) {
		const struct profile_thread *thread = &profile->threads[i];
		uint32_t *place = intern__at(&index, thread->pid, thread->tid);
		struct row *row;

		if (!place) {
			code = -ENOMEM;
			break;
		}
		if (!*place)
			*place = ++ret->n;
		row_of[i] = *place - 1;
		row = &ret->list[*place - 1];
		row->pid = thread->pid;
		row->tid = thread->tid;
		free(row->label);
		row->label = thread_label(thread);
		code = row->label ? 0 : -ENOMEM;
	}
	for (size_t i = 0; !code && i < profile->n_shares; i++) {
		const struct profile_share *share = &profile->shares[i];

		ret->list[row_of[share->thread]].total += share->value.weight;
	}
	for (size_t i = 0; !code && i < ret->n; i++)
		ret->list[i].script = ret->list[i].self = ret->list[i].total;
	intern__done(&index);
	free(row_of);
	if (code)
		rows__done(ret);
	else
		drop_empty(ret);
	return code;
}

static uint64_t sorted_by(const struct row *row, enum output_sort sort)
{
	switch (sort) {
	case OUTPUT_SORT_TOTAL:
		return row->total;
	case OUTPUT_SORT_SELF:
		return row->self;
	case OUTPUT_SORT_NAME:
		return 0;
	default:
		return row->script;
	}
}

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct row *x = a, *y = b;
	enum output_sort sort = *(const enum output_sort *)arg;
	uint64_t by_x = sorted_by(x, sort), by_y = sorted_by(y, sort);
	int diff = strcmp(x->label, y->label);

	if (by_x != by_y)
		return by_x > by_y ? -1 : 1;
	if (sort == OUTPUT_SORT_NAME && diff)
		return diff;
	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	if (diff)
		return diff;
	return x->kind != y->kind ? x->kind - y->kind : (x->tid > y->tid) - (x->tid < y->tid);
}

void rows__sort(struct rows *rows, enum output_sort sort)
{
	qsort_r(rows->list, rows->n, sizeof(*rows->list), compare_rows, &sort);
}
