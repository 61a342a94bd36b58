/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_IMAGE_NAMES_H
#define BRAID_IMAGE_NAMES_H

#include "core/target/images.h"

/* Finds the name of the function that begins at @entry, a link-time address, in the runtimes'
 * tables of the image. *@ret is NULL if there is none. The first call reads the tables. @sessions
 * has NULL for runtimes that are not enabled. *@ret is borrowed until images__free(). Returns 0 or
 * -ENOMEM. */
int image_names__find(struct image *image, const struct runtime *const *runtimes,
		      struct runtime_session *const *sessions, uint64_t entry, const char **ret);

#endif
