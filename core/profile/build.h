/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_BUILD_H
#define BRAID_BUILD_H

#include "core/base/err.h"
#include "core/profile/group.h"
#include "core/profile/merge.h"
#include "core/profile/profile.h"
#include "core/profile/recorded.h"
#include "core/profile/times.h"
#include "runtimes/code_rules.h"
#include "runtimes/idle.h"

/* What was recorded -> the merged profile of one event. Pure. */

struct profile_filter {
	bool lines;		/* keep lines apart: frames of one function differ by line */
	bool addresses;		/* the same by the address of native code */
	bool evidence;		/* keep inferred frames apart from proven ones */
	bool keep_vm;		/* show interpreter loops, too */
	uint32_t pid;		/* 0: all */
	const char *thread;	/* a tid in decimal or a thread name; NULL: all */
	const char *runtime;	/* only samples with frames of this kind (its name in the table
				   `kind`); NULL: all */
	const char *event;	/* its name, or those of several of one unit, with commas; NULL:
				   "cpu", or the first one if there is no such */
	const char *container;	/* its id or name, or how that begins; NULL: any, or none */
	const char *cgroup;	/* its path: that, or one below; NULL: any */
	const char *not_thread; /* not these: as for `thread`, or an extended regular expression
				   that the whole name fits; NULL: none */
	uint32_t states;	/* only samples of these: 1 << enum thread_state; 0: all */
	enum profile_by by;	/* the outermost level */
	uint64_t min_age_ns;	/* of what is outstanding only what has been held so long */
	bool wakers;		/* what has ended a wait is shown inside it */
	bool threads;		/* divide values among threads: profile->shares */
	bool tasks;		/* the same, of a thread among its tasks */
	bool times;		/* the same, and among columns of time: profile->cells */
	bool instants;		/* the same, with columns of 1 ns */
	bool histogram;		/* of the samples' values, too, in all and of each group */
	bool histogram_stacks;	/* and of each stack instead of each group */
	/* Idle waits of events in ns are left out by these rules (core/profile/idle.h); NULL: none
	 * are. */
	const struct idle_rule *const *idle;
	const char *const *callers;	       /* as in struct profile; outlives it */
	const struct code_rules *const *rules; /* the same */
	struct profile_time from, to;	       /* only samples of this time */
	/* Of several recordings, each that is left out, in a sentence; may be NULL. */
	void (*on_skipped)(void *ctx, const char *why);
	void *ctx;
};

/* `what`: the recording's name in sentences. 0; -ENOENT, -EINVAL: the filter can select nothing,
 * the sentence says what there is; -ENOMEM. `report` may be NULL. */
int build__profile(const struct recorded *recorded, const char *what,
		   const struct profile_filter *filter, struct profile **ret,
		   struct merge_report *report, struct err *err);

/* The same of all events: `ret` is what build__profile gives, `ret_others` are those of the events
 * that it is not of and that have samples, which the caller frees one by one and as a list. */
int build__profiles(const struct recorded *recorded, const char *what,
		    const struct profile_filter *filter, struct profile **ret,
		    struct profile ***ret_others, size_t *ret_n, struct err *err);

#endif
