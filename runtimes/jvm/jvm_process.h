/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_PROCESS_H
#define BRAID_JVM_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

/* What /proc tells of a process with a HotSpot JVM in it, and what a helper process needs to deal
 * with it safely. */
struct jvm_process {
	uint32_t pid;	 /* as braid sees it */
	uint32_t ns_pid; /* as it sees itself */
	uid_t uid;	 /* effective, as its files are owned */
	gid_t gid;
	int proc_fd; /* /proc/PID: this very process, even if its pid is another's meanwhile */
	int root_fd; /* its root directory; O_PATH */
};

/* How far it is, and whether it can be asked now. */
struct jvm_phase {
	bool is_stopped;       /* by SIGSTOP or a debugger */
	bool catches_quit;     /* SIGQUIT does not kill it */
	bool has_quit_pending; /* sent, but not taken yet */
	bool has_dispatcher;   /* HotSpot's thread that waits for SIGQUIT is there */
	bool is_started;       /* so is a thread that comes after that one */
};

/* `pid`: also of one of its threads. -ESRCH, -EPERM, -EBADMSG. */
int jvm_process__open(uint32_t pid, struct jvm_process *ret, struct err *err);
void jvm_process__close(struct jvm_process *process); /* idempotent */

/* -ESRCH: it has ended. */
int jvm_process__phase(const struct jvm_process *process, struct jvm_phase *ret);

/* Do its command line and environment say -XX:+DisableAttachMechanism? (It may be said elsewhere,
 * in a file of options.) */
bool jvm_process__is_attach_disabled(const struct jvm_process *process);

/* The calling process becomes the JVM's user and group, for good. -EPERM. */
int jvm_process__become_user(const struct jvm_process *process, struct err *err);

#endif
