/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_BUILD_H
#define BRAID_BUILD_H

#include "core/base/err.h"
#include "core/profile/merge.h"
#include "core/profile/profile.h"
#include "core/profile/recorded.h"

/* What was recorded -> the merged profile of one event. Pure. */

struct profile_filter {
	bool lines;	     /* keep lines apart: frames of one function differ by line */
	bool keep_vm;	     /* show interpreter loops, too */
	uint32_t pid;	     /* 0: all */
	const char *thread;  /* a tid in decimal or a thread name; NULL: all */
	const char *runtime; /* only samples with frames of this kind (its name in the table
				`kind`); NULL: all */
	const char *event;   /* its name; NULL: "cpu", or the first one if there is no such */
};

/* `what`: the recording's name in sentences. 0; -ENOENT, -EINVAL: the filter can select nothing,
 * the sentence says what there is; -ENOMEM. `report` may be NULL. */
int build__profile(const struct recorded *recorded, const char *what,
		   const struct profile_filter *filter, struct profile **ret,
		   struct merge_report *report, struct err *err);

#endif
