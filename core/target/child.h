/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CHILD_H
#define BRAID_CHILD_H

#include <stdbool.h>
#include <sys/resource.h>

#include "core/base/err.h"

/* A command that is forked at once, executed when everything that watches it is ready, and held at
 * its first instruction until what it has mapped is known. */
struct child {
	int pid;      /* 0: none */
	int go_fd;    /* closing it without a byte ends the child before its exec */
	int error_fd; /* yields an errno if exec fails, else end of file */
	bool held;    /* traced, at its first instruction */
};

#define CHILD_NONE                           \
	(struct child)                       \
	{                                    \
		.go_fd = -1, .error_fd = -1, \
	}

/* Forks. The child waits. `command` is NULL-terminated; `files`: the limit of open files that it
 * begins with; NULL: ours. */
int child__fork(struct child *child, char *const *command, const struct rlimit *files,
		struct err *err);

/* Lets it execute the command and, if that is permitted, holds it there. -ENOENT and the like, with
 * the sentence, if that fails. */
int child__exec(struct child *child, const char *name, struct err *err);

/* Lets the dynamic linker of a held command run, and holds the command where its own code begins:
 * the libraries that it is linked with are all there then. Where that cannot be had it stays where
 * it is. */
void child__run_to_entry(struct child *child);

/* Lets it run, untraced. */
void child__release(struct child *child);

/* Ends it, whatever it has come to, and waits for that. Idempotent. */
void child__kill(struct child *child);

#endif
