/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_METRICS_SOCKET_H
#define BRAID_METRICS_SOCKET_H

#include "core/base/err.h"

/* A local socket, mode 0600, that answers each GET of HTTP/1.1 with a text. It serves one reader
 * after the other, in a thread of its own without privileges. A slow or silent reader delays only
 * other readers, and only for seconds. */
struct metrics_socket;

/* Opens the socket at @path. Replaces a dead socket of the same user. Returns 0, -EADDRINUSE if a
 * process listens to it or if it is another user's, or another negative errno. */
int metrics_socket__open(const char *path, struct metrics_socket **ret, struct err *err);

/* Takes ownership of the text, which was allocated. */
void metrics_socket__publish(struct metrics_socket *metrics, char *text);

void metrics_socket__free(struct metrics_socket *metrics); /* NULL is fine */

#endif
