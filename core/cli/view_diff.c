// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/view_diff.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/escape.h"

/* Argument of --diff without a recording. It is recognized by its address. */
static const char DIFF_NO_ARGUMENT[] = "OLD";

enum { OPT_DIFF = 0x300, OPT_DIFF_BY };

static const struct argp_option options[] = {
	{ "diff", OPT_DIFF, "OLD", OPTION_ARG_OPTIONAL,
	  "Compare with an older recording of the same event (default: FILE.old, "
	  "which record keeps; with --from-db: OLD is the --where of the older "
	  "samples), in the page, a table, a tree or folded stacks (with two "
	  "columns, as difffolded.pl writes). Sorted by the size of the change, with "
	  "a mark if it is within the sampling error",
	  0 },
	{ "diff-by", OPT_DIFF_BY, "share|value", 0,
	  "Compare shares of each recording's total (default), or values per second "
	  "of recording",
	  0 },
	{}
};

/* Takes the word behind an option with an optional argument from the command line. Returns NULL if
 * the option is the last word, or another option follows. */
static const char *next_word(struct argp_state *state)
{
	const char *word = state->next < state->argc ? state->argv[state->next] : NULL;

	if (!word || *word == '-')
		return NULL;
	state->next++;
	return word;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct diff_opts *opts = state->input;
	const char *old;

	switch (key) {
	case OPT_DIFF:
		old = arg ? arg : next_word(state);
		opts->old_file = old ? cli__text(state, "--diff", old) : DIFF_NO_ARGUMENT;
		break;
	case OPT_DIFF_BY:
		opts->by_given = true;
		opts->by_value = !strcmp(arg, "value");
		if (!opts->by_value && strcmp(arg, "share") != 0)
			cli__misused(state, "--diff-by takes share or value, not '%s'", arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

const struct argp diff_argp = { .options = options, .parser = parse };

int view_diff__find_old(struct diff_opts *opts, const struct view_opts *view)
{
	if (opts->old_file != DIFF_NO_ARGUMENT)
		return EXIT_OK;
	if (view->db.text) {
		cli__fail("--diff needs a value with --from-db: the --where of the older samples");
		return EXIT_MISUSED;
	}
	if (asprintf(&opts->old_file_name, "%s.old", view->file) < 0)
		return cli__fail("out of memory");
	opts->old_file = opts->old_file_name;
	if (access(opts->old_file_name, F_OK))
		return cli__fail("cannot compare %s with %s: %s. Name the older recording: "
				 "--diff OLD",
				 view->file, opts->old_file_name, strerror(errno));
	escape__line(stderr, "comparing %s with %s", view->file, opts->old_file_name);
	return EXIT_OK;
}

static void check(struct argp_state *state, const struct diff_opts *opts)
{
	if (!opts->old_file && opts->by_given)
		cli__misused(state, "--diff-by requires --diff OLD");
}

void view_diff__check_page(struct argp_state *state, const struct diff_opts *opts)
{
	check(state, opts);
	if (opts->by_value)
		cli__misused(state,
			     "the page compares shares: --diff-by value requires braid report");
}

void view_diff__check(struct argp_state *state, const struct diff_opts *opts,
		      const struct output_format *format, enum output_sort sort)
{
	check(state, opts);
	if (!opts->old_file)
		return;
	if (!format || !format->diff)
		cli__misused(state,
			     "--diff requires --format table, tree, json, markdown or folded");
	if (sort == OUTPUT_SORT_SAMPLES)
		cli__misused(
			state,
			"--diff cannot be sorted by samples, only by script, self, total or name");
}

int view_diff__load(const struct diff_opts *opts, const struct view_opts *view,
		    const struct runtime *const *runtimes, const struct profile *now,
		    struct profile **ret)
{
	struct view_opts old = *view;

	if (view->db.text)
		old.db.where = opts->old_file;
	else
		old.file = opts->old_file;
	if (!old.filter.event)
		old.filter.event = now->event ? now->event : "cpu";
	return view__load(&old, runtimes, ret);
}

int view_diff__compare(const struct diff_opts *opts, const struct profile *old,
		       const struct profile *now, bool bare, struct diff **ret)
{
	struct err err = {};

	if (diff__new(old, now, opts->by_value, ret, &err))
		return cli__fail("%s", err.text);
	if (bare && diff__scale(*ret) != 1)
		fprintf(stderr, "old values are multiplied by %.6g: %s\n", diff__scale(*ret),
			opts->by_value ? "they are then per second, or sample, of the new recording"
				       : "both recordings then have the same total");
	return EXIT_OK;
}
