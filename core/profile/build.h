/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_BUILD_H
#define BRAID_BUILD_H

#include "core/base/err.h"
#include "core/profile/group.h"
#include "core/profile/merge.h"
#include "core/profile/profile.h"
#include "core/profile/recorded.h"
#include "core/profile/times.h"
#include "runtimes/function_rules.h"
#include "runtimes/idle.h"

/* Converts a recording to the merged profile of one event. Pure: no files, no state. */

struct where_node; /* core/profile/where_tree.h */

struct profile_filter {
	bool lines;	     /* separate lines: frames of one function differ by line */
	bool addresses;	     /* separate addresses of native code */
	bool evidence;	     /* separate inferred frames from proven ones */
	bool keep_vm;	     /* show interpreter loops */
	uint32_t pid;	     /* 0: all */
	const char *thread;  /* a tid in decimal or a thread name; NULL: all */
	const char *runtime; /* only samples with frames of this kind (its name in the table
				`kind`); NULL: all */
	const char *event;   /* name of an event, or of several with one unit, separated by commas;
				NULL: "cpu", or the first event if there is no "cpu" */
	const char *container;	/* id or name, or a prefix of one; NULL: all samples, also those
				   without a container */
	const char *cgroup;	/* path of a cgroup; also selects the cgroups below; NULL: all */
	const char *not_thread; /* threads to leave out: as for `thread`, or an extended regular
				   expression that matches the whole name; NULL: none */
	uint32_t states;	/* only samples in these states: 1 << enum thread_state; 0: all */
	enum profile_by by;	/* subject of the outermost level */
	bool split_states;	/* a level with the state of the thread, inside of `by` */
	const char *label;	/* key of PROFILE_BY_LABEL; else NULL */
	const struct where_node *where; /* only samples that this expression selects; NULL: all */
	uint64_t min_age_ns;		/* outstanding events: only objects of this age or older */
	bool wakers;			/* show the thread that ended a wait, inside the wait */
	bool threads;			/* divide values among threads: profile->shares */
	bool tasks;	/* divide values among threads and their tasks: profile->shares */
	bool times;	/* also divide values among columns of time: profile->cells */
	bool instants;	/* as `times`, with columns of 1 ns */
	bool histogram; /* also make histograms of the samples' values: one of all, and one of each
			   group */
	const char *histogram_of; /* recorded value ("value.n") whose histograms they are; NULL: the
				     event's own; outlives the profile */
	bool histogram_stacks;	  /* one histogram of each stack instead of each group */
	/* Rules by which idle waits of events in ns are left out (core/profile/idle.h); NULL: no
	 * wait is left out. */
	const struct idle_rule *const *idle;
	bool hide_unbroken;			   /* also leave out profile->unbroken */
	const char *const *callers;		   /* as in struct profile; outlives it */
	const struct function_rules *const *rules; /* as in struct profile; outlives it */
	struct profile_time from, to;		   /* only samples of this period */
	/* Called for each recording of several that is left out, with the reason as a sentence; may
	 * be NULL. */
	void (*on_skipped)(void *ctx, const char *why);
	void *ctx;
};

/* Builds the profile that @filter selects. @what is the recording's name in messages; @report may
 * be NULL. Returns 0, -ENOMEM, or -ENOENT or -EINVAL if the filter can select nothing. The message
 * then lists the possible choices. */
int build__profile(const struct recorded *recorded, const char *what,
		   const struct profile_filter *filter, struct profile **ret,
		   struct merge_report *report, struct err *err);

/* Builds the profiles of all events. *@ret is the profile of build__profile(). *@ret_others are
 * those of the other events that have samples; the caller frees each profile, and the array. */
int build__profiles(const struct recorded *recorded, const char *what,
		    const struct profile_filter *filter, struct profile **ret,
		    struct profile ***ret_others, size_t *ret_n, struct err *err);

#endif
