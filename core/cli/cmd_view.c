// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/cli.h"

#include <string.h>
#include <unistd.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/cli/pager.h"
#include "core/cli/view_diff.h"
#include "core/cli/view_summary.h"
#include "core/cli/view_texts.h"
#include "core/out/out_common.h"
#include "core/profile/condition.h"

/* `braid report` and `braid flame`: convert a recording to a picture or text. */

#define CONDITIONS_MAX 32

#define VALUE_LABEL_BYTES 300

struct report_opts {
	struct view_opts view;
	struct output_opts output;
	const struct output_format *format; /* NULL: `write` is used instead */
	int (*write)(const struct profile *, const struct output_opts *, FILE *);
	int frames; /* enum profile_frames; -1: default of the format */
	bool rows_given;
	struct profile *profile;
	bool source;		       /* the page includes machine code */
	bool no_source;		       /* the page excludes source texts */
	bool texts;		       /* the page includes source texts */
	const char *function;	       /* function whose code is shown */
	const char *of;		       /* value whose histogram is shown */
	char label[VALUE_LABEL_BYTES]; /* its label */
	struct profile **others;       /* profiles of other events, for formats that support them */
	size_t n_others;
	struct diff_opts compared;
	struct profile *old;
	struct diff *diff;
	struct condition conditions[CONDITIONS_MAX]; /* conditions of --fail-if */
	const char *condition_texts[CONDITIONS_MAX];
	size_t n_conditions;
	bool summary;
};

#define ROWS_DEFAULT	 30
#define SPANS_DEFAULT	 10
#define HISTOGRAM_STACKS 10 /* default number of stacks */

enum {
	OPT_FORMAT = 0x200,
	OPT_ROWS,
	OPT_HISTOGRAM,
	OPT_SORT,
	OPT_GROUP,
	OPT_INVERTED,
	OPT_FRAMES,
	OPT_LOCK_ORDER,
	OPT_DISASSEMBLE,
	OPT_SOURCE,
	OPT_NO_SOURCE,
	OPT_FAIL_IF,
	OPT_SUMMARY,
	OPT_SPANS,
	OPT_OF,
};

static const struct argp_option report_options[] = {
	{ "format", OPT_FORMAT, "FORMAT", 0,
	  "table (default): self and total per function; tree: what called what; folded: one line "
	  "per stack; json: for programs; markdown: table and tree for an issue; pprof: for the "
	  "tool of that name, binary; speedscope: JSON for "
	  "speedscope.app; firefox: JSON for profiler.firefox.com; otlp: for OpenTelemetry "
	  "collectors, binary; chrome: JSON for Perfetto; perf: as perf script writes it; "
	  "dot: graph of calls",
	  0 },
	{ "summary", OPT_SUMMARY, NULL, 0,
	  "Print the main findings in three sentences, as at the end of braid record", 0 },
	{ "rows", OPT_ROWS, "N|all", 0,
	  "At most N rows of a table or tree (default 30), or groups of a histogram (default: all)",
	  0 },
	{ "sort", OPT_SORT, "COLUMN", 0,
	  "Order of a table: script (default: own time with the native code that it calls; "
	  "the column is called Own if all languages are compiled), self, "
	  "total, name or samples",
	  0 },
	{ "group", OPT_GROUP, "WHAT", 0,
	  "Rows of a table: function (default), file, library, kind, process or thread", 0 },
	{ "inverted", OPT_INVERTED, NULL, 0,
	  "Tree: show the callers of each function instead of its callees", 0 },
	{ "histogram", OPT_HISTOGRAM, "stacks", OPTION_ARG_OPTIONAL,
	  "Print a histogram of how long or how large the occurrences of an event "
	  "were, in powers of two; with --by, also for each group; with =stacks, "
	  "also for each stack (default: for 10)",
	  0 },
	{ "of", OPT_OF, "NAME", 0,
	  "Print a histogram of the value NAME that was recorded with each sample, as in "
	  "-e 'uprobe:libc.so.6:write(fd:s32, buf:ptr, n:u64)', instead of the event's own values",
	  0 },
	{ "disassemble", OPT_DISASSEMBLE, "FUNCTION", 0,
	  "Print the machine code of a native function with the samples of each "
	  "instruction, and with source lines if the file has DWARF; the file must "
	  "be on this machine and unchanged since the recording",
	  0 },
	{ "fail-if", OPT_FAIL_IF, "CONDITION", 0,
	  "Exit with 1 if the condition holds: self(FUNCTION) > 5%, total(FUNCTION) > 20%, or with "
	  "--diff change(FUNCTION) > 2%, in percentage points and beyond chance. FUNCTION may have "
	  "*, ? and [...]. May be given several times; shows all frames unless --frames is given",
	  0 },
	{ "spans", OPT_SPANS, NULL, 0,
	  "Print the requests with most time (default 10): what each of them spent its time on, "
	  "and "
	  "in which function; with --by label:KEY, trace or service the same of these groups",
	  0 },
	{ "lock-order", OPT_LOCK_ORDER, NULL, 0,
	  "Print potential deadlocks: mutexes that threads lock in different orders, "
	  "and where; for recordings of the event lock-order",
	  0 },
	{}
};

static const struct argp_option frames_options[] = {
	{ "frames", OPT_FRAMES, "WHICH", 0,
	  "app: only functions of your own code, with the time of all that they call "
	  "in packages, the standard library and native code; script: all frames of "
	  "runtimes, with the time of the native code that they call; collapsed: one "
	  "frame for each run of native frames of one library; all. Default: "
	  "collapsed in tables, trees and flame graphs, all in files for other tools",
	  1 },
	{}
};

static error_t parse_frames(int key, char *arg, struct argp_state *state)
{
	int *frames = state->input;

	if (key != OPT_FRAMES)
		return ARGP_ERR_UNKNOWN;
	*frames = frames__find(arg);
	if (*frames == FRAMES_N)
		cli__misused(state, "--frames takes " FRAMES_CHOICES ", not '%s'", arg);
	return 0;
}

static const struct argp frames_argp = { .options = frames_options, .parser = parse_frames };

static int write_profile(void *ctx, FILE *out)
{
	const struct report_opts *opts = ctx;

	return (opts->format ? opts->format->write : opts->write)(
		opts->diff ? opts->diff->both : opts->profile, &opts->output, out);
}

static void parse_sort(struct argp_state *state, const char *name, struct output_opts *opts)
{
	static const char *const names[OUTPUT_SORTS_N] = {
		[OUTPUT_SORT_SELF] = "self",	   [OUTPUT_SORT_TOTAL] = "total",
		[OUTPUT_SORT_SCRIPT] = "script",   [OUTPUT_SORT_NAME] = "name",
		[OUTPUT_SORT_SAMPLES] = "samples",
	};

	for (opts->sort = 1; opts->sort < OUTPUT_SORTS_N; opts->sort++)
		if (!strcmp(names[opts->sort], name))
			return;
	cli__misused(state, "--sort takes script, self, total, name or samples, not '%s'", name);
}

static void parse_group(struct argp_state *state, const char *name, struct report_opts *opts)
{
	static const char *const names[] = { [OUTPUT_FUNCTIONS] = "function",
					     [OUTPUT_FILES] = "file",
					     [OUTPUT_LIBRARIES] = "library",
					     [OUTPUT_KINDS] = "kind" };
	enum output_group *group = &opts->output.group;

	for (*group = 0; *group < ARRAY_SIZE(names); ++*group)
		if (!strcmp(names[*group], name))
			return;
	*group = OUTPUT_LABELS;
	opts->view.filter.by = group__find(name);
	if (opts->view.filter.by != PROFILE_BY_PROCESS && opts->view.filter.by != PROFILE_BY_THREAD)
		cli__misused(state,
			     "--group takes function, file, library, kind, process or thread, not "
			     "'%s'",
			     name);
}

static void parse_condition(struct argp_state *state, const char *text, struct report_opts *opts)
{
	struct err err = {};

	if (opts->n_conditions == CONDITIONS_MAX)
		cli__misused(state, "--fail-if can be given at most %d times", CONDITIONS_MAX);
	if (condition__parse(text, &opts->conditions[opts->n_conditions], &err))
		cli__misused(state, "--fail-if: %s", err.text);
	opts->condition_texts[opts->n_conditions++] = text;
}

/* Checks that conditions have the numbers they require; a histogram and machine code have
 * others. */
static void check_conditions(struct argp_state *state, const struct report_opts *opts)
{
	for (size_t i = 0; i < opts->n_conditions; i++)
		if (opts->conditions[i].measure == CONDITION_CHANGE && !opts->compared.old_file)
			cli__misused(state, "--fail-if change(...) compares two recordings: add "
					    "--diff OLD");
	if (opts->n_conditions && opts->write)
		cli__misused(state,
			     "--fail-if cannot be used with --histogram, --disassemble, --spans or "
			     "--lock-order");
}

static bool is_markdown(const struct report_opts *opts)
{
	return opts->format && opts->format->write == output__markdown;
}

static void finish_spans(struct argp_state *state, struct report_opts *opts)
{
	enum profile_by *by = &opts->view.filter.by;

	if (!*by)
		*by = PROFILE_BY_REQUEST;
	if (!group__needs_contexts(*by) && *by != PROFILE_BY_SERVICE)
		cli__misused(state,
			     "--spans can be used with --by request, span, trace, "
			     "label:KEY or service, not with --by %s",
			     group__name(*by));
	if (!opts->rows_given)
		opts->output.rows = SPANS_DEFAULT;
}

/* Sets an output that has its own format. */
static void set_own(struct argp_state *state, struct report_opts *opts,
		    int (*write)(const struct profile *, const struct output_opts *, FILE *))
{
	if (opts->write && opts->write != write)
		cli__misused(state, "--histogram or --of, --disassemble, --spans and --lock-order "
				    "exclude each other: give one of them");
	opts->write = write;
}

/* Rejects options that do not apply to the output, and sets defaults. */
static void finish_report(struct argp_state *state, struct report_opts *opts)
{
	const char *own = opts->write == output__lock_order ? "lock-order"
			  : opts->write == output__spans    ? "spans"
			  : opts->write == output__code	    ? "disassemble"
			  : opts->of			    ? "of"
							    : "histogram";
	bool table, tree, rows;

	if (opts->summary && (opts->format || opts->write || opts->compared.old_file ||
			      opts->n_conditions || opts->view.filter.by || opts->view.output))
		cli__misused(
			state,
			"--summary cannot be used with --format, --diff, --by, --fail-if or -o");
	if (opts->format && opts->write)
		cli__misused(state, "--%s has its own format and cannot be used with --format",
			     own);
	if (!opts->format && !opts->write)
		opts->format = output__find_format("table");
	table = opts->format && opts->format->write == output__table;
	tree = opts->format && opts->format->write == output__tree;
	rows = table || (opts->format && (opts->format->write == output__json ||
					  opts->format->write == output__markdown));
	if (!rows && (opts->output.sort || opts->output.group))
		cli__misused(state, "--sort and --group require --format table, json or markdown");
	if (!tree && opts->output.inverted)
		cli__misused(state, "--inverted requires --format tree");
	if (opts->write && opts->frames >= 0)
		cli__misused(state, "--%s shows %s and cannot be used with --frames", own,
			     opts->function ? "instructions" : "occurrences");
	if (!opts->rows_given && (table || tree || is_markdown(opts)))
		opts->output.rows = ROWS_DEFAULT;
	if (opts->write == output__spans)
		finish_spans(state, opts);
	if (!opts->rows_given && opts->view.filter.histogram_stacks)
		opts->output.rows = HISTOGRAM_STACKS;
	if (opts->frames < 0 && opts->n_conditions)
		opts->frames = FRAMES_ALL; /* a condition may be about any function */
	if (opts->frames < 0)
		opts->frames = tree || ((table || is_markdown(opts)) && !opts->output.group)
				       ? FRAMES_COLLAPSED
				       : FRAMES_ALL;
	check_conditions(state, opts);
	view_diff__check(state, &opts->compared, opts->format, opts->output.sort);
}

static error_t parse_report(int key, char *arg, struct argp_state *state)
{
	struct report_opts *opts = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &opts->view;
		state->child_inputs[1] = &opts->frames;
		state->child_inputs[2] = &opts->compared;
		break;
	case OPT_FORMAT:
		opts->format = output__find_format(arg);
		if (!opts->format)
			cli__misused(state, "--format takes " OUTPUT_FORMATS ", not '%s'", arg);
		break;
	case OPT_ROWS:
		opts->rows_given = true;
		opts->output.rows = !strcmp(arg, "all")
					    ? 0
					    : cli__number(state, "--rows (or all)", arg, 1, 1e9);
		break;
	case OPT_SORT:
		parse_sort(state, arg, &opts->output);
		break;
	case OPT_GROUP:
		parse_group(state, arg, opts);
		break;
	case OPT_INVERTED:
		opts->output.inverted = true;
		break;
	case OPT_HISTOGRAM:
		if (arg && strcmp(arg, "stacks") != 0)
			cli__misused(state, "--histogram takes stacks or nothing, not '%s'", arg);
		opts->view.filter.histogram = true;
		opts->view.filter.histogram_stacks = arg != NULL;
		set_own(state, opts, output__histogram);
		break;
	case OPT_OF:
		opts->of = cli__text(state, "--of", arg);
		snprintf(opts->label, sizeof(opts->label), VALUE_LABEL "%s", arg);
		opts->view.filter.histogram_of = opts->label;
		opts->view.filter.histogram = true;
		set_own(state, opts, output__histogram);
		break;
	case OPT_DISASSEMBLE:
		opts->function = cli__text(state, "--disassemble", arg);
		opts->view.filter.addresses = opts->view.filter.keep_vm = true;
		set_own(state, opts, output__code);
		break;
	case OPT_FAIL_IF:
		parse_condition(state, arg, opts);
		break;
	case OPT_SUMMARY:
		opts->summary = true;
		break;
	case OPT_SPANS:
		opts->view.filter.split_states = opts->view.filter.lines = true;
		set_own(state, opts, output__spans);
		break;
	case OPT_LOCK_ORDER:
		opts->view.filter.event = "lock-order";
		opts->view.filter.by = PROFILE_BY_THREAD;
		set_own(state, opts, output__lock_order);
		break;
	case ARGP_KEY_END:
		finish_report(state, opts);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* Prints a note about excluded time for formats that have no visible place for it. */
static void print_idle(const struct report_opts *opts)
{
	char notes[OUTPUT_NOTES_MAX][OUTPUT_NOTE_BYTES];
	const struct profile *profile = opts->profile;
	size_t n = output__notes(profile, notes), unbroken = profile->unbroken.threads > 0;

	if (!opts->format || !opts->format->bare)
		return;
	if (profile->idle.weight)
		fprintf(stderr, "%s\n", notes[n - unbroken - 1]);
	if (profile->unbroken.threads && profile->unbroken.hidden)
		fprintf(stderr, "%s\n", notes[n - 1]);
}

static int refuse_histogram(const struct profile *profile, const char *of)
{
	if (of && profile->n_histograms && !profile->histograms->occurrences &&
	    !profile->histograms->below)
		return cli__fail("no sample of %s has a number %s. Choose the event that has it "
				 "with --event, or record it as a number: -e "
				 "'uprobe:FILE:SYMBOL(%s:u64)'",
				 profile->event ? profile->event : "cpu", of, of);
	if (of)
		return EXIT_OK;
	if (!profile->n_histograms || profile->unit == PROFILE_NANOSECONDS ||
	    profile->unit == PROFILE_BYTES)
		return EXIT_OK;
	return cli__fail("cannot show a histogram of %s: its occurrences have no time or size. "
			 "Other events in the recording: %s (--event)",
			 profile->event ? profile->event : "cpu",
			 *profile->other_events ? profile->other_events : "none");
}

static void replace(struct profile **profile, struct profile *by)
{
	profile__free(*profile);
	*profile = by;
}

static int choose_frames(const struct report_opts *opts, struct profile **profile)
{
	struct profile *view;

	if (opts->frames != FRAMES_ALL && frames__differ(*profile)) {
		if (frames__view(*profile, opts->frames, &view))
			return cli__fail("out of memory");
		replace(profile, view);
	}
	if (opts->output.inverted) {
		if (profile__inverted(*profile, &view))
			return cli__fail("out of memory");
		replace(profile, view);
	}
	return EXIT_OK;
}

static bool is_page(const struct report_opts *opts)
{
	return opts->write == output__flame_html || opts->write == output__flame_svg;
}

/* Prepares the loaded profiles. The page gets all frames, and lets its user choose. */
static int choose_view(struct report_opts *opts)
{
	int status = refuse_histogram(opts->profile, opts->of);

	opts->output.others = opts->others;
	opts->output.n_others = opts->n_others;
	if (is_page(opts)) {
		opts->output.frames = opts->frames == FRAMES_APP ? FRAMES_SCRIPT : opts->frames;
		if (opts->frames != FRAMES_APP)
			return status;
	}
	if (!status)
		status = choose_frames(opts, &opts->profile);
	for (size_t i = 0; !status && i < opts->n_others; i++)
		status = choose_frames(opts, &opts->others[i]);
	return status;
}

/* Loads the older recording, prepares it in the same way, and compares. */
static int compare(struct report_opts *opts, const struct runtime *const *runtimes)
{
	int status =
		view_diff__load(&opts->compared, &opts->view, runtimes, opts->profile, &opts->old);

	if (!status && (!is_page(opts) || opts->frames == FRAMES_APP))
		status = choose_frames(opts, &opts->old);
	if (!status)
		status = view_diff__compare(&opts->compared, opts->old, opts->profile,
					    opts->format && opts->format->bare, &opts->diff);
	opts->output.diff = opts->diff;
	return status;
}

/* Returns EXIT_FAILED if a condition of --fail-if holds. */
static int check_result(const struct report_opts *opts)
{
	int status = EXIT_OK;
	double share;
	bool holds;

	for (size_t i = 0; i < opts->n_conditions; i++) {
		if (condition__check(&opts->conditions[i], opts->profile, opts->diff, &share,
				     &holds))
			return cli__fail("out of memory");
		if (holds)
			status = cli__fail("%s: it is %.3g %%", opts->condition_texts[i],
					   100 * share);
	}
	return status;
}

static bool is_for_people(const struct report_opts *opts)
{
	const struct output_format *format = opts->format;

	return !opts->view.output &&
	       (opts->write == output__histogram || opts->write == output__code ||
		opts->write == output__spans ||
		(format && (format->write == output__table || format->write == output__tree)));
}

/* Returns true for a table of functions, which names the hottest line of each function. Lines do
 * not make it longer. */
static bool has_hottest_lines(const struct report_opts *opts)
{
	return opts->format && opts->format->write == output__table && !opts->view.filter.lines &&
	       !opts->compared.old_file && opts->output.group == OUTPUT_FUNCTIONS;
}

static int run_view(struct report_opts *opts, const struct runtime *const *runtimes)
{
	struct view_texts texts = {};
	struct output_place place;
	bool for_people = is_for_people(opts);
	int status = view_diff__find_old(&opts->compared, &opts->view);

	if (!status)
		status = view__place(&opts->view, opts->compared.old_file, &place);
	if (status)
		goto out;
	opts->view.filter.threads =
		(opts->format && opts->format->threads) || opts->compared.old_file;
	opts->view.filter.tasks = opts->format && opts->format->tasks;
	opts->view.filter.times = is_page(opts) && !opts->compared.old_file;
	opts->output.lines = opts->view.filter.lines;
	if (has_hottest_lines(opts))
		opts->output.hottest = opts->view.filter.lines = true;
	opts->view.filter.instants = opts->format && opts->format->instants;
	opts->view.filter.evidence = is_page(opts) || opts->view.annotate;
	if ((is_page(opts) && !opts->compared.old_file) || (opts->format && opts->format->events))
		status = view__load_all(&opts->view, runtimes, &opts->profile, &opts->others,
					&opts->n_others);
	else
		status = view__load(&opts->view, runtimes, &opts->profile);
	if (!status)
		status = choose_view(opts);
	if (!status && is_for_people(opts) && profile__shorten_files(opts->profile))
		status = cli__fail("out of memory");
	if (!status && opts->compared.old_file)
		status = compare(opts, runtimes);
	if (status)
		goto out;
	print_idle(opts);
	if (opts->source || opts->texts || opts->function)
		status = view_texts__read(&texts, opts->profile, opts->function,
					  opts->source || opts->function, &opts->output);
	if (status)
		goto out;
	opts->output.annotate = opts->view.annotate;
	opts->output.colour = for_people && pager__wants_colour();
	if (for_people)
		pager__start();
	status = cli__write(&place, write_profile, opts);
	pager__finish();
	if (!status)
		status = check_result(opts);
out:
	view_texts__done(&texts);
	free(opts->compared.old_file_name);
	for (size_t i = 0; i < opts->n_others; i++)
		profile__free(opts->others[i]);
	free(opts->others);
	diff__free(opts->diff);
	profile__free(opts->old);
	profile__free(opts->profile);
	return status;
}

static const struct argp_child children[] = {
	{ &view_argp, 0, NULL, 0 }, { &frames_argp, 0, NULL, 0 }, { &diff_argp, 0, NULL, 0 }, {}
};

int cmd_report(int argc, char **argv, const struct runtime *const *runtimes)
{
	static const struct argp argp = {
		.options = report_options,
		.parser = parse_report,
		.args_doc = "[FILE|DIR]",
		.doc = "Show a recording as text, or write it for other tools. FILE defaults to "
		       "braid.db. Needs only this file: no privileges and no running "
		       "target.\v"
		       "Examples:\n"
		       "  braid report --rows 20 --sort total\n"
		       "  braid report --frames script --format tree app.db\n"
		       "  braid report --group library app.db\n"
		       "  braid report --format folded --lines app.db > app.folded\n"
		       "  braid report --format pprof --lines -o app.pb.gz app.db\n"
		       "  braid report --thread worker-1 --runtime python app.db\n"
		       "  braid report --format tree --event uprobe:/lib/libc.so.6:malloc app.db\n"
		       "  braid report --by state --format tree app.db\n"
		       "  braid report --event off-cpu --histogram --by syscall app.db\n"
		       "  braid report --disassemble deflate_slow app.db\n"
		       "  braid report --lock-order --lines app.db\n"
		       "  braid report --diff                       (with braid.db.old)\n"
		       "  braid report --diff before.db after.db\n"
		       "  braid report --diff before.db --fail-if 'change(parse*) > 2%' after.db\n"
		       "  braid report --format json --fail-if 'total(json.*) > 20%' app.db\n"
		       "  braid report --diff before.db --diff-by value --format tree after.db\n"
		       "  braid report --from-db clickhouse://localhost/braid \\\n"
		       "    --where \"service = web and time >= now-1h\"",
		.children = children,
	};
	struct report_opts opts = { .view = VIEW_OPTS_DEFAULT(runtimes), .frames = -1 };

	argp_parse(&argp, argc, argv, 0, NULL, &opts);
	if (opts.summary)
		return view_summary__print(&opts.view, runtimes, stdout);
	if (opts.format && cli__refuses_terminal(opts.format, opts.view.output))
		return EXIT_MISUSED;
	return run_view(&opts, runtimes);
}

static error_t parse_flame(int key, char *arg, struct argp_state *state)
{
	struct report_opts *opts = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &opts->view;
		state->child_inputs[1] = &opts->frames;
		state->child_inputs[2] = &opts->compared;
		return 0;
	case OPT_SOURCE:
		opts->source = true;
		return 0;
	case OPT_NO_SOURCE:
		opts->no_source = true;
		return 0;
	case ARGP_KEY_END:
		if (opts->source && opts->no_source)
			cli__misused(state, "--source and --no-source exclude each other");
		opts->output.joins_lines = !opts->view.filter.lines;
		opts->view.filter.addresses = opts->source;
		view_diff__check_page(state, &opts->compared);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option flame_options[] = {
	{ "source", OPT_SOURCE, NULL, 0,
	  "Add the machine code of native functions to the page, which has the text "
	  "of source files already; add both to an SVG",
	  0 },
	{ "no-source", OPT_NO_SOURCE, NULL, 0,
	  "Leave the text of source files out of the page. By default, the page has "
	  "the lines with samples and 40 lines around them of each file that is "
	  "readable now, at most about 1 MiB",
	  0 },
	{}
};

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

int cmd_flame(int argc, char **argv, const struct runtime *const *runtimes)
{
	static const struct argp argp = {
		.options = flame_options,
		.parser = parse_flame,
		.args_doc = "[FILE|DIR]",
		.doc = "Draw the interactive flame graph of a recording: one self-contained HTML "
		       "or "
		       "SVG file, by the ending of OUT (default braid.html; - is standard output, "
		       "as HTML).\v"
		       "Examples:\n"
		       "  braid flame\n"
		       "  braid flame -o app.svg --frames script app.db\n"
		       "  braid flame --source -o app.html app.db\n"
		       "  braid flame --no-source -o to-give-away.html app.db\n"
		       "  braid flame --diff before.db after.db\n"
		       "  braid flame --pid 4711 --lines -o worker.html app.db",
		.children = children,
	};
	struct report_opts opts = { .view = VIEW_OPTS_DEFAULT(runtimes),
				    .view.output = "braid.html",
				    .frames = -1 };
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, &opts);
	if (!strcmp(opts.view.output, "-"))
		opts.view.output = NULL;
	if (opts.frames < 0)
		opts.frames = FRAMES_COLLAPSED;
	opts.write = opts.view.output && ends_with(opts.view.output, ".svg") ? output__flame_svg
									     : output__flame_html;
	/* The picture in an SVG shows lines if the recording is loaded with lines. */
	if (opts.write == output__flame_html || opts.source)
		opts.view.filter.lines = true;
	opts.output.joins_lines &= opts.write == output__flame_html;
	opts.texts = opts.write == output__flame_html && !opts.no_source;
	if (opts.view.output && !ends_with(opts.view.output, ".svg") &&
	    !ends_with(opts.view.output, ".html") && !ends_with(opts.view.output, ".htm")) {
		cli__fail(
			"cannot write '%s': the name of a flame graph must end with .html or .svg",
			opts.view.output);
		return EXIT_MISUSED;
	}
	status = run_view(&opts, runtimes);
	if (!status && opts.view.output) {
		char *path = realpath(opts.view.output, NULL);

		escape__line(stdout, "%s", path ? path : opts.view.output);
		free(path);
	}
	return status;
}
