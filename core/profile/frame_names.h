/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FRAME_NAMES_H
#define BRAID_FRAME_NAMES_H

#include "core/profile/build.h"

/* What recorded frames are shown as: frames of a profile, several where functions are inlined. Made
 * when first needed, so that the profile has nothing in it that was filtered out. */
struct frame_names {
	const struct recorded *recorded;
	struct profile *profile;
	bool lines, addresses, evidence; /* as in struct profile_filter */
	uint32_t *images;		 /* by image: number + 1 in the profile; 0: not yet */
	int kinds[KINDS_MAX + 1];	 /* of the file -> of the profile */
	bool *interprets;		 /* by image: it has an interpreter's loop */
	struct frame_shown {
		uint32_t first, n; /* places in `list`, innermost first; n 0: not made yet */
		bool inferred;
	} * shown; /* by frame, one more for frames that lead nowhere; then of inferred frames */
	uint32_t *list;
	size_t n, cap;
};

/* Adds the file's kinds to the profile. 0 or -ENOMEM; call frame_names__done in any case. */
int frame_names__init(struct frame_names *names, const struct recorded *recorded,
		      const struct profile_filter *filter, struct profile *profile);
void frame_names__done(struct frame_names *names);

/* `frame`: a row, or RECORDED_NONE. `inferred`: the step to it. `ret`: innermost first, borrowed
 * until the next call, at least one. 0 or -ENOMEM. */
int frame_names__get(struct frame_names *names, uint32_t frame, bool inferred, const uint32_t **ret,
		     uint32_t *ret_n);

#endif
