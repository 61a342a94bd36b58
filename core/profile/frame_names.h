/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FRAME_NAMES_H
#define BRAID_FRAME_NAMES_H

#include "core/profile/build.h"

/* Converts recorded frames to frames of a profile, several where functions are inlined. Each is
 * made when first needed, so that the profile contains no frames that were filtered out. */
struct frame_names {
	const struct recorded *recorded;
	struct profile *profile;
	bool lines, addresses, evidence; /* as in struct profile_filter */
	uint32_t *images;	  /* by image: number + 1 in the profile; 0: not numbered yet */
	int kinds[KINDS_MAX + 1]; /* index: kind of the file; value: kind of the profile */
	bool *interprets;	  /* by image: true if it has an interpreter's loop */
	struct frame_shown {
		uint32_t first, n; /* range of `list`, innermost first; n 0: not made yet */
		bool inferred;
	} * shown; /* by frame, then one for missing frames, then the same for inferred frames */
	uint32_t *list;
	size_t n, cap;
};

/* Adds the file's kinds to the profile. Returns 0 or -ENOMEM; the caller calls frame_names__done()
 * in any case. */
int frame_names__init(struct frame_names *names, const struct recorded *recorded,
		      const struct profile_filter *filter, struct profile *profile);
void frame_names__done(struct frame_names *names);

/* Returns the frames of the profile that show @frame, innermost first, in *@ret: at least one,
 * borrowed until the next call. @frame is a row or RECORDED_NONE; @inferred is set if the step to
 * it is inferred. Returns 0 or -ENOMEM. */
int frame_names__get(struct frame_names *names, uint32_t frame, bool inferred, const uint32_t **ret,
		     uint32_t *ret_n);

#endif
