/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORD_SUMMARY_H
#define BRAID_RECORD_SUMMARY_H

#include <stdbool.h>

#include "core/record/session.h"

/* Prints the end of `braid record` on stderr: findings, next commands, losses, and measures against
 * an excess of limits. @verbose adds methods and cost. */
void record_summary__print(const struct session_opts *opts, const struct session_summary *summary,
			   bool verbose);

#endif
