/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORD_SUMMARY_H
#define BRAID_RECORD_SUMMARY_H

#include <stdbool.h>

#include "core/record/session.h"

/* What `braid record` says at the end, on stderr: what was found and what to do next, what was lost
 * and what was done to keep limits. `verbose`: also how it was found, and what that cost. */
void record_summary__print(const struct session_opts *opts, const struct session_summary *summary,
			   bool verbose);

#endif
