/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CONTAINER_H
#define BRAID_CONTAINER_H

#include <stdbool.h>

#define CONTAINER_BYTES 256

/* Which container the processes of a cgroup belong to, by the way in which those who start
 * containers name cgroups: its id with docker, podman, containerd, CRI-O and others, its name with
 * systemd-nspawn, LXC, runc and crun. Of containers in containers the innermost. `path`: as
 * /proc/PID/cgroup has it. False: none. */
bool container__of_cgroup(const char *path, char ret[CONTAINER_BYTES]);

/* Is this very cgroup the container's, and not one below? `name`: the last part of its path. */
bool container__is_cgroup(const char *parent, const char *name, char ret[CONTAINER_BYTES]);

/* Could a container's cgroup be called that, which no rule knows? runc and crun without systemd
 * take the name that the user gives, whatever it is. Not if it is a unit of systemd's. */
bool container__may_be_called(const char *name);

#endif
