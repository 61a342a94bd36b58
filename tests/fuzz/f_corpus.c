// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/replay/pack.h"

#include "tests/replay/pack.c" /* the library has no corpus */

/* Parses the input as a compressed file of the replay corpus, then as a decompressed one. Entries
 * that are read are written again, and must be the same. */
bool target__run(const uint8_t *data, size_t size)
{
	struct pack pack = {}, again = {};
	struct pack_entry entry;
	size_t at = 0, n = 0;
	int ret;

	if (!pack__parse(data, size, &pack))
		pack__done(&pack);
	if (append(&pack, data, size))
		abort();
	if (size < sizeof(magic) || memcmp(data, magic, sizeof(magic)) != 0)
		goto out;
	while ((ret = pack__next(&pack, &at, &entry)) > 0) {
		if (at > size || pack__add(&again, entry.tag, entry.name, entry.a, entry.b,
					   entry.bytes, entry.size))
			abort();
		n++;
	}
	if (!ret && n && (again.n != size || memcmp(again.data, data, size) != 0))
		abort();
out:
	pack__done(&again);
	pack__done(&pack);
	return n > 1;
}

void target__seeds(void)
{
	struct pack pack = {};

	if (pack__add(&pack, PACK_FILE, "maps", 4711, 0, "1000-2000 r-xp 0 0:0 1 /a\n", 26) ||
	    pack__add(&pack, PACK_IMAGE, "/a", 0, 0, "a-12345678", 10) ||
	    pack__add(&pack, PACK_CASE, "one", 4711, 0, (uint64_t[18]) { 1 }, 144) ||
	    pack__add(&pack, PACK_BYTES, "", 0x1000, 0, "abc", 3) ||
	    pack__add(&pack, PACK_SAME, "", 0x1010, 16, NULL, 0))
		abort();
	fuzz__seed(pack.data, pack.n);
	pack__done(&pack);
}
