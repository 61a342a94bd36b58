/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MOVED_CODE_H
#define BRAID_MOVED_CODE_H

#include <stdint.h>

#include "core/target/images.h"
#include "core/target/procfs.h"

/* Code of a file that the process moved to other memory at the same addresses, as programs do to
 * have their code on huge pages. The memory is anonymous, of a memfd or of hugetlbfs.
 *
 * Mappings of a file on either side show where the file's segments are. If an executable segment
 * falls on the memory, its bytes are compared with those of the file. Only if they are equal, the
 * memory is code of that file. */

struct moved_code {
	uint64_t start, end; /* the part of the mapping that has the code; process addresses */
	uint64_t bias;	     /* address - bias = link-time address */
	struct image *image;
	bool is_new; /* the image was just copied, and its memory may still change */
};

/* Finds the file whose code is in @mapping, an executable one of @mappings. Returns 0; -ENOENT;
 * -EAGAIN with @ret set: a file fits but its bytes differ (they may be copied soon); or -ENOMEM. */
int moved_code__find(struct images *images, uint32_t pid, const struct procfs_mappings *mappings,
		     const struct procfs_mapping *mapping, struct moved_code *ret);

/* As moved_code__find(), for code that the runtime of an image copies to another address: the
 * link-time range of @code. Memory and code must begin at the same place. */
int moved_code__find_copy(uint32_t pid, struct image *image, const struct runtime_range *code,
			  const struct procfs_mapping *mapping, struct moved_code *ret);

/* Compares a sample of the pages. Returns 0 if the memory of the process has the image's code from
 * @moved->start to @moved->end, else -EAGAIN. */
int moved_code__compare(uint32_t pid, const struct moved_code *moved);

/* Narrows @ret, which has a bias and an image, to the part of [@start, @end) that executable
 * segments of the image cover. Returns false if there is none. */
bool moved_code__narrow(struct moved_code *ret, uint64_t start, uint64_t end);

#endif
