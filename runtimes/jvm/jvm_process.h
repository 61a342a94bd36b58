/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_PROCESS_H
#define BRAID_JVM_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

/* A process with a HotSpot JVM, as read from /proc, with the fds by which a helper process can
 * reach it safely. */
struct jvm_process {
	uint32_t pid;	 /* as braid sees it */
	uint32_t ns_pid; /* in its own PID namespace */
	uid_t uid;	 /* effective; the owner of its files */
	gid_t gid;
	int proc_fd; /* /proc/PID; refers to this process even if its pid is reused */
	int root_fd; /* its root directory; O_PATH */
};

/* The state of a JVM's start, which decides if it can receive a request now. */
struct jvm_phase {
	bool is_stopped;       /* stopped by SIGSTOP or a debugger */
	bool catches_quit;     /* SIGQUIT does not kill it */
	bool has_quit_pending; /* sent, but not handled yet */
	bool has_dispatcher;   /* HotSpot's thread that waits for SIGQUIT exists */
	bool is_started;       /* a thread exists that HotSpot creates after the dispatcher */
};

/* Opens the process; `pid` may be one of its threads. Returns 0, -ESRCH, -EPERM or -EBADMSG. */
int jvm_process__open(uint32_t pid, struct jvm_process *ret, struct err *err);
void jvm_process__close(struct jvm_process *process); /* idempotent */

/* Reads the phase. Returns 0, or -ESRCH if the process has ended. */
int jvm_process__phase(const struct jvm_process *process, struct jvm_phase *ret);

/* Returns true if its command line or environment has -XX:+DisableAttachMechanism. The option
 * may also be in a file of options, which is not read. */
bool jvm_process__is_attach_disabled(const struct jvm_process *process);

/* Changes the calling process to the JVM's user and group, permanently. Returns 0 or -EPERM. */
int jvm_process__become_user(const struct jvm_process *process, struct err *err);

#endif
