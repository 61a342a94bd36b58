/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PEER_H
#define BRAID_PEER_H

#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

/* `perf record -g` on a process, for comparison: a sampler that walks frame pointers. */
struct peer;

/* Returns when it samples. Its output goes nowhere. -ENOENT: there is no perf in PATH, or it does
 * not work here. It ends with this process. */
int peer__start(pid_t pid, uint32_t frequency_hz, struct peer **ret, struct err *err);

/* Ends and frees it. NULL is fine. */
void peer__stop(struct peer *peer);

#endif
