// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/cli.h"

#include <string.h>

#include "core/base/escape.h"
#include "core/events/catalogue.h"

struct events_opts {
	uint32_t *pids;
	size_t n_pids;
	const char *pattern;
};

static const struct argp_option options[] = {
	{ "pid", 'p', "PID[,PID...]", 0,
	  "List the USDT probes of these processes instead of the machine's events", 0 },
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct events_opts *opts = state->input;

	switch (key) {
	case 'p':
		cli__pids(state, arg, &opts->pids, &opts->n_pids);
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			cli__misused(state, "one pattern at a time, not also '%s'", arg);
		opts->pattern = arg;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int read_catalogue(const struct events_opts *opts, struct catalogue *ret, struct err *err)
{
	int code = 0;

	for (size_t i = 0; !code && i < opts->n_pids; i++)
		code = catalogue__read_process(opts->pids[i], ret, err);
	return opts->n_pids ? code : catalogue__read(ret, err);
}

static int refuse(const struct events_opts *opts, struct nearest *nearest)
{
	if (!opts->pattern)
		return cli__fail(
			"the files that these processes have mapped contain no USDT probes");
	if (!nearest->n)
		return cli__fail(
			"there is no event '%s' here. Without a pattern, braid events lists all",
			opts->pattern);
	return cli__fail("there is no event '%s' here: did you mean %s?", opts->pattern,
			 nearest__text(nearest));
}

/* Prints the events that are unavailable, with the reason. */
static void print_missing(const struct catalogue *catalogue)
{
	if (catalogue->no_pmu)
		fputs("unavailable: cycles, cache-misses and other hardware events, because this "
		      "machine has no CPU counters (PMU), like many virtual machines; the event "
		      "cpu is sampled by time\n",
		      stderr);
	if (catalogue->no_kprobes)
		fputs("unavailable: kprobe, kretprobe and fentry, because this kernel has no "
		      "kprobes; tracepoints and syscall do not need them\n",
		      stderr);
}

int cmd_events(int argc, char **argv, const struct runtime *const *runtimes)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[PATTERN]",
		.doc = "List the events that this machine has, one line each: the name for record "
		       "-e, the unit of its values, and a description (for tracepoints, the "
		       "arguments that filters compare). With PATTERN, list the events whose "
		       "names contain it, or match it if it has a *, ? or [. Exits with 1 if "
		       "there are none.\v"
		       "Examples:\n"
		       "  braid events\n"
		       "  braid events fault\n"
		       "  braid events 'tracepoint:sched:*'\n"
		       "  sudo braid events -p 4711\n",
	};
	struct events_opts opts = {};
	struct catalogue catalogue = {};
	struct nearest nearest = {};
	struct err err = {};
	int status = EXIT_OK;

	(void)runtimes;
	argp_parse(&argp, argc, argv, 0, NULL, &opts);
	if (read_catalogue(&opts, &catalogue, &err)) {
		status = cli__fail("%s", err.text);
		goto out;
	}
	if (opts.pattern) {
		nearest = catalogue__nearest(&catalogue, opts.pattern);
		catalogue__keep(&catalogue, opts.pattern);
	}
	for (size_t i = 0; i < catalogue.n; i++)
		escape__line(stdout, "%-42s %-7s %s", catalogue.list[i].name,
			     catalogue.list[i].unit, catalogue.list[i].help);
	if (!catalogue.n)
		status = refuse(&opts, &nearest);
	else if (!opts.pattern && !opts.n_pids)
		print_missing(&catalogue);
out:
	catalogue__done(&catalogue);
	free(opts.pids);
	return status;
}
