/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_TARGET_MAPS_H
#define BRAID_TESTS_REPLAY_TARGET_MAPS_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All mappings of a recorded process, also those of data, with paths as the process sees them. */
#define VDSO_PATH "/linux-vdso.so.1" /* its own file: each machine has another */

struct target_mapping {
	uint64_t start, end, offset;
	char path[PATH_MAX]; /* "" or "[heap]": no file */
};

struct target_maps { /* zeroed: empty */
	struct target_mapping *list;
	size_t n, cap;
};

/* Reads the mappings again. @root is the target's root directory, "" for ours. *@ret_text is its
 * maps file as seen from inside, owned by the caller. Returns 0 or a negative errno. */
int target_maps__read(struct target_maps *maps, pid_t pid, const char *root, char **ret_text);
void target_maps__done(struct target_maps *maps);

const struct target_mapping *target_maps__find(const struct target_maps *maps, uint64_t address);

#endif
