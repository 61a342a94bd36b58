/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUNNING_H
#define BRAID_RUNNING_H

#include <stddef.h>

#include "core/target/procfs.h"

/* Running processes, and hints for a command line with a process in a wrong place. */

/* Calls @fn for each process except braid itself, kernel threads and processes that have ended.
 * Stops at the first value other than 0 and returns it; otherwise returns 0 or the negative errno
 * of opendir(). */
int running__each(int (*fn)(void *ctx, const struct procfs_info *info), void *ctx);

/* Writes "did you mean -p 12 or -p 15?" to @ret for processes whose name or program's name is
 * @name. Without such a process @ret is "". */
#define RUNNING_HINT_BYTES 128
void running__hint(const char *name, char *ret, size_t size);

/* Returns true if @text is the PID of a process. */
bool running__is_pid(const char *text);

#endif
