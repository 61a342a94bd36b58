/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PRIVILEGE_H
#define BRAID_PRIVILEGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* What braid needs the kernel's leave for, and which capability gives it: the one table, behind
 * what `doctor` says and every "not permitted". docs/reference/privileges.md has it for people,
 * with how it was found out. Nothing is refused by it: braid tries, and asks here why it was not
 * let. */
enum privilege {
	PRIVILEGE_LOAD,	      /* BPF programs and maps */
	PRIVILEGE_EVENTS,     /* perf events of all processes, and what BPF programs read there */
	PRIVILEGE_PROBES,     /* probes in programs */
	PRIVILEGE_STATISTICS, /* the kernel's, of BPF programs */
	PRIVILEGE_PROCESSES,  /* mappings, memory and root directories of other users' processes */
	PRIVILEGE_FILES,      /* files that processes have mapped, by mapping */
	PRIVILEGE_READ,	      /* files that this user may not read */
	PRIVILEGE_SYMBOLS,    /* addresses of kernel functions */
	PRIVILEGES_N
};

struct privilege_need {
	uint32_t capability; /* bit of it in CapEff */
	bool by_admin;	     /* or CAP_SYS_ADMIN */
	const char *purpose; /* what it is for */
	const char *without; /* what is so without it */
};

const struct privilege_need *privilege__need(enum privilege privilege);

/* Of `wanted` (bit n: enum privilege n), those that this process has no capability for. */
uint32_t privilege__missing(uint32_t wanted);

/* "CAP_BPF and CAP_PERFMON": each once. */
void privilege__names(uint32_t privileges, char *ret, size_t size);

/* "user 1000 lacks CAP_BPF and CAP_PERFMON". */
void privilege__lacks(uint32_t privileges, char *ret, size_t size);

/* Why the kernel did not permit `what` ("to load BPF programs"), which takes `wanted`, and the way
 * out: what is missing of it; else, if nothing is, who else may forbid it. Returns -EPERM. */
int privilege__explain(uint32_t wanted, const char *what, struct err *err);

/* Has this process privileges that its user has not: by its file (setuid, capabilities)? Then it is
 * for him to see his own processes only, and what he says in the environment is not to be followed
 * where that reaches further than he does. */
bool privilege__is_lent(void);

/* Called first of all. Of what is lent only the capabilities of the table stay: files are the
 * user's to read and write, or not, and what braid starts runs as the user. False: the kernel
 * refuses, so nothing may go on. */
bool privilege__become_user(void);

/* From now on everything is done with the user's own rights: for what reads files that he names. */
void privilege__drop_lent(void);

/* May the user see a process that belongs to `uid`? 0, or -EPERM with the sentence. */
int privilege__check_owner(uint32_t pid, uint32_t uid, struct err *err);

/* From now on this thread has no capability, or only those that recording takes to its end, and no
 * program that it executes gets any by its file. Those are the ones of the table, and what else
 * root has that may be needed when a new process comes: docs/reference/privileges.md. */
void privilege__drop_all(void);
void privilege__keep_for_recording(void);

/* The same for addresses of kernel functions that are hidden. */
void privilege__why_hidden(char *ret, size_t size);

/* "root", or the user and the capabilities in the table that it has. */
void privilege__own(char *ret, size_t size);

#endif
