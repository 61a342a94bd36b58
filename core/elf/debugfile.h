/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DEBUGFILE_H
#define BRAID_DEBUGFILE_H

#include <stdbool.h>

#include "core/elf/elf_file.h"

/* Finds and opens the separate debug file of `file`: by build-id, else by .gnu_debuglink, below
 * `root`, then (unless it `stays` there) below our own root. A candidate counts only if its
 * build-id is the same or, where one of the two has none, its checksum is the one that the link
 * asks for. 0, -ENOENT or -ENOMEM. Free the result with elf_file__free. */
int debugfile__open(const struct elf_file *file, const char *root, bool stays,
		    struct elf_file **ret);

/* What `file` shares its debug information with, by the link that dwz makes; the same otherwise. */
int debugfile__open_alt(const struct elf_file *file, const char *root, bool stays,
			struct elf_file **ret);

/* The build-id that the link asks for, borrowed from the file; NULL: there is no link. */
const void *debugfile__alt_build_id(const struct elf_file *file, size_t *ret_len);

/* Opens the .dwo file @name that was built in the directory @dir: there, else beside @file. With a
 * @name of NULL, opens the package of them: FILE.dwp beside @file or below /usr/lib/debug. Whether
 * it belongs to @file is for the caller to check. Roots and results as above. */
int debugfile__open_split(const struct elf_file *file, const char *root, bool stays,
			  const char *dir, const char *name, struct elf_file **ret);

#endif
