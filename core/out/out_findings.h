/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUT_FINDINGS_H
#define BRAID_OUT_FINDINGS_H

#include <stdbool.h>
#include <stdio.h>

#include "core/profile/profile.h"

struct output_advice {
	bool locks;  /* a tenth of the time and more is spent waiting for locks */
	bool native; /* a third of the CPU time and more is spent in native code */
};

/* Writes up to three sentences: the waits, the time of others on the CPU, and the functions on the
 * CPU. Everything in them is a sum of the profile. @profile: all frames and lines, by state. 0 or
 * -ENOMEM */
int output__findings(const struct profile *profile, FILE *out, struct output_advice *ret);

#endif
