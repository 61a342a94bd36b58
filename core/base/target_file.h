/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TARGET_FILE_H
#define BRAID_TARGET_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* The one way to a file that a target names, maps, or has in its file system. None of it is
 * trusted:
 * - a path leads nowhere but below the root that is given, whatever links say (openat2 with
 *   RESOLVE_IN_ROOT);
 * - what it leads to is held without being opened (O_PATH) until it is known to be a regular file
 *   on a file system that has files, not attributes of the kernel: pipes, devices and the like are
 *   never opened;
 * - no wait has no end: where a file system may wait for somebody (a user's server, a network),
 *   a helper process asks it (core/base/target_helper.h). A signal that ends a session ends the
 * wait at once, and so does time; a place that did not answer is left alone for a second, and for
 * up to 64 s when it does so again. Such a
 * file cannot be read later either, so what is opened is a copy of it in memory. One thread at a
 * time. */

struct target_file { /* a regular file, as it was when it was found */
	int fd;	     /* O_PATH; -1: none */
	bool may_hang;
	uint32_t uid;
	uint64_t dev, ino, size;
	uint64_t mount; /* of files that may hang: device numbers of those are used again */
	int64_t mtime_ns, ctime_ns;
};

#define TARGET_FILE_NONE     \
	(struct target_file) \
	{                    \
		.fd = -1     \
	}

/* Looks `path` up below the directory `root_fd`, which stands for "/" in links, too. 0, or
 * -EINVAL     it is no regular file
 * -ELOOP      it is a link, and `follow` is false
 * -ETIMEDOUT  its file system does not answer
 * -EINTR      a signal came that ends this process, or its session
 * -ENOSYS     openat2 is forbidden here (a seccomp filter)
 * and others as of openat2. */
int target_file__find(int root_fd, const char *path, bool follow, struct target_file *ret);

/* The same of what a link of the kernel's in /proc leads to (map_files), which asks nobody. */
int target_file__find_link(const char *path, struct target_file *ret);

/* A descriptor to read it by, which never blocks: its own, or that of a copy, of which owner and
 * time are the same. -EFBIG: a copy would take too much memory; others as above. */
int target_file__open(const struct target_file *file);
void target_file__done(struct target_file *file); /* idempotent */

/* Is what target_file__open gave a copy? No probe that is put there fires. */
bool target_file__is_copy(int fd);

#endif
