/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FROM_DB_H
#define BRAID_FROM_DB_H

#include "core/base/err.h"
#include "core/profile/build.h"
#include "core/push/http.h"
#include "core/push/url.h"

/* Samples of many recordings, of many machines, out of ClickHouse: summed up there, so that what
 * comes is a row for each stack, and the frames of those. */

struct from_db_opts {
	struct url url;
	const char *where; /* core/push/where.h; NULL: all */
	struct http_opts http;
	void (*on_wait)(void *ctx, const char *why, double wait_s); /* as in struct sender */
};

/* What is there, as if it had been recorded at once. Of the events that the filter names; of none,
 * all if `all_events`, else the one that is shown without being asked for. Threads are told apart
 * only where the filter asks for some, or for what is whose. -ENOENT: there is nothing; -EINVAL:
 * `where` makes no sense; -EREMOTEIO and others from the server, with its words; -EBADMSG: what it
 * says makes no sense. Call recorded__done in any case. */
int from_db__load(const struct from_db_opts *opts, const struct profile_filter *filter,
		  bool all_events, struct recorded *ret, struct err *err);

#endif
