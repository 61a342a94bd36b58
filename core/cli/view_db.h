/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_VIEW_DB_H
#define BRAID_VIEW_DB_H

#include "core/base/err.h"
#include "core/cli/server_opts.h"
#include "core/profile/build.h"
#include "core/push/url.h"

/* Options of commands that show data of a database instead of a recording. */
struct db_opts {
	const char *text;	 /* the URL as given; NULL: a recording is shown */
	const char *where;	 /* NULL: all */
	struct where_node *tree; /* `where` for a recording; NULL: all; lives until the end */
	struct url url;
	struct server_opts server;
};
#define DB_OPTS_DEFAULT                       \
	{                                     \
		.server = SERVER_OPTS_DEFAULT \
	}

extern const struct argp db_argp; /* child parser; its input is a struct db_opts */

/* Ends the program if @text is not a valid expression for --where. */
void view_db__check_where(struct argp_state *state, const char *text);

/* As load__profile() and load__profiles(); @ret_others NULL: only one event. */
int view_db__load(const struct db_opts *opts, const struct profile_filter *filter,
		  struct profile **ret, struct profile ***ret_others, size_t *ret_n,
		  struct err *err);

#endif
