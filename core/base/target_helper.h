/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TARGET_HELPER_H
#define BRAID_TARGET_HELPER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* A process that asks file systems which may never answer. A request to a user-space file system
 * cannot be given up by who made it, not even by its death, once the server has taken it. So it is
 * not braid that makes it: the helper that waits in vain is killed and left behind, holding nothing
 * of braid's. It is started when it is first needed, and ends with braid. */

#define TARGET_COPY_NAME "braid-copy"

enum target_helper_op {
	TARGET_HELPER_FIND,	/* path below the directory -> O_PATH descriptor */
	TARGET_HELPER_DESCRIBE, /* O_PATH descriptor -> what it is */
	TARGET_HELPER_COPY,	/* O_PATH descriptor -> descriptor of a copy */
};

struct target_request {
	enum target_helper_op op;
	uint64_t open_flags; /* to find */
	char path[PATH_MAX];
};

struct target_answer {
	int code;      /* 0, a negative errno; EINPROGRESS: it goes on, and another follows */
	bool may_hang; /* described: no local file system */
	struct statx info;
};

/* Sends the request with `fd` and waits for what comes of it. The answer's code; -ETIMEDOUT, -EINTR
 * as in target_file.h; -EAGAIN and others where no helper can be started. `ret_fd` is -1 without a
 * descriptor. */
int target_helper__ask(const struct target_request *request, int fd, struct target_answer *ret,
		       int *ret_fd);

/* In a process that was forked: lets go of all that is shared with its parent but `fd`. Neither
 * probes nor pipes that somebody waits for stay open by a helper that cannot die. */
void target_helper__hold_only(int fd);

/* The helper's side (core/base/target_server.c): answers until the other end is closed. */
void __attribute__((noreturn)) target_server__run(int fd);

/* Both sides: a message with at most one descriptor. Bytes, or a negative errno. */
int target_helper__send(int socket, const void *bytes, size_t n, int fd);
int target_helper__receive(int socket, void *bytes, size_t n, int *ret_fd);

#endif
