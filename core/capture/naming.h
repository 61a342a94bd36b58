/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NAMING_H
#define BRAID_NAMING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/capture/captured.h"
#include "core/capture/fetched_names.h"
#include "core/capture/ids.h"
#include "core/capture/kernel_frames.h"
#include "core/target/place.h"
#include "runtimes/runtime.h"

/* Frames that are recorded but not yet named, and where their names come from. */
struct naming;

struct naming_opts {
	struct ids *ids;
	const struct captured_set *set; /* borrowed: whose maps may name code of images */
	const struct runtime *const *runtimes;
	struct runtime_session *const *sessions;
	const char *kallsyms_path;
	bool (*hurries)(void *ctx);  /* symbols are not looked for any more; NULL: never */
	void (*on_fetch)(void *ctx); /* servers are asked from now on; may be NULL */
	void *ctx;
};

int naming__new(const struct naming_opts *opts, struct naming **ret, struct err *err);
void naming__free(struct naming *naming); /* NULL is fine */

/* Kernel addresses that got no names, as the kernel hides its symbols from this process. */
uint64_t naming__kernel_unnamed(const struct naming *naming);

/* The kernel's frames that say something of the sample, as kernel_frames__of. -ENOMEM. */
int naming__kernel_frames(struct naming *naming, const struct rec_sample *rec,
			  const uint64_t *words, uint64_t *ret, size_t *ret_n);

/* Queues a frame. -ENOMEM. */
int naming__add_kernel(struct naming *naming, uint32_t frame, uint64_t address);
/* Of code of an image, as it was met in the process with this serial number. */
int naming__add_native(struct naming *naming, uint32_t frame, const struct place *place,
		       uint32_t serial);
/* Code that no file backs: `path` is what /proc calls the mapping, "" for nothing at all. */
int naming__add_anonymous(struct naming *naming, uint32_t frame, const char *path, uint64_t offset);
/* Code that a runtime made, under a name for all of it. */
int naming__add_jit(struct naming *naming, uint32_t frame, const char *name);
/* What a mutex is called. */
int naming__add_lock(struct naming *naming, uint32_t frame, const char *name);
int naming__add_runtime(struct naming *naming, uint32_t frame, int runtime, uint64_t key);

/* Writes the locations of all that is queued. What a runtime does not know yet (another CPU may
 * announce it a moment after its first use) stays queued, but for the last run. */
int naming__run(struct naming *naming, bool last, struct err *err);

/* After the last run: what was named before is forgotten, for frames that begin anew. */
void naming__renew(struct naming *naming);

/* Names those that maps of the process may name, as long as these are there; others wait: loading
 * symbols takes long, just when what the process executes next needs its tables. */
int naming__process_ended(struct naming *naming, uint32_t serial, struct err *err);

/* Better names from the user's debug servers, if any, for what was named until now. Takes half a
 * minute at most. Adds to `ret`. */
int naming__fetch(struct naming *naming, struct fetched_names_stats *ret, struct err *err);

#endif
