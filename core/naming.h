/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NAMING_H
#define BRAID_NAMING_H

#include <stdbool.h>
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
	bool (*hurries)(void *ctx); /* symbols are not looked for any more; NULL: never */
	void *ctx;
};

int naming__new(const struct naming_opts *opts, struct naming **ret, struct err *err);
void naming__free(struct naming *naming);

/* Kernel addresses that got no names, as the kernel hides its symbols from this process. */
uint64_t naming__kernel_unnamed(const struct naming *naming);
/* NULL is fine */

/* Another way to a name, for code of images without symbols that a runtime has made in advance:
 * what the process's maps call it. False: nothing. Strings are in `buf`. */
#define NAMING_TEXT_BYTES 2048
typedef bool (*naming_code_fn)(void *ctx, uint32_t pid, uint64_t address,
			       struct recording_location *ret, char buf[NAMING_TEXT_BYTES]);
void naming__use_maps(struct naming *naming, naming_code_fn find, void *ctx);

/* Queues a frame. -ENOMEM. */
int naming__add_kernel(struct naming *naming, uint32_t frame, uint64_t address);
/* `pid`, `address`: a process in which it was met, and where. */
int naming__add_native(struct naming *naming, uint32_t frame, struct image *image, uint64_t vaddr,
		       uint32_t pid, uint64_t address);
/* Code that no file backs: `path` is what /proc calls the mapping, "" for nothing at all. */
int naming__add_anonymous(struct naming *naming, uint32_t frame, const char *path, uint64_t offset);
/* Code that a runtime made, under a name for all of it. */
int naming__add_jit(struct naming *naming, uint32_t frame, const char *name);
int naming__add_runtime(struct naming *naming, uint32_t frame, int runtime, uint64_t key);

/* Writes the locations of all that is queued. What a runtime does not know yet (another CPU may
 * announce it a moment after its first use) stays queued, but for the last run. */
int naming__run(struct naming *naming, bool last, struct err *err);

/* Names those that maps of the process may name, as long as these are there; others wait: loading
 * symbols takes long, just when what the process executes next needs its tables. */
int naming__process_ended(struct naming *naming, uint32_t pid, struct err *err);

#endif
