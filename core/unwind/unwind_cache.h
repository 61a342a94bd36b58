/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UNWIND_CACHE_H
#define BRAID_UNWIND_CACHE_H

#include "core/elf/elf_file.h"
#include "core/unwind/unwind_table.h"

/* Unwind tables on disk: one file per build-id, "<hex>.utab" in @dir. The build-id only selects the
 * file. A cache file is used under three conditions. It ends with all bytes that the table was made
 * from, which are equal to those of the image. It is a regular file in a directory, both owned by
 * this user and not writable by others. No index in it leads outside the table, so a hostile file
 * has no effect. @file must have a build-id. */

/* Loads the table of @file. Returns 0, -ENOENT, -EBADMSG if the cache file is not usable, or
 * another negative errno. *@ret as from unwind_table__build(). */
int unwind_cache__load(const char *dir, const struct elf_file *file, struct unwind_table *ret);

/* Stores the table of @file atomically: readers see the old or the new table. Returns 0 or a
 * negative errno. */
int unwind_cache__store(const char *dir, const struct elf_file *file,
			const struct unwind_table *table);

/* If the tables in @dir take more than @max_bytes, removes the least recently used ones until a
 * quarter of @max_bytes is free. Removes only files that this user owns and whose names are those
 * of cache files. unwind_cache__store() calls this after every 32 MiB. Returns 0 or a negative
 * errno. */
int unwind_cache__trim(const char *dir, uint64_t max_bytes);

#endif
