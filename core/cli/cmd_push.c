// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/cli/cli.h"
#include "core/cli/server_opts.h"
#include "core/push/clickhouse.h"
#include "core/push/push.h"

/* `braid push`: sends recordings to a server. */

#define GIVE_UP_DEFAULT_S  600 /* without --watch */
#define MAX_WAIT_DEFAULT_S 60
#define DAYS_DEFAULT	   30

enum {
	OPT_TO = 0x400,
	OPT_WATCH,
	OPT_INIT,
	OPT_CLUSTER,
	OPT_DAYS,
	OPT_SERVICE,
	OPT_HOST,
	OPT_STATE,
	OPT_BATCH,
	OPT_MAX_WAIT,
	OPT_GIVE_UP,
};

static const struct argp_option options[] = {
	{ "to", OPT_TO, "URL", 0,
	  "The server: FORMAT://HOST[:PORT][/PATH], or FORMAT+https://...; FORMAT is "
	  "clickhouse (the path names the database), pyroscope or otlp",
	  0 },
	{ "watch", OPT_WATCH, NULL, 0,
	  "Continue with each recording that record --rotate finishes in the "
	  "directory, until Ctrl-C",
	  0 },
	{ "service", OPT_SERVICE, "NAME", 0,
	  "Name of the service that was recorded (default: the service that each "
	  "process published, else the name of the process)",
	  0 },
	{ "host", OPT_HOST, "NAME", 0, "Name of the host that was recorded (default: as recorded)",
	  0 },
	{ "init", OPT_INIT, NULL, 0,
	  "ClickHouse: create the database and the tables that are missing; FILE or "
	  "DIR is then optional",
	  1 },
	{ "cluster", OPT_CLUSTER, "NAME", 0,
	  "With --init: create tables for this cluster of the server's "
	  "configuration; to be run for each of its servers",
	  1 },
	{ "days", OPT_DAYS, "N|all", 0, "With --init: delete samples after N days (default 30)",
	  1 },
	{ "state", OPT_STATE, "FILE", 0,
	  "File with the numbers of the samples that the server acknowledged "
	  "(default: a hidden file beside the recordings)",
	  2 },
	{ "batch", OPT_BATCH, "SAMPLES", 0,
	  "At most SAMPLES samples in a request, a power of two (default 65536)", 2 },
	{ "max-wait", OPT_MAX_WAIT, "SECONDS", 0,
	  "Longest time between two attempts, unless the server requires a longer "
	  "one (default 60)",
	  2 },
	{ "give-up", OPT_GIVE_UP, "SECONDS|never", 0,
	  "Fail if the server has not answered for SECONDS (default 600, with "
	  "--watch never)",
	  2 },
	{}
};

struct push_command {
	struct push_opts push;
	struct server_opts server;
	struct clickhouse_layout layout;
	const char *to;
	bool init, days_given, give_up_given;
};

static void check(struct argp_state *state, struct push_command *command)
{
	struct push_opts *push = &command->push;
	struct err err = {};

	if (!command->to)
		cli__misused(state, "name the server with --to URL");
	if (url__parse(command->to, &push->url, &err))
		cli__misused(state, "--to: %s", err.text);
	if (!push->source && !command->init)
		cli__misused(state, "name a recording, or a directory of them");
	if (command->init && push->url.format != URL_CLICKHOUSE)
		cli__misused(state, "--init creates tables and requires --to clickhouse://...");
	if (!command->init && (command->layout.cluster || command->days_given))
		cli__misused(state, "--cluster and --days require --init");
	if (command->layout.cluster &&
	    (!*command->layout.cluster || strpbrk(command->layout.cluster, "'\\\"`;() \t\n")))
		cli__misused(state, "'%s' is not the name of a cluster", command->layout.cluster);
	if (command->server.ca_file && !push->url.secure)
		cli__misused(state, "--ca-file requires a URL FORMAT+https://...");
	if (push->watch && !push->source)
		cli__misused(state, "--watch requires a directory");
	if (!command->give_up_given)
		push->give_up_s = push->watch ? 0 : GIVE_UP_DEFAULT_S;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct push_command *command = state->input;
	struct push_opts *push = &command->push;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &command->server;
		break;
	case OPT_TO:
		command->to = arg;
		break;
	case OPT_WATCH:
		push->watch = true;
		break;
	case OPT_SERVICE:
		push->service = cli__text(state, "--service", arg);
		break;
	case OPT_HOST:
		push->host = cli__text(state, "--host", arg);
		break;
	case OPT_INIT:
		command->init = true;
		break;
	case OPT_CLUSTER:
		command->layout.cluster = cli__text(state, "--cluster", arg);
		break;
	case OPT_DAYS:
		command->days_given = true;
		command->layout.days =
			!strcmp(arg, "all") ? 0
					    : cli__number(state, "--days (or all)", arg, 1, 36500);
		break;
	case OPT_STATE:
		push->state = cli__text(state, "--state", arg);
		break;
	case OPT_BATCH:
		push->batch = cli__number(state, "--batch", arg, 1, 1 << 20);
		if (push->batch & (push->batch - 1))
			cli__misused(state, "--batch takes a power of two, not '%s'", arg);
		break;
	case OPT_MAX_WAIT:
		push->max_wait_s = cli__number(state, "--max-wait", arg, 0.01, 3600);
		break;
	case OPT_GIVE_UP:
		command->give_up_given = true;
		push->give_up_s = !strcmp(arg, "never") ? 0
							: cli__number(state, "--give-up (or never)",
								      arg, 0.01, 1e9);
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			cli__misused(state, "one recording or directory at a time, not also '%s'",
				     arg);
		push->source = cli__text(state, "the name of the recording", arg);
		break;
	case ARGP_KEY_END:
		check(state, command);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* ---- output ---- */

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static bool stops(void *ctx)
{
	(void)ctx;
	return stopped;
}

static void on_pushed(void *ctx, const char *name, uint64_t samples)
{
	(void)ctx;
	escape__line(stdout, "%s: %" PRIu64 " samples sent", name, samples);
	fflush(stdout);
}

static void on_refused(void *ctx, const char *name, const char *why)
{
	(void)ctx;
	cli__fail("%s is left out: %s", name, why);
}

static void on_removed(void *ctx, uint64_t n)
{
	(void)ctx;
	cli__fail("%" PRIu64 " recordings were removed before they were sent", n);
}

static void on_idle(void *ctx)
{
	const struct push_command *command = ctx;

	escape__line(stderr, "no finished recording in %s yet: waiting", command->push.source);
}

/* ---- execution ---- */

static int create(struct push_command *command)
{
	const struct push_opts *push = &command->push;
	struct http *http = NULL;
	struct sender sender = { .max_wait_s = push->max_wait_s,
				 .give_up_s = push->give_up_s ? push->give_up_s : GIVE_UP_DEFAULT_S,
				 .stops = stops,
				 .on_wait = server__on_wait,
				 .ctx = command };
	struct clickhouse clickhouse;
	struct clickhouse_created created;
	struct err err = {};
	enum sent sent = SENT_FAILED;

	if (!http__new(&push->http, &http, &err)) {
		sender.http = http;
		if (!clickhouse__init(&clickhouse, &push->url, &sender, &err))
			sent = clickhouse__create(&clickhouse, &command->layout, &created, &err);
	}
	http__free(http);
	if (sent != SENT_OK)
		return sent == SENT_STOPPED ? EXIT_FAILED : cli__fail("%s", err.text);
	escape__line(stdout, "the tables of braid are in %s", clickhouse.what);
	if (created.no_ttl)
		fprintf(stderr,
			"this server is too old to remove old samples by itself. Remove them with "
			"ALTER TABLE braid_samples DROP PARTITION (docs/reference/push.md)\n");
	if (created.incomplete)
		fprintf(stderr,
			"other servers of the cluster have no tables yet. Run --init for each of "
			"them, too\n");
	return EXIT_OK;
}

static int push_all(struct push_command *command)
{
	struct push_result result;
	struct err err = {};
	int code = push__run(&command->push, &result, &err);

	if (code)
		return cli__fail("%s", err.text);
	if (result.stopped)
		fprintf(stderr, "stopped; samples that were acknowledged are not sent again\n");
	else if (!result.recordings && !result.refused && !result.removed)
		escape__line(stderr, "nothing new in %s: all samples were sent there before",
			     command->push.source);
	return result.refused || result.removed ? EXIT_FAILED : EXIT_OK;
}

int cmd_push(int argc, char **argv, const struct runtime *const *runtimes)
{
	static const struct argp_child children[] = { { &server_argp, 0, NULL, 0 }, {} };
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[FILE|DIR]",
		.doc = "Send finished recordings to a server: a file, or all NAME.db of a "
		       "directory. Needs no privileges. Samples that were acknowledged are not "
		       "sent again.\v"
		       "Examples:\n"
		       "  braid push --to clickhouse://localhost/braid --init\n"
		       "  braid push app.db --to clickhouse://localhost/braid --service web\n"
		       "  braid push /var/lib/braid --watch --token-file token --to "
		       "otlp+https://collector:4318\n"
		       "  braid push app.db --to pyroscope://localhost:4040",
		.children = children,
	};
	struct push_command command = {
		.push = { .batch = PUSH_BATCH_DEFAULT,
			  .max_wait_s = MAX_WAIT_DEFAULT_S,
			  .on_wait = server__on_wait,
			  .on_pushed = on_pushed,
			  .on_refused = on_refused,
			  .on_removed = on_removed,
			  .on_idle = on_idle },
		.server = SERVER_OPTS_DEFAULT,
		.layout.days = DAYS_DEFAULT,
	};
	const struct sigaction stop = { .sa_handler = on_signal };
	int status = EXIT_OK;

	(void)runtimes;
	argp_parse(&argp, argc, argv, 0, NULL, &command);
	command.push.http = (struct http_opts) { .ca_file = command.server.ca_file,
						 .token_file = command.server.token_file,
						 .timeout_s = command.server.timeout_s,
						 .stops = stops,
						 .ctx = &command };
	signal(SIGXFSZ, SIG_IGN); /* writing then fails with an error, which is reported */
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	if (command.init)
		status = create(&command);
	if (!status && command.push.source)
		status = push_all(&command);
	return status;
}
