/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CHILD_H
#define BRAID_CHILD_H

#include <signal.h>
#include <sys/resource.h>

#include "core/base/err.h"
#include "core/target/hold.h"

/* A command that is forked at once, executed when everything that watches it is ready, and held at
 * its exec until what it has mapped is known (hold.h). */
struct child {
	int pid;       /* 0: none */
	int go_fd;     /* closing it without a byte ends the child before its exec */
	int error_fd;  /* yields an errno if exec fails, else end of file */
	int signal_fd; /* readable when a child or a traced process stops or ends; -1: none */
	struct hold hold;
	struct sigaction old_action; /* of SIGCHLD, before there was signal_fd */
	sigset_t old_mask;	     /* of this thread, then */
};

#define CHILD_NONE                                            \
	(struct child)                                        \
	{                                                     \
		.go_fd = -1, .error_fd = -1, .signal_fd = -1, \
	}

struct child_opts {
	char *const *command;	    /* NULL-terminated */
	const struct rlimit *files; /* the limit of open files that it begins with; NULL: ours */
	const sigset_t *mask;	    /* signals that it begins with blocked; NULL: none */
};

/* Forks. The child waits. Until child__done SIGCHLD is blocked in this thread, and has its default
 * action; the command begins with what was there before. */
int child__fork(struct child *child, const struct child_opts *opts, struct err *err);

/* Lets the child execute the command and, if that is permitted, holds it there. `stop_fd` is
 * readable if that is not wanted any more (-1: never): -EINTR. -ENOENT and the like, with the
 * sentence, if the exec fails. */
int child__exec(struct child *child, const char *name, int stop_fd, struct err *err);

/* Ends it, whatever it has come to, and waits for that. Idempotent. */
void child__kill(struct child *child);

/* Lets it run on, and gives back what child__fork took. Idempotent. */
void child__done(struct child *child);

#endif
