/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_SOURCE_AGE_H
#define BRAID_PYTHON_SOURCE_AGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/files/target_file.h"

/* Returns true if the file has provably not changed since the program of process @pid was executed:
 * the process can have imported nothing else under its name. Times of both contents and
 * inode count, since a program can set the former. A forked process has the program of its nearest
 * ancestor that executed one. If that ancestor has ended, nothing is proven. */
bool python_source_age__is_older(uint32_t pid, const struct target_file *file);

#endif
