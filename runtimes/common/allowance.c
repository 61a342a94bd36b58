// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/common/allowance.h"

#include "core/base/util.h"

static void fill(struct allowance *allowance)
{
	uint64_t now = now_ns(), passed_ns = now - allowance->filled_ns;
	uint64_t room = allowance->burst - allowance->left;

	if (!allowance->filled_ns || passed_ns / NSEC_PER_SEC >= allowance->burst / allowance->rate)
		allowance->left = allowance->burst;
	else
		allowance->left += min_of(room, (uint64_t)(passed_ns * (allowance->rate / 1e9)));
	allowance->filled_ns = now;
}

/* Reads the clock only if less than @bytes is left, since that costs more than the check. */
static bool has(struct allowance *allowance, uint64_t bytes)
{
	if (allowance->left < bytes)
		fill(allowance);
	return allowance->left >= bytes;
}

bool allowance__read(struct allowance *allowance, uint64_t bytes)
{
	struct allowance *at;

	bytes += ALLOWANCE_READ_BYTES;
	for (at = allowance; at; at = at->of_all)
		if (!has(at, bytes))
			return false;
	for (at = allowance; at; at = at->of_all)
		at->left -= bytes;
	return true;
}

bool allowance__keep(struct allowance *allowance, size_t bytes)
{
	struct allowance *at;

	for (at = allowance; at; at = at->of_all)
		if (bytes > at->charged_max - at->charged)
			return false;
	for (at = allowance; at; at = at->of_all)
		at->charged += bytes;
	return true;
}

void allowance__drop(struct allowance *allowance, size_t bytes)
{
	for (struct allowance *at = allowance; at; at = at->of_all)
		at->charged -= bytes;
}
