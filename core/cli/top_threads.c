// SPDX-License-Identifier: GPL-2.0-or-later
/* Rows for threads without samples: threads that do not run are often the ones of interest. */
#include "core/cli/top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/intern.h"
#include "core/base/title.h"
#include "core/base/util.h"
#include "core/target/procfs.h"
#include "core/target/threads.h"

#define ADDED_MAX 1000 /* reading /proc for more would take too long at each update */

static int add_row(struct rows *rows, uint32_t pid, uint32_t tid, const char *process)
{
	struct thread_now thread;
	struct row row = { .pid = pid, .tid = tid };

	if (!thread__read(pid, tid, &thread))
		return 0;
	if (asprintf(&row.label, "%s (%s)", thread.name, process) < 0)
		return -ENOMEM;
	if (array__reserve(&rows->list, &rows->cap, rows->n + 1, sizeof(*rows->list))) {
		free(row.label);
		return -ENOMEM;
	}
	escape__printable(row.label);
	rows->list[rows->n++] = row;
	return 0;
}

static int add_process(struct rows *rows, struct intern *known, uint32_t pid, size_t max)
{
	struct procfs_info info;
	char title[TITLE_BYTES];
	uint32_t *tids = NULL;
	size_t n = 0;
	int ret = 0;

	if (procfs__info(pid, &info, NULL) || threads__list(pid, &tids, &n))
		return 0; /* it has ended */
	for (size_t i = 0; !ret && i < n && rows->n < max; i++) {
		uint32_t *place = intern__at(known, tids[i], 0);

		if (place && *place)
			continue;
		ret = place ? add_row(rows, pid, tids[i], title__of(info.name, info.command, title))
			    : -ENOMEM;
		if (place)
			*place = 1;
	}
	free(tids);
	return ret;
}

int top__add_threads(struct top *top)
{
	size_t n = top->opts.n_pids, max = top->rows.n + ADDED_MAX;
	uint32_t command = session__command_pid(top->session), *pids;
	struct intern known;
	int ret = 0;

	pids = calloc(n + 1, sizeof(*pids));
	if (!pids)
		return -ENOMEM;
	if (n)
		memcpy(pids, top->opts.pids, n * sizeof(*pids));
	if (command)
		pids[n++] = command;
	intern__init(&known, UINT32_MAX);
	if (!top->opts.no_children)
		ret = processes__add_children(&pids, &n);
	for (size_t i = 0; !ret && i < top->rows.n; i++) {
		uint32_t *place = intern__at(&known, top->rows.list[i].tid, 0);

		if (place)
			*place = 1;
		else
			ret = -ENOMEM;
	}
	for (size_t i = 0; !ret && i < n; i++)
		ret = add_process(&top->rows, &known, pids[i], max);
	intern__done(&known);
	free(pids);
	return ret;
}
