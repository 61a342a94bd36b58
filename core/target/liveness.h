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
 * outer calls of a deep recursion have none either: the kernel tracks 64 calls of a thread. One for
 * 16 entries is enough: 64 of a stack of the maximum depth. */
enum liveness {
	LIVENESS_UNKNOWN, /* too few hits to decide */
	LIVENESS_LIVES,
	LIVENESS_NO_ENTRIES, /* entries do not fire, or almost never */
	LIVENESS_NO_RETURNS, /* returns do not fire, or almost never */
};

/* Hits of one side from which on the other side's silence is conclusive. With fewer hits, active
 * calls explain the silence. */
#define LIVENESS_HITS 100

/* Hits of both sides that decide at once, regardless of calls that were active at the beginning. A
 * stack of the maximum depth of active calls is a tenth of half this number. */
#define LIVENESS_SURE_HITS 20480

enum liveness liveness__of(uint64_t entries, uint64_t returns);

#endif
