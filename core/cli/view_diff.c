// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/view_diff.h"

#include <string.h>

enum { OPT_DIFF = 0x300, OPT_DIFF_BY };

static const struct argp_option options[] = {
	{ "diff", OPT_DIFF, "OLD", 0,
	  "Compare with this older recording of the same event (of a database: with what this "
	  "--where has): the page, a table, tree or folded "
	  "(with two columns, for difffolded.pl's readers); by the size of the change, and whether "
	  "it is within the sampling error",
	  0 },
	{ "diff-by", OPT_DIFF_BY, "share|value", 0,
	  "Compare shares of each recording's whole (default), or values per second of recording",
	  0 },
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct diff_opts *opts = state->input;

	switch (key) {
	case OPT_DIFF:
		opts->old_file = cli__text(state, "--diff", arg);
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

static void check(struct argp_state *state, const struct diff_opts *opts)
{
	if (!opts->old_file && opts->by_given)
		cli__misused(state, "--diff-by says how to compare: with --diff OLD");
}

void view_diff__check_page(struct argp_state *state, const struct diff_opts *opts)
{
	check(state, opts);
	if (opts->by_value)
		cli__misused(state, "the page compares shares: --diff-by value is for report");
}

void view_diff__check(struct argp_state *state, const struct diff_opts *opts,
		      const struct output_format *format, enum output_sort sort)
{
	check(state, opts);
	if (!opts->old_file)
		return;
	if (!format || !format->diff)
		cli__misused(state,
			     "--diff is for the formats table, tree, json, markdown and folded");
	if (sort == OUTPUT_SORT_SAMPLES)
		cli__misused(state, "--diff has no samples to --sort by, but script, self, total "
				    "and name");
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
			opts->by_value ? "per second, or sample, of the new recording"
				       : "both recordings have the same whole");
	return EXIT_OK;
}
