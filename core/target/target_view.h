/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TARGET_VIEW_H
#define BRAID_TARGET_VIEW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/maps_line.h"
#include "core/target/procfs.h"

/* A source of facts about a target. Callers use procfs.h, threads.h and process_words.h, which read
 * the view that is in use:
 *
 *   procfs.c      the live system, and recorded processes (struct procfs_source): a directory that
 *                 is laid out as /proc
 *   core_file.c   the process that left a core file
 *
 * An implementation embeds the struct as its first member. IDs are those in the target's /proc.
 * Facts that only a live process has (CPU time, map_files, cgroups) are not part of a view:
 * procfs.h reports them as missing for a core file. */
struct target_view {
	/* As procfs__info(). */
	int (*status)(const struct target_view *view, uint32_t id, struct procfs_info *ret,
		      struct err *err);
	/* As procfs__mappings(). */
	int (*mappings)(const struct target_view *view, uint32_t pid, struct procfs_mappings *ret);
	/* As threads__list(). */
	int (*threads)(const struct target_view *view, uint32_t pid, uint32_t **ret, size_t *ret_n);
	/* Copies up to @size bytes of the arguments (@name: "cmdline") or the environment
	 * ("environ"), each word with a NUL. Returns their number, or a negative errno. */
	ssize_t (*words)(const struct target_view *view, uint32_t pid, const char *name, char *buf,
			 size_t size);
	/* Copies memory. Returns 0, or a negative errno if a part of it is unreadable. */
	int (*memory)(const struct target_view *view, uint32_t pid, uint64_t address, void *to,
		      size_t size);
	/* Sets the path of the directory that stands for "/" in paths of the process. */
	void (*root)(const struct target_view *view, uint32_t pid, char *ret, size_t size);
};

/* Makes @view replace the live system until the call with NULL. @view is borrowed. */
void target_view__use(const struct target_view *view);

/* Returns the view in use. */
const struct target_view *target_view__current(void);

/* Makes mappings of lines that are sorted by address, borrowed. Returns 0 or -ENOMEM. */
int target_view__take_lines(const struct maps_line *lines, size_t n, struct procfs_mappings *ret);

/* The directory's implementations of mappings (procfs_maps.c) and threads (threads.c). */
int target_dir__mappings(const struct target_view *view, uint32_t pid, struct procfs_mappings *ret);
int target_dir__threads(const struct target_view *view, uint32_t pid, uint32_t **ret,
			size_t *ret_n);

#endif
