/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_TARGET_FILES_H
#define BRAID_TESTS_REPLAY_TARGET_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/replay/pack.h"

/* Files of a recorded process that are text, for its bundle. All functions return 0 or a negative
 * errno. */

/* Adds a file of /proc/PID, without the parts that differ for the user of the replay. */
int target_files__add_proc(struct pack *pack, pid_t pid, const char *name);

/* Adds a source file that the target has at an absolute path. Other paths, files that are not
 * regular, and large files are left out. */
int target_files__add_source(struct pack *pack, pid_t pid, const char *path);

/* Adds the present perf map, if there is one. A large one is reduced to the lines of code around
 * @addresses. */
int target_files__add_perf_map(struct pack *pack, pid_t pid, const uint64_t *addresses, size_t n);

#endif
