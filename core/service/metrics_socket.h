/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_METRICS_SOCKET_H
#define BRAID_METRICS_SOCKET_H

#include "core/base/err.h"

/* A local socket, mode 0600, that answers each GET of HTTP/1.1 with a text, one after the other, in
 * a thread of its own without privileges: whoever reads slowly, or says nothing, holds up nothing
 * but other readers, and those for seconds. */
struct metrics_socket;

/* A socket there that nobody listens to any more is replaced, if it is the user's own. -EADDRINUSE:
 * somebody does, or it is something else. */
int metrics_socket__open(const char *path, struct metrics_socket **ret, struct err *err);

/* Takes the text, which was allocated. */
void metrics_socket__publish(struct metrics_socket *metrics, char *text);

void metrics_socket__free(struct metrics_socket *metrics); /* NULL is fine */

#endif
