/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CONTAINER_H
#define BRAID_CONTAINER_H

#include <stdbool.h>

#define CONTAINER_BYTES 256

/* Finds the container that the processes of a cgroup belong to, by the naming rules of container
 * engines. The result is an id for docker, podman, containerd, CRI-O and others. It is a name for
 * systemd-nspawn, LXC, runc and crun. If containers are nested, returns the innermost one. @path is
 * as in /proc/PID/cgroup. Returns false if there is none. */
bool container__of_cgroup(const char *path, char ret[CONTAINER_BYTES]);

/* Returns true if this cgroup is itself the container's, and not one below it. @name is the last
 * part of its path. */
bool container__is_cgroup(const char *parent, const char *name, char ret[CONTAINER_BYTES]);

/* Returns true if @name may be the cgroup of a container that no rule covers. runc and crun without
 * systemd use the name that the user gives, without a prefix. False for names of systemd units. */
bool container__may_be_called(const char *name);

#endif
