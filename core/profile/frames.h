/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FRAMES_H
#define BRAID_FRAMES_H

#include "core/profile/profile.h"

/* Views of stacks: a profile with all frames is converted to one with fewer frames. Weights do not
 * change. The weight of a stack that ends in a hidden frame counts for the next shown frame
 * outwards.
 *
 * The page does the same (core/page/assets/flame_frames.js), so that its user can switch;
 * tests/unit/flame.t compares the two.
 *
 * All views show all frames of a stack without any frame of a runtime. Labels (groups, "woken by
 * ...") are always shown, and the frames after a label are a stack of their own. The other frames
 * are shown by view:
 *
 * - script: only the runtimes' functions (function_rules__is_function());
 * - collapsed: one frame for each run of native frames of one library. Inlined frames belong to the
 *   library of the frame that they are inlined into, and the kernel counts as a library. The frame
 *   is the first one of the run that matters: the system call, or the function that an
 *   interpreter's function calls for a script (ROLE_CALLER). A run of an interpreter's library
 *   without such a frame is shown as a frame with the library's name. Other runs are shown as
 *   their first, outermost, frame;
 * - app: only functions that the user has written (core/profile/function_rules.h). A stack whose
 *   functions are all of packages is shown as one frame, "[without own code]". If no stack has own
 *   code, this view is the script view. */
enum profile_frames {
	FRAMES_ALL,
	FRAMES_COLLAPSED,
	FRAMES_SCRIPT,
	FRAMES_APP, /* not offered on the page, which is written with the chosen view */
	FRAMES_N,
};
#define FRAMES_CHOICES "app, script, collapsed or all" /* for messages */

const char *frames__name(enum profile_frames frames);
enum profile_frames frames__find(const char *name); /* FRAMES_N: no view has that name */

/* Returns true if the profile has a frame of a runtime. Without such a frame all views are the
 * same. */
bool frames__differ(const struct profile *profile);

/* Makes a view of @all, without histograms. The caller frees *@ret. Returns 0 or -ENOMEM. */
int frames__view(const struct profile *all, enum profile_frames frames, struct profile **ret);

/* Finds for each node the one that owns its time in the script view: the nearest frame of a
 * runtime's function rootwards, or the node itself if there is none. @owners has room for n_nodes.
 * Returns 0 or -ENOMEM. */
int frames__script_owners(const struct profile *profile, uint32_t *owners);

#endif
