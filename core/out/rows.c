// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/intern.h"
#include "core/base/title.h"
#include "core/base/util.h"
#include "core/out/out_rows.h"

void rows__done(struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		free(rows->list[i].label);
	free(rows->list);
	*rows = (struct rows) {};
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

static int add_row(struct rows *rows, const struct out_rows *of, const struct out_row *counted)
{
	struct row *row = &rows->list[rows->n++];

	*row = (struct row) { .label = out_rows__label(of, counted->number, false),
			      .kind = of->keys[counted->number].kind,
			      .script = counted->script,
			      .self = counted->self,
			      .total = counted->total };
	return row->label ? 0 : -ENOMEM;
}

int rows__functions(const struct profile *profile, struct rows *ret)
{
	struct out_row *counted = NULL;
	struct out_rows of;
	int code = out_rows__init(&of, profile, OUTPUT_FUNCTIONS, false);

	*ret = (struct rows) {};
	if (code)
		goto out;
	*ret = (struct rows) { .list = calloc(of.n, sizeof(*ret->list)), .cap = of.n };
	counted = calloc(of.n, sizeof(*counted));
	code = ret->list && counted ? out_rows__count(&of, counted, &ret->scripts) : -ENOMEM;
	for (size_t i = 0; !code && i < of.n; i++)
		if (counted[i].total)
			code = add_row(ret, &of, &counted[i]);
out:
	free(counted);
	out_rows__done(&of);
	if (code)
		rows__done(ret);
	return code;
}

/* Returns "name (process)", as many threads of pools have the same name. */
static char *thread_label(const struct profile_thread *thread)
{
	char title[TITLE_BYTES], *label;

	if (asprintf(&label, "%s (%s)", *thread->name ? thread->name : "?",
		     title__of(thread->process, thread->command, title)) < 0)
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
