/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CGROUP_MOUNT_H
#define BRAID_CGROUP_MOUNT_H

#include <stdint.h>

#include "core/target/cgroups.h"

/* Where the hierarchy of version 2 is mounted. -ENOTSUP, with the sentence, if it is not. */
int cgroup_mount__find(char ret[CGROUP_PATH_BYTES], struct err *err);

/* The path of the cgroup with this id below `mount`, "/" for that itself; -ESTALE where it is gone
 * or outside, -EPERM without CAP_DAC_READ_SEARCH. */
int cgroup_mount__path_of(const char *mount, uint64_t id, char ret[CGROUP_PATH_BYTES]);

#endif
