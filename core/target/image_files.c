// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/image_files.h"

#include <errno.h>

#include "core/base/util.h"
#include "core/kernel/maps.h"

struct image_key image_key__of(const struct procfs_mapping *mapping, uint64_t size,
			       int64_t ctime_ns)
{
	return (struct image_key) { .ino = mapping->inode,
				    .size = size,
				    .ctime_ns = ctime_ns,
				    .dev = mapping->dev_major << 20 | mapping->dev_minor };
}

bool image_key__is_same_file(const struct image_key *a, const struct image_key *b)
{
	return a->ino == b->ino && a->size == b->size && a->ctime_ns == b->ctime_ns;
}

int image_files__publish(int map_fd, const struct image_key *key, const struct image *image)
{
	struct image_rec rec = { .number = image->number };

	if (!image->number || image->number >= IMAGE_FILES_MAX ||
	    !image__vaddr_less_offset(image, &rec.vaddr_less_offset))
		return -ENOTSUP;
	if (image->table.n_pages)
		rec.n_pages = PAGES_UNPLACED;
	if (image->has_table) {
		rec.vaddr_start = image->table.vaddr_start;
		rec.n_pages = image->table.n_pages;
		rec.base = image->base;
		rec.rules_at = image->table.rules_at;
		rec.rows_at = image->table.rows_at;
	}
	return map__update(map_fd, key, &rec);
}
