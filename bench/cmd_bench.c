// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "core/base/escape.h"
#include "core/cli/cli.h"

/* `braid bench`: the cost of probes and sampling on this machine. */

struct bench_cmd {
	struct bench_opts bench;
	struct session_opts target; /* set by the parser of -p, -d, -r and COMMAND */
	uint32_t *pids;
	bool runtimes; /* -r was given */
	bool json;
	const char *output; /* NULL: standard output */
	bool force;
	struct result *result;
};

enum { OPT_FORMAT = 0x100, OPT_FORCE };

static const struct argp_option options[] = {
	{ "pid", 'p', "PID", 0, "Count the hits of this process's probes, and what they cost", 0 },
	{ "duration", 'd', "SECONDS", 0,
	  "With -p: count for SECONDS (default 2). With a command: stop after SECONDS (default: "
	  "40, and at least three rounds). With -r: SECONDS for each runtime",
	  0 },
	{ "runtimes", 'r', "RUNTIME,...", 0,
	  "Alone: run bundled workloads of these runtimes, if they are installed. With -p or a "
	  "command: measure only these runtimes",
	  1 },
	{ "format", OPT_FORMAT, "FORMAT", 0, "table (default) or json", 2 },
	{ "output", 'o', "FILE", 0, "Write to FILE instead of standard output", 2 },
	{ "force", OPT_FORCE, NULL, 0, FORCE_HELP, 2 },
	CLI_VERBOSE_OPTION,
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct bench_cmd *cmd = state->input;

	switch (key) {
	case OPT_FORMAT:
		if (strcmp(arg, "table") && strcmp(arg, "json"))
			cli__misused(state, "--format takes table or json, not '%s'", arg);
		cmd->json = !strcmp(arg, "json");
		break;
	case 'o':
		cmd->output = cli__text(state, "-o", arg);
		break;
	case OPT_FORCE:
		cmd->force = true;
		break;
	case 'r':
		cmd->runtimes = true;
		return cli__parse_target(key, arg, state, &cmd->target, &cmd->pids);
	case ARGP_KEY_END: /* a target is optional here */
		if (cmd->target.command && cmd->target.n_pids)
			cli__misused(state, "give either -p PID or -- COMMAND, or neither");
		if (cmd->target.n_pids > 1)
			cli__misused(state, "bench -p takes only one process");
		if (!strcmp(state->argv[state->argc - 1], "--"))
			cli__misused(state, "the command after -- is missing");
		if (cmd->target.duration_s > 0 && !cmd->target.command && !cmd->target.n_pids &&
		    !cmd->runtimes)
			cli__misused(state, "-d requires -p, -r or a command");
		break;
	default:
		return cli__parse_target(key, arg, state, &cmd->target, &cmd->pids);
	}
	return 0;
}

static void print_step(const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = escape__format(fmt, args);
	va_end(args);
	fprintf(stderr, "%s\n", text ? text : "");
	free(text);
}

static int write_result(void *ctx, FILE *out)
{
	const struct bench_cmd *cmd = ctx;

	return result__write(cmd->result, cmd->json, out);
}

static int run(struct bench_cmd *cmd)
{
	int (*measure)(const struct bench_opts *, struct result *, struct err *);
	const struct output_place place = { cmd->output, true, cmd->force, 0 };
	struct err err = {};
	int ret;

	if (output_file__check(&place, &err))
		return cli__fail("%s", err.text);
	cmd->result = result__new();

	cmd->bench.enabled = cmd->target.enabled;
	cmd->bench.pid = cmd->target.n_pids ? cmd->pids[0] : 0;
	cmd->bench.command = cmd->target.command;
	cmd->bench.duration_s = cmd->target.duration_s;
	measure = cmd->bench.pid       ? bench__process
		  : cmd->bench.command ? bench__command
		  : cmd->runtimes      ? bench__runtimes
				       : bench__machine;
	ret = cmd->result ? measure(&cmd->bench, cmd->result, &err)
			  : err__set(&err, -ENOMEM, "out of memory");
	ret = ret ? cli__fail("%s", err.text) : cli__write(&place, write_result, cmd);
	result__free(cmd->result);
	return ret;
}

int cmd_bench(int argc, char **argv, const struct runtime *const *runtimes)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "\n-p PID\n-- COMMAND...",
		.doc = "Measure the cost of probes and sampling on this machine: without a target, "
		       "by themselves (in under 20 seconds); with -r, on bundled workloads; with a "
		       "command, on several runs of that command; with -p, count the probe hits of "
		       "a running process and compute their cost here. Needs root, as `record` "
		       "does.\vExamples:\n  braid bench\n  braid bench -r python,ruby\n  braid "
		       "bench -- python3 app.py --option\n  braid bench -p 4711 --format json",
	};
	struct bench_cmd cmd = { .bench = { .runtimes = runtimes, .on_step = print_step },
				 .target = { .runtimes = runtimes, .enabled = UINT32_MAX } };
	int status;

	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &cmd);
	status = run(&cmd);
	free(cmd.pids);
	return status;
}
