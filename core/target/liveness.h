/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LIVENESS_H
#define BRAID_LIVENESS_H

#include <stddef.h>
#include <stdint.h>

/* Is a pair of probes, at the entry and at the return of calls, alive? Only if both sides fire, in
 * proportion. The one definition of that, for all who count hits; docs/reference/shadow-stacks.md
 * has the experiments that it comes from.
 *
 * Entries: each call has one, so that only those lack which were under way at the beginning. With
 * fewer than 9 for 10 returns calls are unseen.
 *
 * Returns: what an exception leaves may have none, and neither have the outer calls of a deep
 * recursion where the kernel returns (it keeps 64 of a thread). One for 16 entries is enough: 64 of
 * a stack that is as deep as is shown. */
enum liveness {
	LIVENESS_UNKNOWN, /* too few hits to tell */
	LIVENESS_LIVES,
	LIVENESS_NO_ENTRIES, /* entries do not fire, or hardly */
	LIVENESS_NO_RETURNS, /* returns do */
};

/* So many hits of one side make the other's silence an answer; with fewer, calls that are under way
 * explain it. */
#define LIVENESS_HITS 100

/* So many hits of both sides tell at once, whatever calls were under way at the beginning: a stack
 * of them that is as deep as is shown is a tenth of half of that. */
#define LIVENESS_SURE_HITS 20480

enum liveness liveness__of(uint64_t entries, uint64_t returns);

#endif
