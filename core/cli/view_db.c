// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/view_db.h"

#include <errno.h>
#include <time.h>

#include "core/cli/cli.h"
#include "core/profile/where_match.h"
#include "core/push/from_db.h"
#include "core/push/where.h"

enum { OPT_FROM_DB = 0x600, OPT_WHERE };

static const struct argp_option options[] = {
	{ "from-db", OPT_FROM_DB, "URL", 0,
	  "Read the samples that braid push has sent to "
	  "clickhouse://HOST[:PORT]/DATABASE, instead of a recording",
	  3 },
	{ "where", OPT_WHERE, "EXPRESSION", 0,
	  "Only samples that the expression selects: terms FIELD = VALUE, !=, ~ (a regular "
	  "expression) or !~, joined by and, or, not and parentheses. Fields: service, host, "
	  "container, process, thread, event, pid, tid, time (also <, <=, >, >=: 2026-11-24T06:30, "
	  "now-1h), and in recordings trace, span and label.KEY of the request, and "
	  "value.NAME of a probe",
	  3 },
	{}
};

void view_db__check_where(struct argp_state *state, const char *text)
{
	struct where where;
	struct err err = {};

	if (where__parse(text, time(NULL), &where, &err))
		cli__misused(state, "%s", err.text);
	where__done(&where);
}

/* Parses the expression for a recording. */
static void parse_tree(struct argp_state *state, struct db_opts *opts)
{
	struct err err = {};

	if (where_tree__parse(opts->where, time(NULL), &opts->tree, &err) ||
	    where_match__prepare(opts->tree, &err))
		cli__misused(state, "%s", err.text);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct db_opts *opts = state->input;
	struct err err = {};

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &opts->server;
		break;
	case OPT_FROM_DB:
		opts->text = arg;
		if (url__parse(arg, &opts->url, &err))
			cli__misused(state, "--from-db: %s", err.text);
		if (opts->url.format != URL_CLICKHOUSE)
			cli__misused(state, "--from-db takes clickhouse://HOST[:PORT]/DATABASE");
		break;
	case OPT_WHERE:
		opts->where = arg;
		break;
	case ARGP_KEY_END:
		if (opts->where && opts->text)
			view_db__check_where(state, opts->where);
		else if (opts->where)
			parse_tree(state, opts);
		if (opts->server.is_given && !opts->text)
			cli__misused(state,
				     "--ca-file, --token-file and --timeout require --from-db URL");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp_child children[] = { { &server_argp, 0, NULL, 0 }, {} };

const struct argp db_argp = { .options = options, .parser = parse, .children = children };

int view_db__load(const struct db_opts *opts, const struct profile_filter *filter,
		  struct profile **ret, struct profile ***ret_others, size_t *ret_n,
		  struct err *err)
{
	const struct from_db_opts db = { .url = opts->url,
					 .where = opts->where,
					 .on_wait = server__on_wait,
					 .http = { .ca_file = opts->server.ca_file,
						   .token_file = opts->server.token_file,
						   .timeout_s = opts->server.timeout_s } };
	struct profile_filter of = *filter;
	struct recorded recorded;
	int code;

	if (filter->from.kind || filter->to.kind)
		return err__set(
			err, -EINVAL,
			"--from and --to cannot be used with --from-db. Write time >= and time < "
			"in --where");
	of.times = false; /* no profile over time: that needs a row for each stack and moment */
	code = from_db__load(&db, &of, ret_others != NULL, &recorded, err);
	if (!code && ret_others)
		code = build__profiles(&recorded, opts->text, &of, ret, ret_others, ret_n, err);
	else if (!code)
		code = build__profile(&recorded, opts->text, &of, ret, NULL, err);
	recorded__done(&recorded);
	return code;
}
