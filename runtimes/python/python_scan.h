/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_SCAN_H
#define BRAID_PYTHON_SCAN_H

#include <stddef.h>

#include "runtimes/python/python_blocks.h"

/* Finds the blocks of a source, which may be anything. 0; -EBADMSG: nothing that Python would take
 * (of which only a part is checked), or too much of it; -ENOMEM. *ret is then untouched. */
int python_scan__blocks(const char *text, size_t size, struct python_blocks *ret);

#endif
