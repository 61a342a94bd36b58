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

/* Opens the debug file with this build-id: the `open` of a struct debug_server, whose `ctx` is a
 * struct debuginfod_wait. An answer is accepted only if it is an ELF file with this build-id.
 * Returns 0, -ENOENT if no server has the file, or -ETIMEDOUT, -ECANCELED, -ENOTSUP and others if
 * another request is useless. The caller frees *@ret with elf_file__free(). */
int debuginfod__open(void *wait, const void *build_id, size_t len, struct elf_file **ret);

/* Why no server is asked any more in this run, the end of a sentence; NULL: they are. */
const char *debuginfod__failure(void);

#endif
