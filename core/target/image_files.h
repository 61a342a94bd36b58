/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_IMAGE_FILES_H
#define BRAID_IMAGE_FILES_H

#include <stdbool.h>

#include "bpf/shared.h"
#include "core/target/images.h"

/* What the kernel half is told of files, so that it finds the tables of a program that was executed
 * before without waiting for user space. */

/* How the kernel half knows the file of a mapping that has these attributes. On
 * overlay file systems it may see another device: then it asks with the key that it has, see
 * images__learn. */
struct image_key image_key__of(const struct procfs_mapping *mapping, uint64_t size,
			       int64_t ctime_ns);

/* But for the device. */
bool image_key__is_same_file(const struct image_key *a, const struct image_key *b);

/* -ENOTSUP for an image whose code is not all at one distance from its place in the file; or
 * -errno of a map that is full, which costs nothing but time. */
int image_files__publish(int map_fd, const struct image_key *key, const struct image *image);

#endif
