/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_BUNDLE_H
#define BRAID_TESTS_REPLAY_BUNDLE_H

#include "bpf/host/programs.h"
#include "core/base/err.h"
#include "core/base/memory.h"
#include "tests/replay/pack.h"

/* One process of the corpus, with the instants ("cases") at which it was stopped. Its files are
 * laid out below a directory as /proc has them, so that all of braid can read them from there. */
struct bundle;

struct bundle_case {
	char name[PACK_NAME_BYTES];
	struct host_thread thread;
	struct memory *memory; /* owned by the bundle, until the next case */
};

/* `images`: the directory with the files that the bundle names; `work`: an existing, empty
 * directory for it. From here on core/target/procfs.h reads the bundle. -EBADMSG for a damaged or
 * hostile one. */
int bundle__open(const char *path, const char *images, const char *work, struct bundle **ret,
		 struct err *err);
/* Removes what it has laid out. NULL is fine. */
void bundle__close(struct bundle *bundle);

/* The next case. 1, 0 at the end, or a negative errno. */
int bundle__next(struct bundle *bundle, struct bundle_case *ret, struct err *err);

/* A call ends at this link-time address of @image, as an oracle says: the case's memory then has
 * one there if the bundle does not hold the bytes. Bundles that were recorded before the unwinder
 * read the code in front of return addresses have none. */
void bundle__add_call(struct bundle *bundle, const char *image, uint64_t vaddr);

/* What the case read of the target or of its files and the bundle does not have, as a sentence;
 * NULL: nothing. Only what ran since bundle__next counts. */
/* From now on what is not there is no mistake, or is one again. */
void bundle__forgive(struct bundle *bundle, bool forgives);

const char *bundle__lacks(const struct bundle *bundle);

/* Is the code at this link-time address of an image described? To be asked for every native frame.
 * If not it is lacking, too. */
void bundle__check_code(struct bundle *bundle, const char *image, uint64_t vaddr);

/* The same for bytes of an image, told by whoever watches core/elf/elf_file.h. */
void bundle__check_bytes(struct bundle *bundle, const char *path, uint64_t offset, uint64_t size);

#endif
