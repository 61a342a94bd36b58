/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DEBUGINFOD_H
#define BRAID_DEBUGINFOD_H

#include <stdbool.h>

#include "core/elf/elf_file.h"

/* Debug files by build-id from the servers that the user names in DEBUGINFOD_URLS, by libdebuginfod
 * with its own cache and settings (debuginfod_find_debuginfo(3)), if it is installed. It works in a
 * process of its own, which is killed when it takes too long: all that is asked for in a run has
 * half a minute, and a server that does not answer is asked once. */

struct debuginfod_wait {	      /* how long the caller waits for one */
	bool (*cancelled)(void *ctx); /* NULL: until the half minute is over */
	void *ctx;
};

/* Has the user named servers? */
bool debuginfod__is_wanted(void);

/* The debug file of `file`. What comes counts only if it is an ELF file with this build-id and has
 * symbols. -ENOENT: none has it; -ETIMEDOUT, -ECANCELED, -ENOTSUP or others where asking is of no
 * use. Free the result with elf_file__free. */
int debuginfod__open(const struct elf_file *file, const struct debuginfod_wait *wait,
		     struct elf_file **ret);

/* The same by build-id: for what debug files share among them, which need not have symbols. */
int debuginfod__open_shared(const void *build_id, size_t len, const struct debuginfod_wait *wait,
			    struct elf_file **ret);

/* Why no server is asked any more in this run, the end of a sentence; NULL: they are. */
const char *debuginfod__failure(void);

#endif
