/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CGROUP_MOUNT_H
#define BRAID_CGROUP_MOUNT_H

#include <stdint.h>

#include "core/target/cgroups.h"

/* Finds the mount point of the hierarchy of version 2. Returns 0, or -ENOTSUP with the message in
 * @err if it is not mounted. */
int cgroup_mount__find(char ret[CGROUP_PATH_BYTES], struct err *err);

/* Finds the path of the cgroup with @id below @mount; "/" for the cgroup at @mount itself. Returns
 * 0; -ESTALE: the cgroup was removed or is outside @mount; -EPERM: no CAP_DAC_READ_SEARCH. */
int cgroup_mount__path_of(const char *mount, uint64_t id, char ret[CGROUP_PATH_BYTES]);

#endif
