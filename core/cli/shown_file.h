/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SHOWN_FILE_H
#define BRAID_SHOWN_FILE_H

#include <stdint.h>

/* Opens a file that may be shown in a page. The recording's author chooses the file, and pages are
 * given to others. So the file must be a regular one with 1 to @most bytes and, if braid is root,
 * readable for everyone. @path is relative to @root_fd. Returns a descriptor; -EACCES if the file
 * may not be shown, -EFBIG, or an error of target_file__find(). */
int shown_file__open(int root_fd, const char *path, uint64_t most, uint64_t *ret_size);

#endif
