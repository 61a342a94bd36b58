/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_IMAGE_NAMES_H
#define BRAID_IMAGE_NAMES_H

#include "core/target/images.h"

/* What the tables of an image, as a runtime knows them, call the function that begins at `entry`,
 * a link-time address; NULL: nothing. They are read when the first function is asked for.
 * `sessions` has NULL for runtimes that are not enabled. Borrowed until images__free. 0 or -ENOMEM.
 */
int image_names__find(struct image *image, const struct runtime *const *runtimes,
		      struct runtime_session *const *sessions, uint64_t entry, const char **ret);

#endif
