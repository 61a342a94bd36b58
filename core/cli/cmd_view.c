// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/cli.h"

#include <string.h>
#include <unistd.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/profile/out_common.h"
#include "core/profile/output.h"

/* `braid report` and `braid flame`: a recording in, a picture or text out. */

struct report_opts {
	struct view_opts view;
	struct output_opts output;
	const struct output_format *format; /* NULL: what `write` writes */
	int (*write)(const struct profile *, const struct output_opts *, FILE *);
	struct profile *profile;
};

#define HISTOGRAM_STACKS 10 /* that are shown unless the user says how many */

enum { OPT_FORMAT = 0x200, OPT_ROWS, OPT_HISTOGRAM, OPT_LOCK_ORDER };

static const struct argp_option report_options[] = {
	{ "format", OPT_FORMAT, "FORMAT", 0,
	  "table (default): self and total per function; tree: what called what; folded: one line "
	  "per stack; pprof: for the tool of that name, binary",
	  0 },
	{ "rows", OPT_ROWS, "N", 0,
	  "At most N rows of a table or tree, or groups of a histogram (default: all)", 0 },
	{ "histogram", OPT_HISTOGRAM, "stacks", OPTION_ARG_OPTIONAL,
	  "Instead, how long or how large the occurrences of an event were, in powers of two; with "
	  "--by also of each group; =stacks: also of each stack (default: of 10)",
	  0 },
	{ "lock-order", OPT_LOCK_ORDER, NULL, 0,
	  "Instead, potential deadlocks: mutexes that threads take in different orders, with "
	  "where; "
	  "of a recording of the event lock-order",
	  0 },
	{}
};

static int write_profile(void *ctx, FILE *out)
{
	const struct report_opts *opts = ctx;

	return (opts->format ? opts->format->write : opts->write)(opts->profile, &opts->output,
								  out);
}

static error_t parse_report(int key, char *arg, struct argp_state *state)
{
	struct report_opts *opts = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &opts->view;
		break;
	case OPT_FORMAT:
		opts->format = output__find_format(arg);
		if (!opts->format)
			cli__misused(state, "--format takes " OUTPUT_FORMATS ", not '%s'", arg);
		break;
	case OPT_ROWS:
		opts->output.rows = cli__number(state, "--rows", arg, 1, 1e9);
		break;
	case OPT_HISTOGRAM:
		if (arg && strcmp(arg, "stacks") != 0)
			cli__misused(state, "--histogram takes stacks or nothing, not '%s'", arg);
		opts->view.filter.histogram = true;
		opts->view.filter.histogram_stacks = arg != NULL;
		opts->write = output__histogram;
		break;
	case OPT_LOCK_ORDER:
		opts->view.filter.event = "lock-order";
		opts->view.filter.by = PROFILE_BY_THREAD;
		opts->write = output__lock_order;
		break;
	case ARGP_KEY_END:
		if (opts->format && opts->write)
			cli__misused(state, "--%s is a format of its own: without --format",
				     opts->write == output__lock_order ? "lock-order"
								       : "histogram");
		if (!opts->format && !opts->write)
			opts->format = output__find_format("table");
		if (opts->view.filter.histogram_stacks && !opts->output.rows)
			opts->output.rows = HISTOGRAM_STACKS;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* What was left out is always said; these formats have no place for it, or one that few look at. */
static void print_idle(const struct report_opts *opts)
{
	char notes[OUTPUT_NOTES_MAX][OUTPUT_NOTE_BYTES];
	size_t n = output__notes(opts->profile, notes);

	if (opts->format && opts->format->bare && opts->profile->idle.weight)
		fprintf(stderr, "%s\n", notes[n - 1]);
}

static int refuse_histogram(const struct profile *profile)
{
	if (!profile->n_histograms || profile->unit == PROFILE_NANOSECONDS ||
	    profile->unit == PROFILE_BYTES)
		return EXIT_OK;
	return cli__fail("occurrences of %s are counted and have no time or size of their own for "
			 "--histogram; other events: %s (--event)",
			 profile->event ? profile->event : "cpu",
			 *profile->other_events ? profile->other_events : "none");
}

static int run_view(struct report_opts *opts, const struct runtime *const *runtimes)
{
	int status = view__load(&opts->view, runtimes, &opts->profile);

	if (!status)
		status = refuse_histogram(opts->profile);
	if (status) {
		profile__free(opts->profile);
		return status;
	}
	print_idle(opts);
	opts->output.annotate = opts->view.annotate;
	status = cli__write(opts->view.output, opts->view.force, write_profile, opts);
	profile__free(opts->profile);
	return status;
}

static const struct argp_child children[] = { { &view_argp, 0, NULL, 0 }, {} };

int cmd_report(int argc, char **argv, const struct runtime *const *runtimes)
{
	static const struct argp argp = {
		.options = report_options,
		.parser = parse_report,
		.args_doc = "[FILE]",
		.doc = "Show a recording as text, or write it for other tools. FILE defaults to "
		       "braid.db; nothing but this file "
		       "is needed, no privilege and no target.\v"
		       "Examples:\n"
		       "  braid report --rows 20\n"
		       "  braid report --format folded --lines app.db > app.folded\n"
		       "  braid report --format pprof --lines -o app.pb.gz app.db\n"
		       "  braid report --thread worker-1 --runtime python app.db\n"
		       "  braid report --format tree --event uprobe:/lib/libc.so.6:malloc app.db\n"
		       "  braid report --by state --format tree app.db\n"
		       "  braid report --event off-cpu --histogram --by syscall app.db\n"
		       "  braid report --lock-order --lines app.db",
		.children = children,
	};
	struct report_opts opts = { .view.file = "braid.db" };

	argp_parse(&argp, argc, argv, 0, NULL, &opts);
	if (opts.format && cli__refuses_terminal(opts.format, opts.view.output))
		return EXIT_MISUSED;
	return run_view(&opts, runtimes);
}

static error_t parse_flame(int key, char *arg, struct argp_state *state)
{
	struct report_opts *opts = state->input;

	(void)arg;
	if (key == ARGP_KEY_INIT) {
		state->child_inputs[0] = &opts->view;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

int cmd_flame(int argc, char **argv, const struct runtime *const *runtimes)
{
	static const struct argp argp = {
		.parser = parse_flame,
		.args_doc = "[FILE]",
		.doc = "Draw the interactive flame graph of a recording: one self-contained HTML "
		       "or "
		       "SVG file, by the ending of OUT (default braid.html; - is standard output, "
		       "as HTML).\v"
		       "Examples:\n"
		       "  braid flame\n"
		       "  braid flame -o app.svg app.db\n"
		       "  braid flame --pid 4711 --lines -o worker.html app.db",
		.children = children,
	};
	struct report_opts opts = { .view.file = "braid.db", .view.output = "braid.html" };
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, &opts);
	if (!strcmp(opts.view.output, "-"))
		opts.view.output = NULL;
	opts.write = opts.view.output && ends_with(opts.view.output, ".svg") ? output__flame_svg
									     : output__flame_html;
	if (opts.view.output && !ends_with(opts.view.output, ".svg") &&
	    !ends_with(opts.view.output, ".html") && !ends_with(opts.view.output, ".htm")) {
		cli__fail("the name of the flame graph ends with .html or .svg, unlike '%s'",
			  opts.view.output);
		return EXIT_MISUSED;
	}
	status = run_view(&opts, runtimes);
	if (!status && opts.view.output)
		escape__line(stdout, "%s", opts.view.output);
	return status;
}
