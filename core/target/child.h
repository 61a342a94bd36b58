/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CHILD_H
#define BRAID_CHILD_H

#include <signal.h>
#include <sys/resource.h>

#include "core/base/err.h"
#include "core/target/hold.h"

/* A command that is forked at once and executed when all its observers are ready. The command is
 * held at its exec until its mappings are read (hold.h). */
struct child {
	int pid;       /* 0: none */
	int go_fd;     /* closing it without a byte ends the child before its exec */
	int error_fd;  /* yields an errno if exec fails, else end of file */
	int signal_fd; /* readable when a child or a traced process stops or ends; -1: none */
	struct hold hold;
	struct sigaction old_action; /* action of SIGCHLD before signal_fd was opened */
	sigset_t old_mask;	     /* signal mask of this thread before signal_fd was opened */
};

#define CHILD_NONE                                            \
	(struct child)                                        \
	{                                                     \
		.go_fd = -1, .error_fd = -1, .signal_fd = -1, \
	}

struct child_opts {
	char *const *command;	    /* NULL-terminated */
	const struct rlimit *files; /* initial limit of open files; NULL: inherited */
	const sigset_t *mask;	    /* signals that are initially blocked; NULL: none */
};

/* Forks the child, which waits for child__exec(). Until child__done(), SIGCHLD is blocked in this
 * thread and has its default action. The command starts with the former action. */
int child__fork(struct child *child, const struct child_opts *opts, struct err *err);

/* Lets the child execute the command and, if permitted, holds the command at its exec. @stop_fd
 * becomes readable to cancel (-1: never). Returns 0; -EINTR: cancelled; -ENOENT and other errors of
 * the exec, with the message in @err. */
int child__exec(struct child *child, const char *name, int stop_fd, struct err *err);

/* Kills the child in any state and waits for its end. Idempotent. */
void child__kill(struct child *child);

/* Lets the child run, and undoes the changes of child__fork(). Idempotent. */
void child__done(struct child *child);

#endif
