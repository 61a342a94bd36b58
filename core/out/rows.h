/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ROWS_H
#define BRAID_ROWS_H

#include "core/out/output.h"

/* The rows of a table that is updated while it is shown: functions with script, self and total as
 * in output__table(), or threads with their shares. Rows without weight are left out. */

struct row {
	char *label; /* printable; owned */
	uint8_t kind;
	uint64_t script, self, total; /* all equal for threads */
	uint32_t pid, tid;	      /* 0 for functions */
};

struct rows {
	struct row *list;
	size_t n, cap;
	bool scripts; /* script and self differ in some row */
};

/* Makes rows of functions. Returns 0 or -ENOMEM. The caller then calls rows__done(), which is
 * idempotent. */
int rows__functions(const struct profile *profile, struct rows *ret);
/* Makes rows of the threads of a profile that is divided among them. A thread with several names
 * has the last one. */
int rows__threads(const struct profile *profile, struct rows *ret);
void rows__done(struct rows *rows);

/* Sorts rows. OUTPUT_SORT_DEFAULT: by script if there is such a column, otherwise by self. */
void rows__sort(struct rows *rows, enum output_sort sort);

#endif
