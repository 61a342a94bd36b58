/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TARGET_FILE_H
#define BRAID_TARGET_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* The only way to a file that a target names, maps, or has in its file system. The file is
 * untrusted:
 * - A path never leads out of the given root, whatever its links contain (openat2() with
 *   RESOLVE_IN_ROOT).
 * - The file is first held without being opened (O_PATH). Only a regular file on a file system
 *   for files is opened. Pipes, devices and attributes of the kernel never are.
 * - Each wait has an end. If a file system may wait for another party (a user's server, a
 *   network), a helper process sends the request (core/files/target_helper.h). A signal that ends
 *   a session ends the wait at once, and so does a timeout. A place that timed out is avoided for
 *   1 s, and for up to 64 s after repeated timeouts. Later reads of such a file could hang, too,
 *   so braid opens a copy of it in memory.
 * One thread at a time. */

struct target_file { /* a regular file, as it was when it was found */
	int fd;	     /* O_PATH; -1: none */
	bool may_hang;
	uint32_t uid;
	uint64_t dev, ino, size;
	uint64_t mount; /* its id, if may_hang; else 0 */
	int64_t mtime_ns, ctime_ns;
};

#define TARGET_FILE_NONE     \
	(struct target_file) \
	{                    \
		.fd = -1     \
	}

/* Finds @path below the directory @root_fd, which is also "/" for links. Returns 0, or
 * -EINVAL     the file is not a regular file
 * -ELOOP      the file is a link, and @follow is false
 * -ETIMEDOUT  the file system does not respond
 * -EINTR      a signal that ends this process or its session arrived
 * -ENOSYS     openat2() is forbidden (a seccomp filter)
 * or another error of openat2(). */
int target_file__find(int root_fd, const char *path, bool follow, struct target_file *ret);

/* As target_file__find(), for a link of the kernel's in /proc (map_files). Makes no request to a
 * file system. */
int target_file__find_link(const char *path, struct target_file *ret);

/* Returns a descriptor for reads that never block: one of the file, or one of a copy with the same
 * owner and time. Returns -EFBIG if a copy is too large, or an error as above. */
int target_file__open(const struct target_file *file);
void target_file__done(struct target_file *file); /* idempotent */

/* Returns true if target_file__open() returned a copy. Probes in a copy never fire. */
bool target_file__is_copy(int fd);

#endif
