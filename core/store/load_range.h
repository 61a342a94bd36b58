/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LOAD_RANGE_H
#define BRAID_LOAD_RANGE_H

#include "core/profile/build.h"
#include "core/profile/recorded.h"

/* Shared by load.c and load_range.c. */

/* Reads one file, limited to @times unless that is NULL, with @columns of time unless that is NULL.
 * The caller must call recorded__done() also on failure. Errors are those of load__profile(). */
int load__file(const char *path, const struct profile_filter *filter,
	       const struct recorded_times *times, const struct recorded_columns *columns,
	       struct recorded *ret, struct err *err);

/* Returns true if @path is a directory, or if the filter selects a part of the time. */
bool load_range__is_set(const char *path, const struct profile_filter *filter);

/* Reads the filter's range of time from the file, or from the recordings in the directory. Returns
 * -ENOENT if there is nothing in the range. The caller must call recorded__done() also on failure.
 * Errors are those of load__profile(). */
int load_range__of(const char *path, const struct profile_filter *filter, struct recorded *ret,
		   struct err *err);

#endif
