// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/liveness.h"

#include <stdint.h>

#include "tests/tap.h"

static void check(const char *name, uint64_t entries, uint64_t returns, enum liveness want)
{
	ok(liveness__of(entries, returns) == want, "%s: %llu entries, %llu returns", name,
	   (unsigned long long)entries, (unsigned long long)returns);
}

int main(void)
{
	check("nothing", 0, 0, LIVENESS_UNKNOWN);
	check("too few to tell", 0, LIVENESS_HITS - 1, LIVENESS_UNKNOWN);
	check("too few to tell", LIVENESS_HITS - 1, 0, LIVENESS_UNKNOWN);
	check("one side is silent", 0, LIVENESS_HITS, LIVENESS_NO_ENTRIES);
	check("one side is silent", LIVENESS_HITS, 0, LIVENESS_NO_RETURNS);
	check("CPython 3.11, now and then with sys.setprofile", 36, 20163, LIVENESS_NO_ENTRIES);
	check("the other way round", 20163, 36, LIVENESS_NO_RETURNS);
	check("just enough entries", 900, 1000, LIVENESS_LIVES);
	check("one entry too few", 899, 1000, LIVENESS_NO_ENTRIES);
	check("just enough returns", 16000, 1000, LIVENESS_LIVES);
	check("one return too few", 16000, 999, LIVENESS_NO_RETURNS);
	check("as measured: CPython 3.8, recursion 900 deep", 544292, 38649, LIVENESS_LIVES);
	check("as measured: HotSpot 17, C1, exceptions", 817575, 297300, LIVENESS_LIVES);
	check("as measured: HotSpot 17, recursion", 472176, 472818, LIVENESS_LIVES);
	check("as many as fit", UINT64_MAX, UINT64_MAX, LIVENESS_LIVES);
	check("as many as fit", UINT64_MAX / 2, UINT64_MAX, LIVENESS_NO_ENTRIES);
	check("deep stacks that return", LIVENESS_SURE_HITS / 2 - 512, LIVENESS_SURE_HITS / 2 + 512,
	      LIVENESS_LIVES);
	return tap__done();
}
