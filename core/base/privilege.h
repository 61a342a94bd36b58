/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PRIVILEGE_H
#define BRAID_PRIVILEGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* The kernel's permissions that braid needs, and the capability that gives each. `doctor` and each
 * message "not permitted" use this one table. docs/reference/privileges.md describes it for users
 * and cites its sources. braid never refuses by the table: it tries, and consults the table after a
 * failure. */
enum privilege {
	PRIVILEGE_LOAD,	      /* BPF programs and maps */
	PRIVILEGE_EVENTS,     /* perf events of all processes, read by BPF programs, too */
	PRIVILEGE_PROBES,     /* probes in programs */
	PRIVILEGE_STATISTICS, /* the kernel's statistics of BPF programs */
	PRIVILEGE_PROCESSES,  /* mappings, memory and root directories of other users' processes */
	PRIVILEGE_FILES,      /* files that processes have mapped, opened by mapping */
	PRIVILEGE_READ,	      /* files that this user may not read */
	PRIVILEGE_SYMBOLS,    /* addresses of kernel functions */
	PRIVILEGES_N
};

struct privilege_need {
	uint32_t capability; /* bit number in CapEff */
	bool by_admin;	     /* CAP_SYS_ADMIN suffices, too */
	const char *purpose; /* the purpose of the capability */
	const char *without; /* the effect of its absence */
};

const struct privilege_need *privilege__need(enum privilege privilege);

/* Returns the privileges in @required (bit n: enum privilege n) that this process has no capability
 * for. */
uint32_t privilege__missing(uint32_t required);

/* Writes the names of the capabilities, each once, as in "CAP_BPF and CAP_PERFMON". */
void privilege__names(uint32_t privileges, char *ret, size_t size);

/* Writes a text such as "user 1000 lacks CAP_BPF and CAP_PERFMON". */
void privilege__lacks(uint32_t privileges, char *ret, size_t size);

/* Sets the message for an act (@what, such as "to load BPF programs") that the kernel refused, with
 * the remedy. The message names the capabilities of @required that are missing; if no capability is
 * missing, the message names other possible causes. Returns -EPERM. */
int privilege__explain(uint32_t required, const char *what, struct err *err);

/* Returns true if this process has privileges from its file (setuid, capabilities) that its user
 * lacks. Such a user may see only his own processes. Environment variables that reach beyond the
 * user's own rights must then be ignored. */
bool privilege__is_lent(void);

/* Becomes the calling user; must be called first of all. Drops the lent privileges except the
 * table's capabilities. Files are read and written with the user's rights, and child processes run
 * as the user. Returns false if the kernel refuses; the caller must then exit. */
bool privilege__become_user(void);

/* Drops lent privileges for the rest of the process, before it reads files that the user names. */
void privilege__drop_lent(void);

/* Returns 0 if the user may see a process that belongs to @uid; otherwise sets the message and
 * returns -EPERM. */
int privilege__check_owner(uint32_t pid, uint32_t uid, struct err *err);

/* Drops all capabilities of this thread, or all except those that recording needs until its end.
 * Programs that the thread executes gain none from their files. A recording needs those of the
 * table, and other capabilities of root for new processes: docs/reference/privileges.md. */
void privilege__drop_all(void);
void privilege__keep_for_recording(void);

/* Writes the reason why addresses of kernel functions are hidden. */
void privilege__why_hidden(char *ret, size_t size);

/* Writes "root", or the user and its capabilities among those in the table. */
void privilege__own(char *ret, size_t size);

#endif
