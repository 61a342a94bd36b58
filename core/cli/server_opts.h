/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SERVER_OPTS_H
#define BRAID_SERVER_OPTS_H

#include <argp.h>

/* Options of commands that talk to a server. */
struct server_opts {
	const char *ca_file, *token_file; /* NULL: none */
	double timeout_s;
};
#define SERVER_OPTS_DEFAULT     \
	{                       \
		.timeout_s = 60 \
	}

extern const struct argp server_argp; /* child parser; its input is a struct server_opts */

#endif
