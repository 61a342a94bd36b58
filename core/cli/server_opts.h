/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SERVER_OPTS_H
#define BRAID_SERVER_OPTS_H

#include <argp.h>
#include <stdbool.h>

/* Options of commands that connect to a server. */
struct server_opts {
	const char *ca_file, *token_file; /* NULL: none */
	double timeout_s;
	bool is_given; /* one of the options was given */
};
#define SERVER_OPTS_DEFAULT     \
	{                       \
		.timeout_s = 60 \
	}

/* As in struct sender: prints why a server is unavailable, and the time of the next attempt. */
void server__on_wait(void *ctx, const char *why, double wait_s);

extern const struct argp server_argp; /* child parser; its input is a struct server_opts */

#endif
