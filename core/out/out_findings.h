/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUT_FINDINGS_H
#define BRAID_OUT_FINDINGS_H

#include <stdbool.h>
#include <stdio.h>

#include "core/profile/profile.h"

struct output_advice {
	bool locks;  /* more than 10 % of the time is spent waiting for locks */
	bool native; /* more than 30 % of the CPU time is spent in native code */
};

/* Writes up to three sentences: on waits, on the time in which others had the CPU, and on the
 * functions on the CPU. All numbers in them are sums of the profile. @profile has all frames and
 * lines, by state. Returns 0 or -ENOMEM. */
int output__findings(const struct profile *profile, FILE *out, struct output_advice *ret);

#endif
