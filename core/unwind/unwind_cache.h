/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UNWIND_CACHE_H
#define BRAID_UNWIND_CACHE_H

#include "core/elf/elf_file.h"
#include "core/unwind/unwind_table.h"

/* Unwind tables on disk: one file per build-id, "<hex>.utab" in `dir`. A build-id only finds the
 * file. It is taken if it says that its table was made of what the image has, byte for byte, which
 * no program can say of another; if it is a regular one of ours, in a directory of ours, which
 * nobody else can write; and if nothing in it can lead a reader outside the table: a hostile file
 * is as good as none. `file` must have a build-id. */

/* 0, or -ENOENT, -EBADMSG (not usable) or another negative errno; `ret` as unwind_table__build. */
int unwind_cache__load(const char *dir, const struct elf_file *file, struct unwind_table *ret);

/* Replaces atomically what is there: readers see the old or the new table. */
int unwind_cache__store(const char *dir, const struct elf_file *file,
			const struct unwind_table *table);

/* Where the tables in `dir` take more than `max_bytes`, removes those that were not used for the
 * longest time until a quarter of that is free. Only files that are ours and named as ours are
 * touched. Storing does this now and then; 0 or a negative errno. */
int unwind_cache__trim(const char *dir, uint64_t max_bytes);

#endif
