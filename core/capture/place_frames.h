/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PLACE_FRAMES_H
#define BRAID_PLACE_FRAMES_H

#include <stdint.h>

#include "core/base/err.h"
#include "core/capture/captured.h"
#include "core/capture/ids.h"
#include "core/capture/naming.h"
#include "core/capture/naming_compiled.h"

/* The frames of native code: one for each place of a process, or one for each place of an image in
 * all processes. New frames are named at once, or queued for naming. */
struct place_frames;

struct place_frames_opts {
	struct ids *ids;
	struct naming *naming;
	struct naming_compiled *compiled;
	const struct runtime *const *runtimes;
};

int place_frames__new(const struct place_frames_opts *opts,
		      struct place_frames **ret);     /* -ENOMEM */
void place_frames__free(struct place_frames *frames); /* NULL is fine */

/* Drops all ids. */
void place_frames__renew(struct place_frames *frames);

/* Returns the frame of a place that place__at() just returned for the process, which must have an
 * id. Returns 0, or a negative errno with a message. */
int place_frames__get(struct place_frames *frames, struct captured *captured,
		      const struct place *place, uint32_t *ret_id, struct err *err);

/* Updates the loops; must be called before the frames of a sample. A runtime may be attached after
 * the first samples of code that runs its frames. */
int place_frames__see_runtimes(struct place_frames *frames, struct captured *captured,
			       struct err *err);

#endif
