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

/* Frames that are recorded but not yet named, and the sources of their names. */
struct naming;

struct naming_opts {
	struct ids *ids;
	const struct captured_set *set; /* borrowed; processes whose maps may name code of images */
	const struct runtime *const *runtimes;
	struct runtime_session *const *sessions;
	const char *kallsyms_path;
	bool (*hurries)(void *ctx);  /* true: look-ups of symbols are skipped; NULL: never */
	void (*on_fetch)(void *ctx); /* called before requests to servers; may be NULL */
	void *ctx;
};

int naming__new(const struct naming_opts *opts, struct naming **ret, struct err *err);
void naming__free(struct naming *naming); /* NULL is fine */

/* Returns the number of kernel addresses without a name, as the kernel hides its symbols from this
 * process. */
uint64_t naming__kernel_unnamed(const struct naming *naming);

/* As kernel_frames__of(). Returns 0 or -ENOMEM. */
int naming__kernel_frames(struct naming *naming, const struct rec_sample *rec,
			  const uint64_t *words, uint64_t *ret, size_t *ret_n);

/* Queue a frame. All return 0 or -ENOMEM. */
int naming__add_kernel(struct naming *naming, uint32_t frame, uint64_t address);
/* A frame in code of an image, seen in the process with this serial number. */
int naming__add_native(struct naming *naming, uint32_t frame, const struct place *place,
		       uint32_t serial);
/* A frame in code that no file backs; @path is the mapping's name in /proc, "" for none. */
int naming__add_anonymous(struct naming *naming, uint32_t frame, const char *path, uint64_t offset);
/* A frame in code that a runtime generated, with one name for all such code. */
int naming__add_jit(struct naming *naming, uint32_t frame, const char *name);
/* A mutex, with its name. */
int naming__add_lock(struct naming *naming, uint32_t frame, const char *name);
int naming__add_runtime(struct naming *naming, uint32_t frame, int runtime, uint64_t key);

/* Writes the locations of all queued frames. If a runtime has no name yet, the frame stays queued,
 * except in the last run: another CPU may announce the name just after its first use. */
int naming__run(struct naming *naming, bool last, struct err *err);

/* Clears the queue and the counts, after the last run, for a new set of frames. */
void naming__renew(struct naming *naming);

/* Names those frames that the process's maps may name, while the maps exist. Other frames stay
 * queued: to load symbols takes long, while the process's next program urgently needs its
 * tables. */
int naming__process_ended(struct naming *naming, uint32_t serial, struct err *err);

/* Gets better names from the user's debug servers, if any, for frames that were named before. Takes
 * up to 30 s. Adds to *@ret. */
int naming__fetch(struct naming *naming, struct fetched_names_stats *ret, struct err *err);

#endif
