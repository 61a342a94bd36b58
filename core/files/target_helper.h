/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TARGET_HELPER_H
#define BRAID_TARGET_HELPER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* A process that makes requests to file systems which may never respond. Once the server of a
 * user-space file system accepts a request, its sender cannot cancel the request, not even by
 * dying. Therefore a helper sends the request instead of braid. A helper that times out is killed
 * and abandoned; it holds none of braid's resources. It starts when first needed, and ends with
 * braid. */

#define TARGET_COPY_NAME "braid-copy"

enum target_helper_op {
	TARGET_HELPER_FIND,	/* path below the directory -> O_PATH descriptor */
	TARGET_HELPER_DESCRIBE, /* O_PATH descriptor -> attributes */
	TARGET_HELPER_COPY,	/* O_PATH descriptor -> descriptor of a copy */
};

struct target_request {
	enum target_helper_op op;
	uint64_t open_flags; /* for TARGET_HELPER_FIND */
	char path[PATH_MAX];
};

struct target_answer {
	int code;      /* 0 or a negative errno; EINPROGRESS: another message follows */
	bool may_hang; /* TARGET_HELPER_DESCRIBE: not a local file system */
	struct statx info;
};

/* Sends the request with @fd and waits for the answer. Returns the answer's code; -ETIMEDOUT or
 * -EINTR as in target_file.h; -EAGAIN or another error if no helper can be started. *@ret_fd is -1
 * without a descriptor. */
int target_helper__ask(const struct target_request *request, int fd, struct target_answer *ret,
		       int *ret_fd);

/* A program that runs as a helper. `run` gets its end of a message socket, with all signals
 * blocked. It shares nothing else with braid: a helper that cannot die must not hold probes open,
 * or pipes whose end a process waits for. */
struct target_helper_program {
	const char *name; /* name in the output of ps */
	void (*run)(void *ctx, int fd) __attribute__((noreturn));
	void *ctx;
	bool cleans_up; /* when braid dies, which closes the socket; false: is killed then */
};

/* Forks a helper. *@ret_fd is braid's end of the socket, which the caller closes. Returns 0, or a
 * negative errno without a process and descriptor. */
int target_helper__start(const struct target_helper_program *program, pid_t *ret_pid, int *ret_fd);

/* The helper's side (core/files/target_server.c). Answers requests until the other end is closed.
 */
void __attribute__((noreturn)) target_server__run(void *ctx, int fd);

/* Send and receive a message with at most one descriptor, on both sides. Return the number of
 * bytes, or a negative errno. */
int target_helper__send(int socket, const void *bytes, size_t n, int fd);
int target_helper__receive(int socket, void *bytes, size_t n, int *ret_fd);

#endif
