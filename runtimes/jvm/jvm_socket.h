/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_SOCKET_H
#define BRAID_JVM_SOCKET_H

#include <stdint.h>

#include "core/base/err.h"

/* One request to a HotSpot JVM, by its attach socket. For a process of its own: it becomes the
 * JVM's user, and may block where the JVM's file system does. */
struct jvm_request {
	uint32_t pid;
	const char *command;
	uint64_t end_ns; /* CLOCK_MONOTONIC: gives up */
	int caller_fd;	 /* a socket; if its other end is shut down all is called off */
};

/* Result as of jvm_attach__finish; -ECANCELED: called off. Leaves nothing in the file system. */
int jvm_request__run(const struct jvm_request *request, struct err *err);

#endif
