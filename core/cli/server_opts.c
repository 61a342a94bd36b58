// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/server_opts.h"

#include <stdio.h>

#include "core/base/escape.h"
#include "core/cli/cli.h"

enum { OPT_CA_FILE = 0x500, OPT_TOKEN_FILE, OPT_TIMEOUT };

static const struct argp_option options[] = {
	{ "ca-file", OPT_CA_FILE, "FILE", 0,
	  "Trust the certificates in FILE instead of those of the system", 3 },
	{ "token-file", OPT_TOKEN_FILE, "FILE", 0,
	  "Credentials for the server: a file with one line, user:password or a "
	  "bearer token",
	  3 },
	{ "timeout", OPT_TIMEOUT, "SECONDS", 0, "Time limit of a request (default 60)", 3 },
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct server_opts *opts = state->input;

	switch (key) {
	case OPT_CA_FILE:
		opts->ca_file = cli__text(state, "--ca-file", arg);
		opts->is_given = true;
		break;
	case OPT_TOKEN_FILE:
		opts->token_file = cli__text(state, "--token-file", arg);
		opts->is_given = true;
		break;
	case OPT_TIMEOUT:
		opts->timeout_s = cli__number(state, "--timeout", arg, 0.01, 86400);
		opts->is_given = true;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

const struct argp server_argp = { .options = options, .parser = parse };

void server__on_wait(void *ctx, const char *why, double wait_s)
{
	(void)ctx;
	escape__line(stderr, "%s; next attempt in %.3g s", why, wait_s);
}
