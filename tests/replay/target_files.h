/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_TARGET_FILES_H
#define BRAID_TESTS_REPLAY_TARGET_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/replay/pack.h"

/* Files of a recorded process that are text, for its bundle. All return 0 or a negative errno. */

/* One of /proc/PID, without what is different for whoever replays it. */
int target_files__add_proc(struct pack *pack, pid_t pid, const char *name);

/* A source file that the target has at an absolute path. Others, and what is no file or too large,
 * are left out. */
int target_files__add_source(struct pack *pack, pid_t pid, const char *path);

/* What the perf map says by now, if there is one; of a large one the lines of code around these
 * addresses. */
int target_files__add_perf_map(struct pack *pack, pid_t pid, const uint64_t *addresses, size_t n);

#endif
