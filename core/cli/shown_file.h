/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SHOWN_FILE_H
#define BRAID_SHOWN_FILE_H

#include <stdint.h>

/* Opens a file of which some may be shown in a page: what files a recording names is up to who made
 * it, and pages are given away. Only regular files, for root only those that everybody may read,
 * with 1 to `most` bytes; looked up below `root_fd`. A descriptor; -EACCES: it may not be shown,
 * -EFBIG, or as of target_file__find. */
int shown_file__open(int root_fd, const char *path, uint64_t most, uint64_t *ret_size);

#endif
