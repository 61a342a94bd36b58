/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_VIEW_TIME_H
#define BRAID_VIEW_TIME_H

#include <time.h>

#include "core/profile/times.h"

#define TIMES_TAKEN                                                       \
	"a time (2026-11-24T06:30, 06:30:05, local unless Z or +01:00 "   \
	"follows, or @SECONDS), -10m (before the end) or 10m (after the " \
	"beginning; s, m, h, d)"

/* Converts a user's text to a time, relative to @now. Returns 0 or -EINVAL. */
int view_time__parse(const char *text, time_t now, struct profile_time *ret);

#endif
