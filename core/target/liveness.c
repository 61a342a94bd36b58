// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/liveness.h"

#define ENTRIES_TENTHS	9  /* entries per 10 returns, at least */
#define RETURNS_DIVISOR 16 /* one return per this number of entries, at least */

enum liveness liveness__of(uint64_t entries, uint64_t returns)
{
	if (entries < LIVENESS_HITS && returns < LIVENESS_HITS)
		return LIVENESS_UNKNOWN;
	if (entries < returns / 10 * ENTRIES_TENTHS + returns % 10 * ENTRIES_TENTHS / 10)
		return LIVENESS_NO_ENTRIES;
	return returns < entries / RETURNS_DIVISOR ? LIVENESS_NO_RETURNS : LIVENESS_LIVES;
}
