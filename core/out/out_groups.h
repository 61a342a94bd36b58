/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUT_GROUPS_H
#define BRAID_OUT_GROUPS_H

#include "core/out/out_rows.h"

/* The groups of --by, and the functions of each group. */

#define GROUP_FUNCTIONS 5U /* functions shown in each group, for people */

struct out_group {
	struct profile *profile; /* the group's samples, with the sums of the whole profile */
	struct out_list list;	 /* functions, those with most weight first */
};

/* Returns the number of groups in a list of functions. They are its first rows. */
size_t out_groups__count(const struct out_list *list);

/* Lists at most @max functions (0: all) of the group in @row of @list. The caller calls
 * out_group__done() in any case. Returns 0 or -ENOMEM. */
int out_group__init(struct out_group *group, const struct out_list *list, const struct out_row *row,
		    const struct output_opts *opts, size_t max);
void out_group__done(struct out_group *group);

#endif
