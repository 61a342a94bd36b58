/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ACCESS_H
#define BRAID_ACCESS_H

#include "core/base/err.h"
#include "core/target/procfs.h"

/* Checks that braid may read the memory of a live process and supports its program. Returns 0;
 * -EPERM: not permitted; -ENOTSUP: a 32-bit program; -ESRCH: the process has ended. Errors set the
 * message in @err. */
int process__check_access(const struct procfs_info *info, struct err *err);

#endif
