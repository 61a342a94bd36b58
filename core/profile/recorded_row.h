/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDED_ROW_H
#define BRAID_RECORDED_ROW_H

#include <string.h>

#include "core/base/util.h"
#include "core/profile/recorded.h"

/* Adds a zeroed row at the end; NULL: out of memory. RECORDED_NONE is not an index, which limits
 * the number of rows. */
#define add_row(table)                                                                         \
	((table)->n >= RECORDED_NONE || array__reserve(&(table)->rows, &(table)->cap,          \
						       (table)->n + 1, sizeof(*(table)->rows)) \
		 ? NULL                                                                        \
		 : memset(&(table)->rows[(table)->n++], 0, sizeof(*(table)->rows)))

#endif
