// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"

/* `braid calls`: counts and times every call, by probes. */

struct calls_cmd {
	struct session_opts session;
	uint32_t *pids;
	const char *output; /* NULL: standard output */
	bool force;
	struct profile *profile; /* set at the end */
	struct output_opts writing;
	const struct output_format *format;
	bool lines;
	unsigned probed; /* number of processes with working probes */
};

enum { OPT_FORMAT = 0x100, OPT_ROWS, OPT_LINES, OPT_ANNOTATE, OPT_MAX_OVERHEAD, OPT_FORCE };

static const struct argp_option options[] = {
	{ "pid", 'p', "PID[,PID...]", 0, "Count the calls of these running processes", 0 },
	CLI_NO_CHILDREN_OPTION,
	{ "duration", 'd', "SECONDS", 0,
	  "Stop after SECONDS (default: when the target exits or on Ctrl-C)", 0 },
	{ "runtimes", 'r', "RUNTIME,...", 0, "Only these runtimes (default: all that are found)",
	  1 },
	{ "max-overhead", OPT_MAX_OVERHEAD, "PCT", 0,
	  "Limit the cost of probes to PCT percent of all CPUs' time, 0.1 to 100, or "
	  "none (default 5 with -p, none with a command): above it, counting ends",
	  1 },
	{ "format", OPT_FORMAT, "FORMAT", 0,
	  "table (default): calls, self time and total time of each function; tree: "
	  "the same by caller; chrome: JSON for Perfetto, one slice for all calls of "
	  "a path; others as in braid report: stacks weighted by time",
	  2 },
	{ "rows", OPT_ROWS, "N", 0, "At most N rows of a table or tree (default: all)", 2 },
	{ "lines", OPT_LINES, NULL, 0, "Show the first line of each function", 2 },
	{ "annotate", OPT_ANNOTATE, NULL, 0, "Append the kind to each name: _[py], ...", 2 },
	{ "output", 'o', "FILE", 0, "Write to FILE instead of standard output", 2 },
	{ "force", OPT_FORCE, NULL, 0,
	  FORCE_HELP "; replace return addresses of the interpreter where its returns cannot be "
		     "probed, which aborts a target if an exception passes through one",
	  2 },
	CLI_VERBOSE_OPTION,
	{}
};

static bool can_probe(const struct session_opts *opts)
{
	bool can = false;

	for (int i = 0; opts->runtimes[i]; i++)
		can = can || (opts->enabled & 1U << i && opts->runtimes[i]->probes);
	return can;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct calls_cmd *cmd = state->input;
	struct session_opts *opts = &cmd->session;

	switch (key) {
	case OPT_FORMAT:
		cmd->format = output__find_format(arg);
		if (!cmd->format)
			cli__misused(state, "--format takes " OUTPUT_FORMATS ", not '%s'", arg);
		break;
	case OPT_ROWS:
		cmd->writing.rows = cli__number(state, "--rows", arg, 1, 1e9);
		break;
	case OPT_LINES:
		cmd->lines = true;
		break;
	case OPT_ANNOTATE:
		cmd->writing.annotate = true;
		break;
	case 'o':
		cmd->output = cli__text(state, "-o", arg);
		break;
	case OPT_FORCE:
		cmd->force = cmd->session.force = true;
		break;
	case OPT_MAX_OVERHEAD:
		cli__max_overhead(state, arg, opts);
		break;
	case ARGP_KEY_END:
		cli__parse_target(key, arg, state, opts, &cmd->pids);
		cli__default_max_overhead(opts);
		if (!can_probe(opts))
			cli__misused(state, "-r: none of these runtimes has probes for calls");
		break;
	default:
		return cli__parse_target(key, arg, state, opts, &cmd->pids);
	}
	return 0;
}

static uint32_t bit_of(const struct calls_cmd *cmd, const struct runtime *runtime)
{
	int i = 0;

	while (cmd->session.runtimes[i] != runtime)
		i++;
	return 1U << i;
}

static void on_source(void *ctx, struct process *process, const struct runtime *runtime,
		      const char *version, const char *source, const char *reason)
{
	struct calls_cmd *cmd = ctx;

	if (!strcmp(source, "none") && process->probed & bit_of(cmd, runtime))
		cmd->probed--; /* its probes never fire */
	else if (strcmp(source, "none") != 0 && strcmp(source, "silent") != 0)
		cmd->probed++;
	cli__print_source(process->pid, runtime->name, version, source, reason);
}

static void on_note(void *ctx, const char *text)
{
	(void)ctx;
	escape__line(stderr, "%s", text);
}

static int write_profile(void *ctx, FILE *out)
{
	const struct calls_cmd *cmd = ctx;

	return cmd->format->write(cmd->profile, &cmd->writing, out);
}

/* Prints the notes of the runtimes with calls in the profile. */
static void print_notes(const struct runtime *const *runtimes, const struct profile *profile)
{
	for (size_t i = KIND_RUNTIME; i < profile->n_kinds; i++)
		for (int r = 0; runtimes[r]; r++)
			if (runtime__has(runtimes[r], probes, calls_note) &&
			    !strcmp(runtimes[r]->name, profile->kinds[i].name))
				fprintf(stderr, "%s: %s\n", runtimes[r]->name,
					runtimes[r]->probes->calls_note);
}

static struct output_place place_of(const struct calls_cmd *cmd)
{
	return (struct output_place) { cmd->output, true, cmd->force, PRIVATE_MODE };
}

static int report(struct calls_cmd *cmd, struct session *session,
		  const struct session_summary *summary)
{
	struct output_place place = place_of(cmd);
	struct err err = {};
	int status;

	if (cmd->session.command)
		cli__print_command_end(summary->command_pid, summary->command_status);
	if (!cmd->probed)
		return cli__fail(
			"cannot count calls: no runtime here has working probes. braid record "
			"needs no probes; braid probes shows the reasons");
	if (session__calls(session, cmd->lines, &cmd->profile, &err))
		return cli__fail("%s", err.text);
	status = cli__write(&place, write_profile, cmd);
	if (!status) {
		fprintf(stderr, "%.1f s\n", summary->duration_s);
		print_notes(cmd->session.runtimes, cmd->profile);
	}
	cli__print_losses(summary->counters);
	cli__print_limit(&summary->limit,
			 ". Counts and times end there; to count for longer, give --max-overhead "
			 "PCT or none");
	profile__free(cmd->profile);
	return status;
}

static int count(struct calls_cmd *cmd)
{
	struct output_place place = place_of(cmd);
	struct session_summary summary;
	struct err err = {}, finish_err = {};
	struct session *session;
	int status, ret, finished;
	bool over = false;

	ret = output_file__check(&place, &err);
	if (!ret)
		ret = session__open(&cmd->session, &session, &err);
	if (ret)
		return cli__fail("%s", err.text);
	cli__print_start(session, &cmd->session);
	while (!ret && !over &&
	       (!cmd->session.n_pids || cmd->probed)) /* else none is left to count */
		ret = session__step(session, &over, &err);
	finished = session__finish(session, &summary, &finish_err);
	status = ret || finished ? cli__fail("%s", ret ? err.text : finish_err.text)
				 : report(cmd, session, &summary);
	session__free(session);
	return status;
}

int cmd_calls(int argc, char **argv, const struct runtime *const *runtimes)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "-p PID[,PID...]\n-- COMMAND...",
		.doc = "Count and time every call of interpreted functions, by probes at their "
		       "entries and returns. Unlike `record` this costs the process a microsecond "
		       "or two per call. Needs root, or CAP_BPF, CAP_PERFMON and "
		       "CAP_SYS_ADMIN.\v"
		       "Examples:\n"
		       "  braid calls -p 4711 -d 10 --rows 20\n"
		       "  braid calls --format tree -- python3.9 app.py --option\n"
		       "  braid calls --format folded -o app.folded -p 4711 -d 5\n"
		       "braid probes -p PID shows whether a process has such probes.",
	};
	struct calls_cmd cmd = { .session = { .runtimes = runtimes,
					      .enabled = UINT32_MAX,
					      .frequency_hz = 1,
					      .source = RUNTIME_SOURCE_CALLS,
					      .on_source = on_source,
					      .on_note = on_note },
				 .format = output__find_format("table") };
	int status;

	cmd.session.ctx = &cmd;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &cmd);
	status = cli__refuses_terminal(cmd.format, cmd.output) ? EXIT_MISUSED : count(&cmd);
	free(cmd.pids);
	return status;
}
