/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PLACE_FRAMES_H
#define BRAID_PLACE_FRAMES_H

#include <stdint.h>

#include "core/base/err.h"
#include "core/capture/captured.h"
#include "core/capture/ids.h"
#include "core/capture/naming.h"
#include "core/capture/naming_compiled.h"

/* The frames of native code: one for each place of a process, or for each of an image, whichever
 * processes it is met in. New ones are named at once, or queued for that. */
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

/* No id holds any more. */
void place_frames__renew(struct place_frames *frames);

/* The frame of a place that place__at has just given for the process, which has its id. 0 or a
 * negative errno with a sentence. */
int place_frames__get(struct place_frames *frames, struct captured *captured,
		      const struct place *place, uint32_t *ret_id, struct err *err);

/* Before the frames of a sample: a runtime may have been attached after the first samples of code
 * that turns out to be what runs its frames. */
int place_frames__see_runtimes(struct place_frames *frames, struct captured *captured,
			       struct err *err);

#endif
