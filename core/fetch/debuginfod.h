/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DEBUGINFOD_H
#define BRAID_DEBUGINFOD_H

#include <stdbool.h>

#include "core/elf/elf_file.h"

/* Debug files by build-id from the servers that the user names in DEBUGINFOD_URLS. braid uses
 * libdebuginfod, if it is installed, with its own cache and settings
 * (debuginfod_find_debuginfo(3)). libdebuginfod runs in a helper process, which ends when it takes
 * too long. All requests of a run together have 30 seconds. After a timeout, or a failure of the
 * servers or the cache, no further request is sent. */

struct debuginfod_wait {	      /* limit of the wait for one debug file */
	bool (*cancelled)(void *ctx); /* NULL: wait until the 30 seconds are over */
	void *ctx;
};

/* Returns true if the user names servers. */
bool debuginfod__is_enabled(void);

/* Opens the debug file with this build-id: the `open` of a struct debug_server, whose `ctx` is a
 * struct debuginfod_wait. An answer is accepted only if it is an ELF file with this build-id.
 * Returns 0, -ENOENT if no server has the file, or -ETIMEDOUT, -ECANCELED, -ENOTSUP and others if
 * another request is useless. The caller frees *@ret with elf_file__free(). */
int debuginfod__open(void *wait, const void *build_id, size_t len, struct elf_file **ret);

/* Returns the reason why no further request is sent in this run, as the end of a sentence, or NULL
 * if requests are sent. */
const char *debuginfod__failure(void);

#endif
