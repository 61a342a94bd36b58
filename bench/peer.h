/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PEER_H
#define BRAID_PEER_H

#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

/* `perf record -g` on a process, for comparison: a sampler that walks frame pointers. */
struct peer;

/* Starts perf on process @pid. Returns 0 when perf samples, or -ENOENT if perf is not in PATH or
 * does not work here. Discards its output. perf ends with this process. */
int peer__start(pid_t pid, uint32_t frequency_hz, struct peer **ret, struct err *err);

/* Ends perf and frees @peer. @peer may be NULL. */
void peer__stop(struct peer *peer);

#endif
