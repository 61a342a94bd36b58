/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FROM_DB_H
#define BRAID_FROM_DB_H

#include "core/base/err.h"
#include "core/profile/build.h"
#include "core/push/http.h"
#include "core/push/url.h"

/* Loads samples of many recordings and machines from ClickHouse. The server sums them up, and
 * returns a row for each stack, and the frames of these stacks. */

struct from_db_opts {
	struct url url;
	const char *where; /* core/push/where.h; NULL: all */
	struct http_opts http;
	void (*on_wait)(void *ctx, const char *why, double wait_s); /* as in struct sender */
};

/* Loads the samples as one recording: those of the filter's events or, if it names none, of all
 * events (@all_events) or of the default event. Threads are distinguished only if the filter
 * selects or groups by threads, processes or containers.
 *
 * Returns 0, -ENOENT if there are no samples, or -EINVAL if `where` is invalid. Returns -EBADMSG if
 * the answer is invalid. -EREMOTEIO and other errors come with the server's message. The caller
 * must call recorded__done() also on failure. */
int from_db__load(const struct from_db_opts *opts, const struct profile_filter *filter,
		  bool all_events, struct recorded *ret, struct err *err);

#endif
