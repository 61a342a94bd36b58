/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TARGET_HELPER_H
#define BRAID_TARGET_HELPER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

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

/* What a helper is: `run` has its end of a socket of messages, with all signals blocked. It holds
 * nothing else that is shared with braid: neither probes nor pipes that somebody waits for stay
 * open by a helper that cannot die. */
struct target_helper_program {
	const char *name; /* as ps shows it */
	void (*run)(void *ctx, int fd) __attribute__((noreturn));
	void *ctx;
	bool cleans_up; /* when braid dies, which it sees by the socket; others are killed then */
};

/* Forks one. `ret_fd`: braid's end, which the caller closes. 0, or a negative errno with neither.
 */
int target_helper__start(const struct target_helper_program *program, pid_t *ret_pid, int *ret_fd);

/* The helper's side (core/base/target_server.c): answers until the other end is closed. */
void __attribute__((noreturn)) target_server__run(void *ctx, int fd);

/* Both sides: a message with at most one descriptor. Bytes, or a negative errno. */
int target_helper__send(int socket, const void *bytes, size_t n, int fd);
int target_helper__receive(int socket, void *bytes, size_t n, int *ret_fd);

#endif
