/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FETCHED_NAMES_H
#define BRAID_FETCHED_NAMES_H

#include <stdbool.h>

#include "core/base/err.h"
#include "core/capture/ids.h"
#include "core/fetch/debuginfod.h"
#include "core/target/images.h"

/* Frames in stripped files, which get better names at the end if the user's debug servers have the
 * symbols of the files (core/fetch/debuginfod.h). */
struct fetched_names {
	struct stripped_frame {
		uint32_t frame;
		uint64_t address;
		struct image *image;
	} * frames;
	size_t n, cap;
};

/* Adds a native frame that was resolved, if its file is stripped. Does nothing if the user named no
 * server. Returns 0 or -ENOMEM. */
int fetched_names__add(struct fetched_names *names, uint32_t frame, struct image *image,
		       uint64_t address);

struct fetched_names_stats {
	unsigned queried, found; /* files */
};

/* Requests the symbols of each file, in order of falling numbers of frames, and writes new
 * locations. Adds to *@ret. */
int fetched_names__run(struct fetched_names *names, struct ids *ids, struct debuginfod_wait *wait,
		       struct fetched_names_stats *ret, struct err *err);
void fetched_names__done(struct fetched_names *names);

/* Writes the results of symbols__resolve() as locations of @frame. */
int symbol_frames__write(struct ids *ids, uint32_t frame, const struct symbol_frame *frames, int n,
			 struct err *err);

#endif
