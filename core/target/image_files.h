/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_IMAGE_FILES_H
#define BRAID_IMAGE_FILES_H

#include <stdbool.h>

#include "bpf/shared.h"
#include "core/target/images.h"

/* Entries about files for the kernel half. With them it finds the tables of a program that was
 * executed before without waiting for user space. */

/* Returns the key of the file of a mapping with these attributes, as the kernel half computes it.
 * On overlay file systems the kernel half may see another device. It then sends its own key in a
 * request, see images__learn(). */
struct image_key image_key__of(const struct procfs_mapping *mapping, uint64_t size,
			       int64_t ctime_ns);

/* Returns true if the keys are equal except for the device. */
bool image_key__is_same_file(const struct image_key *a, const struct image_key *b);

/* Publishes the image under @key. Returns 0; -ENOTSUP: the distance between code and its file
 * position varies within the image; the error of a full map, which costs only time. */
int image_files__publish(int map_fd, const struct image_key *key, const struct image *image);

#endif
