/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_VIEW_DIFF_H
#define BRAID_VIEW_DIFF_H

#include "core/cli/cli.h"

/* Options of commands that compare a recording with an older one. */
struct diff_opts {
	const char *old_file; /* NULL: nothing to compare with */
	char *old_file_name;  /* private; owned, the caller frees it */
	bool by_value, by_given;
};
extern const struct argp diff_argp; /* child parser; its input is a struct diff_opts */

/* Ends the program if the options are inconsistent, or invalid for the page. */
void view_diff__check_page(struct argp_state *state, const struct diff_opts *opts);

/* As view_diff__check_page(), for a format and a sort order. */
void view_diff__check(struct argp_state *state, const struct diff_opts *opts,
		      const struct output_format *format, enum output_sort sort);

/* Sets the older recording of a --diff that names none: `view->file`.old. Prints the error. Returns
 * an exit status. */
int view_diff__find_old(struct diff_opts *opts, const struct view_opts *view);

/* Loads the older recording as `view` and `now` say. Prints the error. Returns an exit status. */
int view_diff__load(const struct diff_opts *opts, const struct view_opts *view,
		    const struct runtime *const *runtimes, const struct profile *now,
		    struct profile **ret);

/* Compares two profiles. @bare: the output has no heading that explains the comparison. Prints the
 * error. Returns an exit status. */
int view_diff__compare(const struct diff_opts *opts, const struct profile *old,
		       const struct profile *now, bool bare, struct diff **ret);

#endif
