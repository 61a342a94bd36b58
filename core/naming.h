/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NAMING_H
#define BRAID_NAMING_H

#include <stdint.h>

#include "core/err.h"
#include "core/images.h"
#include "core/recording.h"
#include "runtimes/runtime.h"

/* Frames that are recorded but not yet named, and where their names come from. */
struct naming;

struct naming_opts {
	struct recording *recording;
	const struct runtime *const *runtimes;
	struct runtime_session *const *sessions;
	const char *kallsyms_path;
};

int naming__new(const struct naming_opts *opts, struct naming **ret, struct err *err);
void naming__free(struct naming *naming); /* NULL is fine */

/* Queues a frame. -ENOMEM. */
int naming__add_kernel(struct naming *naming, uint32_t frame, uint64_t address);
int naming__add_native(struct naming *naming, uint32_t frame, struct image *image, uint64_t vaddr);
/* Code that no file backs: `path` is what /proc calls the mapping, "" for nothing at all. */
int naming__add_anonymous(struct naming *naming, uint32_t frame, const char *path, uint64_t offset);
int naming__add_runtime(struct naming *naming, uint32_t frame, int runtime, uint64_t key);

/* Writes the locations of all that is queued. */
int naming__run(struct naming *naming, struct err *err);

#endif
