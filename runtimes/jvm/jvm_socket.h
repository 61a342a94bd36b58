/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_SOCKET_H
#define BRAID_JVM_SOCKET_H

#include <stdint.h>

#include "core/base/err.h"

/* One request to a HotSpot JVM, by its attach socket. It needs its own process, which becomes
 * the JVM's user and may block in the JVM's file system. */
struct jvm_request {
	uint32_t pid;
	const char *command;
	uint64_t end_ns; /* CLOCK_MONOTONIC; timeout */
	int caller_fd;	 /* a socket; the request is cancelled if its other end is shut down */
};

/* Returns the result as jvm_attach__finish does, or -ECANCELED. Leaves nothing in the file
 * system. */
int jvm_request__run(const struct jvm_request *request, struct err *err);

#endif
