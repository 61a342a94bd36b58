/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ROWS_H
#define BRAID_ROWS_H

#include "core/out/output.h"

/* The rows of a table that changes while it is looked at: functions with script, self and total as
 * output__table defines them, or threads with their shares of all. What has none is left out. */

struct row {
	char *label; /* printable; owned */
	uint8_t kind;
	uint64_t script, self, total; /* of threads all the same */
	uint32_t pid, tid;	      /* of threads; else 0 */
};

struct rows {
	struct row *list;
	size_t n, cap;
	bool scripts; /* there is a difference between script and self */
};

/* 0 or -ENOMEM; then rows__done, which is idempotent. */
int rows__functions(const struct profile *profile, struct rows *ret);
/* Of a profile that is divided among threads. One that had several names has the last of them. */
int rows__threads(const struct profile *profile, struct rows *ret);
void rows__done(struct rows *rows);

/* OUTPUT_SORT_DEFAULT: by script where there is such a column, else by self. */
void rows__sort(struct rows *rows, enum output_sort sort);

#endif
