/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LOAD_RANGE_H
#define BRAID_LOAD_RANGE_H

#include "core/profile/build.h"
#include "core/profile/recorded.h"

/* Between load.c and load_range.c. */

/* One file, of which times, and its columns of time, if they have a width. Call recorded__done in
 * any case. Errors as load__profile. */
int load__file(const char *path, const struct profile_filter *filter,
	       const struct recorded_times *times, const struct recorded_columns *columns,
	       struct recorded *ret, struct err *err);

/* Is it about a directory, or about a part of the time? */
bool load_range__is_wanted(const char *path, const struct profile_filter *filter);

/* What the filter's time has of the file, or of the recordings in the directory. -ENOENT: nothing.
 * The same. */
int load_range__of(const char *path, const struct profile_filter *filter, struct recorded *ret,
		   struct err *err);

#endif
