/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_VIEW_SUMMARY_H
#define BRAID_VIEW_SUMMARY_H

#include "core/cli/cli.h"

/* Prints the findings of a recording in sentences, and suitable commands. Prints the error. Returns
 * an exit status. */
int view_summary__print(const struct view_opts *opts, const struct runtime *const *runtimes,
			FILE *out);

#endif
