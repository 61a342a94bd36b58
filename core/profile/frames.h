/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FRAMES_H
#define BRAID_FRAMES_H

#include "core/profile/profile.h"

/* How much of a stack is shown: a profile with all frames in, one with fewer out. Weights stay what
 * they are; what ends in a frame that is not shown counts for the frame that is.
 *
 * The page does the same (core/page/assets/flame_frames.js), so that its user can switch;
 * tests/unit/flame.t compares the two.
 *
 * A stack without any frame of a runtime keeps all its frames in each view. Labels (groups, "woken
 * by ...") are always shown, and what follows one is a stack of its own. Of the others,
 *
 * - script: shows the runtimes' functions only (code_rules__is_function());
 * - collapsed: of each run of native frames of one library (inlined ones are of the library of the
 *   frame that they are inlined into, and the kernel is one, too) shows one frame. That is the
 *   first in the run that matters: the system call, or what an interpreter's function calls for a
 *   script (ROLE_CALLER); in runs of an interpreter's library without such a frame, one named
 *   after the library; in others the first, outermost, frame;
 * - app: shows the functions that the user has written (core/profile/code_rules.h). A stack without
 *   any is shown as by script. */
enum profile_frames {
	FRAMES_ALL,
	FRAMES_COLLAPSED,
	FRAMES_SCRIPT,
	FRAMES_APP, /* not on the page, which is written with what it leaves */
	FRAMES_N,
};
#define FRAMES_CHOICES "app, script, collapsed or all" /* for people */

const char *frames__name(enum profile_frames frames);
enum profile_frames frames__find(const char *name); /* FRAMES_N: there is none of that name */

/* Is there any frame of a runtime? Else all views are the same. */
bool frames__differ(const struct profile *profile);

/* The caller frees `*ret`. Without histograms. 0 or -ENOMEM. */
int frames__view(const struct profile *all, enum profile_frames frames, struct profile **ret);

/* By node: where a script's own time with the native code that it calls belongs: the nearest frame
 * of a runtime's function from it rootwards; itself where there is none. Room for n_nodes. 0 or
 * -ENOMEM. */
int frames__script_owners(const struct profile *profile, uint32_t *owners);

#endif
