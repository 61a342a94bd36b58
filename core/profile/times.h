/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TIMES_H
#define BRAID_TIMES_H

#include <stdint.h>

/* A time that a user gives. */
enum profile_time_kind {
	TIME_NOT_GIVEN,
	TIME_ABSOLUTE,	  /* `ns` since 1970, UTC */
	TIME_AFTER_BEGIN, /* `ns` after the recording begins */
	TIME_BEFORE_END,  /* `ns` before the recording ends */
};

struct profile_time {
	enum profile_time_kind kind;
	int64_t ns;
};

#endif
