/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_BUNDLE_H
#define BRAID_TESTS_REPLAY_BUNDLE_H

#include "bpf/host/programs.h"
#include "core/base/err.h"
#include "core/base/memory.h"
#include "tests/replay/pack.h"

/* One process of the corpus, with the instants ("cases") at which it was stopped. Its files are
 * laid out below a directory as in /proc, so that all of braid can read them from there. */
struct bundle;

struct bundle_case {
	char name[PACK_NAME_BYTES];
	struct host_thread thread;
	struct memory *memory; /* owned by the bundle, until the next case */
};

/* Opens a bundle. @images is the directory with the files that the bundle names; @work is an
 * existing, empty directory for files that are laid out. From then on core/target/procfs.h reads
 * the bundle. Returns -EBADMSG for a damaged or hostile bundle. */
int bundle__open(const char *path, const char *images, const char *work, struct bundle **ret,
		 struct err *err);
/* Removes the files that were laid out. @bundle may be NULL. */
void bundle__close(struct bundle *bundle);

/* Goes to the next case. Returns 1, 0 at the end, or a negative errno. */
int bundle__next(struct bundle *bundle, struct bundle_case *ret, struct err *err);

/* Adds a call that ends at this link-time address of @image to the memory of the case, unless the
 * bundle has the bytes. The address comes from an oracle. Bundles from before the unwinder read the
 * code in front of return addresses have no such bytes. */
void bundle__add_call(struct bundle *bundle, const char *image, uint64_t vaddr);

/* bundle__lacks() returns the memory or file that the case read and the bundle does not have, as a
 * sentence; NULL: nothing. Only reads since bundle__next() count. */
/* Sets whether missing data are ignored from now on. */
void bundle__forgive(struct bundle *bundle, bool forgives);

const char *bundle__lacks(const struct bundle *bundle);

/* Checks that the code at this link-time address of an image is described. If it is not, it counts
 * as missing. Must be called for each native frame. */
void bundle__check_code(struct bundle *bundle, const char *image, uint64_t vaddr);

/* As bundle__check_code(), for bytes of an image that core/elf/elf_file.h reads. */
void bundle__check_bytes(struct bundle *bundle, const char *path, uint64_t offset, uint64_t size);

#endif
