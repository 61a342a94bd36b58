/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DEBUGFILE_H
#define BRAID_DEBUGFILE_H

#include <stdbool.h>

#include "core/elf/elf_file.h"

/* Finds and opens the separate debug file of @file: by build-id, else by .gnu_debuglink. Searches
 * below @root, then (unless @stays) below braid's own root. A candidate counts only if its build-id
 * is equal or, if one of the two files has none, its checksum is that of the link. Returns 0,
 * -ENOENT or -ENOMEM. The caller frees *@ret with elf_file__free(). */
int debugfile__open(const struct elf_file *file, const char *root, bool stays,
		    struct elf_file **ret);

/* Opens the file that @file shares its debug information with, by the link that dwz makes.
 * Otherwise as debugfile__open(). */
int debugfile__open_alt(const struct elf_file *file, const char *root, bool stays,
			struct elf_file **ret);

/* Returns the build-id in that link, borrowed from the file, or NULL if there is no link. */
const void *debugfile__alt_build_id(const struct elf_file *file, size_t *ret_len);

/* Opens the .dwo file @name that was built in the directory @dir: there, else beside @file. With a
 * @name of NULL, opens the package of .dwo files: FILE.dwp beside @file or below /usr/lib/debug.
 * The caller must check that it belongs to @file. Roots and results as debugfile__open(). */
int debugfile__open_split(const struct elf_file *file, const char *root, bool stays,
			  const char *dir, const char *name, struct elf_file **ret);

#endif
