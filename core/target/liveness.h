/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LIVENESS_H
#define BRAID_LIVENESS_H

#include <stddef.h>
#include <stdint.h>

/* Decides whether a pair of probes, at the entry and at the return of calls, is alive: both sides
 * must fire, in proportion. All users of hit counts share this definition. Its experiments are in
 * docs/reference/shadow-stacks.md.
 *
 * Entries: each call has one, except those that were active at the beginning. Fewer than 9 for 10
 * returns mean that calls are missed.
 *
 * Returns: a function left by an exception may have none. With the kernel's return probes, the
 * outer calls of a deep recursion have none either: the kernel tracks 64 calls of a thread. One
 * return for 16 entries is enough: 64 returns for a stack of the maximum depth (1024 calls). */
enum liveness {
	LIVENESS_UNKNOWN, /* too few hits to decide */
	LIVENESS_LIVES,
	LIVENESS_NO_ENTRIES, /* entries do not fire, or almost never */
	LIVENESS_NO_RETURNS, /* returns do not fire, or almost never */
};

/* Number of hits of one side at which the silence of the other side is conclusive. With fewer hits,
 * calls that were already active explain the silence. */
#define LIVENESS_HITS 100

/* Hits of both sides that decide at once, regardless of calls that were active at the beginning.
 * The active calls of a stack of the maximum depth (1024) are a tenth of one side's hits. */
#define LIVENESS_SURE_HITS 20480

enum liveness liveness__of(uint64_t entries, uint64_t returns);

#endif
