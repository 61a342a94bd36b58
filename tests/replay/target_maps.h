/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_TARGET_MAPS_H
#define BRAID_TESTS_REPLAY_TARGET_MAPS_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All mappings of a recorded process, also those of data, with paths as it sees them itself. */
#define VDSO_PATH "/linux-vdso.so.1" /* it gets a file of its own: each machine has another */

struct target_mapping {
	uint64_t start, end, offset;
	char path[PATH_MAX]; /* "" or "[heap]": no file */
};

struct target_maps { /* zeroed: none */
	struct target_mapping *list;
	size_t n, cap;
};

/* Reads them anew. `root` is the target's root directory, "" for ours. `ret_text` is what its maps
 * look like from inside, owned by the caller. 0 or a negative errno. */
int target_maps__read(struct target_maps *maps, pid_t pid, const char *root, char **ret_text);
void target_maps__done(struct target_maps *maps);

const struct target_mapping *target_maps__find(const struct target_maps *maps, uint64_t address);

#endif
