/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORD_ROTATION_H
#define BRAID_RECORD_ROTATION_H

#include "core/cli/cli.h"

/* Options of `record` for rotation and for metrics. */
extern const struct argp
	record_rotation_argp; /* child parser; its input is a struct session_opts */

/* Ends the program if the options are inconsistent, also with the other options. */
void record_rotation__check(struct argp_state *state, struct session_opts *opts, bool output_given);

#endif
