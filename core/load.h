/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LOAD_H
#define BRAID_LOAD_H

#include "core/err.h"
#include "core/merge.h"
#include "core/profile.h"

/* Recording -> merged profile. Needs nothing but the file; the file is untrusted. */

struct load_filter {
	bool lines;	     /* keep lines apart: frames of one function differ by line */
	bool keep_vm;	     /* show interpreter loops, too */
	uint32_t pid;	     /* 0: all */
	const char *thread;  /* a tid in decimal or a thread name; NULL: all */
	const char *runtime; /* only samples with frames of this kind (its name in the table
				`kind`); NULL: all */
};

/* -ENOENT no such file; -EBADMSG not a braid recording, of an unknown schema version, corrupt or
 * truncated; -ENOMEM; the sentence in `err` names the file. A recording whose writer was killed
 * is read up to its last commit. */
int load__profile(const char *path, const struct load_filter *filter, struct profile **ret,
		  struct merge_report *report, struct err *err);

#endif
