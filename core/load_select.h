/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LOAD_SELECT_H
#define BRAID_LOAD_SELECT_H

#include "core/load.h"
#include "core/load_tables.h"

/* What a filter selects in a recording. A filter that can select nothing is an error that says
 * what there is. */

/* -> `*ret_wanted` for load_tables__samples, owned; NULL: all. 0, -ENOENT, -ENOMEM. */
int load_select__threads(const struct load_tables *tables, const struct load_filter *filter,
			 bool **ret_wanted, struct err *err);

/* -> the bits of load_node.kinds of which a stack must have one; 0: all stacks do. 0, -EINVAL. */
int load_select__kinds(const struct load_tables *tables, const struct load_filter *filter,
		       uint32_t *ret_kinds, struct err *err);

#endif
