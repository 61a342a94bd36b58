/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CONDITION_H
#define BRAID_CONDITION_H

#include <stdbool.h>

#include "core/base/err.h"
#include "core/profile/diff.h"

/* Conditions on a profile, for continuous integration: "total(json.*) > 20%". */

enum condition_measure {
	CONDITION_SELF,	  /* share of the stacks that end in a matching function */
	CONDITION_TOTAL,  /* share of the stacks with a matching function anywhere */
	CONDITION_CHANGE, /* new total less old total; only a change beyond chance counts */
};

struct condition {
	enum condition_measure measure;
	char pattern[256]; /* pattern of fnmatch(3) for names of functions, without files */
	bool below;	   /* holds below the limit, not above it */
	double limit;	   /* share: 0.2 is 20 % */
};

/* Parses "MEASURE(PATTERN) > PERCENT%", or with "<". Returns 0, or -EINVAL with a message. */
int condition__parse(const char *text, struct condition *ret, struct err *err);

/* Sets *@ret_holds, and *@ret_share to the share or the change. If there is only one recording,
 * @diff is NULL and @profile is that recording. CONDITION_CHANGE requires @diff; the other measures
 * use its new side. Returns 0 or -ENOMEM. */
int condition__check(const struct condition *condition, const struct profile *profile,
		     const struct diff *diff, double *ret_share, bool *ret_holds);

#endif
