// SPDX-License-Identifier: GPL-2.0-or-later
/* Addresses of runtime frames: from the pairs that are not frames, and by the order of loops. */
#include <stdio.h>
#include <string.h>

#include "bpf/shared.h"
#include "core/base/util.h"
#include "runtimes/common/anchors.h"
#include "tests/tap.h"

#define PAIRS_MAX 8
#define MARK(at)                 \
	{                        \
		FRAME_ANCHOR, at \
	}

/* Returns the pairs as "KEY@ADDRESS ...". */
static const char *show(const struct runtime_pair *pairs, size_t n)
{
	static char text[256];
	size_t len = 0;

	*text = 0;
	for (size_t i = 0; i < n; i++)
		len += snprintf(text + len, sizeof(text) - len, "%s%d@%d", i ? " " : "",
				(int)pairs[i].key, (int)pairs[i].address);
	return text;
}

static const struct {
	const char *what;
	struct runtime_pair pairs[PAIRS_MAX];
	size_t n;
	const char *want;
} settled[] = {
	{ "no frames", { { 0 } }, 0, "" },
	{ "frames with addresses of their own", { { 1, 10 }, { 2, 10 } }, 2, "1@10 2@10" },
	{ "frames without", { { 1, 0 }, { 2, 0 } }, 2, "1@0 2@0" },
	{ "a mark gives its address to all inside it",
	  { { 1, 0 }, { 2, 0 }, MARK(30) },
	  3,
	  "1@30 2@30" },
	{ "each mark to those up to the one before",
	  { { 1, 0 }, MARK(10), { 2, 0 }, { 3, 0 }, MARK(30) },
	  5,
	  "1@10 2@30 3@30" },
	{ "frames outside the last mark have none",
	  { { 1, 0 }, MARK(10), { 2, 0 } },
	  3,
	  "1@10 2@0" },
	{ "a mark with nothing inside", { MARK(5), { 1, 0 }, MARK(10) }, 3, "1@10" },
	{ "two marks in a row", { { 1, 0 }, MARK(10), MARK(20), { 2, 0 } }, 4, "1@10 2@0" },
	{ "nothing but marks", { MARK(10), MARK(20) }, 2, "" },
	{ "what has an address keeps it", { { 1, 7 }, { 2, 0 }, MARK(10) }, 3, "1@7 2@10" },
	{ "a mark without an address is not asked again",
	  { { 1, 0 }, MARK(0), { 2, 0 }, MARK(20) },
	  4,
	  "1@0 2@20" },
};

static const struct {
	const char *what;
	struct runtime_pair pairs[PAIRS_MAX];
	size_t n;
	uint64_t cfas[PAIRS_MAX];
	size_t n_cfas;
	bool complete;
	const char *want;
} paired[] = {
	{ "nothing", { { 0 } }, 0, { 0 }, 0, true, "" },
	{ "frames, but no loops", { { 1, 0 } }, 1, { 0 }, 0, true, "1@0" },
	{ "loops, but no frames", { { 0 } }, 0, { 100 }, 1, true, "" },
	{ "one each", { { 1, 0 }, { 2, 0 } }, 2, { 100, 200 }, 2, true, "1@92 2@192" },
	{ "one each of cut stacks",
	  { { 1, 0 }, { 2, 0 } },
	  2,
	  { 100, 200 },
	  2,
	  false,
	  "1@92 2@192" },
	{ "a loop that has not linked its frame yet",
	  { { 1, 0 }, { 2, 0 } },
	  2,
	  { 50, 100, 200 },
	  3,
	  true,
	  "1@92 2@192" },
	{ "the outermost loops of cut stacks have no frames",
	  { { 1, 0 }, { 2, 0 } },
	  2,
	  { 50, 100, 200 },
	  3,
	  false,
	  "1@42 2@92" },
	{ "a frame that has no loop yet",
	  { { 1, 0 }, { 2, 0 }, { 3, 0 } },
	  3,
	  { 100, 200 },
	  2,
	  true,
	  "1@0 2@92 3@192" },
	{ "frames outside of a native stack that was cut",
	  { { 1, 0 }, { 2, 0 }, { 3, 0 } },
	  3,
	  { 100, 200 },
	  2,
	  false,
	  "1@92 2@192 3@0" },
	{ "any address that is known",
	  { { 1, 0 }, { 2, 7 } },
	  2,
	  { 100, 200 },
	  2,
	  true,
	  "1@0 2@7" },
};

/* Makes native frames of loops or compiled code from their CFAs, and the CFAs of the frames inside
 * them (NULL: unknown). */
static struct runtime_natives natives_of(const uint64_t *starts, const uint64_t *cfas, size_t n)
{
	static struct runtime_native list[2 * PAIRS_MAX];

	for (size_t i = 0; i < n; i++) {
		list[2 * i] = (struct runtime_native) { .cfa = starts ? starts[i] : 0 };
		list[2 * i + 1] =
			(struct runtime_native) { .cfa = cfas[i], .loop = true, .compiled = true };
	}
	return (struct runtime_natives) { .list = list, .n = 2 * n };
}

static void test_prune(void)
{
	static const uint64_t starts[] = { 100, 300 }, cfas[] = { 200, 400 };
	struct runtime_pair pairs[] = { { 1, 90 }, { 2, 250 }, { 3, 100 }, { 4, 250 }, { 5, 0 } };
	struct runtime_pair unknown[] = { { 1, 0 }, { 2, 90 } };

	struct runtime_natives natives = natives_of(starts, cfas, 2), none = {};

	is_int(anchors__prune(pairs, 5, &natives), 3, "innermost frames in no loop are dead");
	ok(pairs[0].key == 3 && pairs[2].key == 5, "up to the first that is in one");
	is_int(anchors__prune(unknown, 2, &natives), 2, "nothing is known of some");
	is_int(anchors__prune(pairs, 3, &none), 1, "no loop at all");
}

/* Java: anchors of native methods are below their frames; anchors of moved frames are on either
 * side. */
static void test_outwards(void)
{
	static const uint64_t cfas[] = { 0x1100, 0x1200, 0x1300 };
	struct runtime_pair pairs[] = { { 1, 0x10f8 }, { 2, 0x1100 }, { 3, 0x1110 },
					{ 4, 0 },      { 5, 0x1250 }, { 6, 0x1300 } };

	struct runtime_natives natives = natives_of(NULL, cfas, ARRAY_SIZE(cfas));

	anchors__outwards(pairs, ARRAY_SIZE(pairs), &natives);
	ok(pairs[0].address == 0x10f8 && pairs[1].address == 0x11f8 && pairs[2].address == 0x11f8 &&
		   pairs[4].address == 0x12f8,
	   "each in the first frame that ends above it");
	ok(pairs[3].address == 0 && pairs[5].address == 0x1300,
	   "no address, or none of the frames: unchanged");
}

/* Native frames, innermost first: 'l' code of a loop, '.' other code; CFAs 0x1100, 0x1200, ... */
static const struct {
	const char *natives;
	bool called;
	struct runtime_pair pairs[PAIRS_MAX];
	size_t n;
	const char *want;
} inside[] = {
	{ ".ll.", false, { { 1, 0x1210 }, { 2, 0x1210 } }, 2, "1@4600 2@4600" },
	{ ".ll.", false, { { 1, 0 }, { 2, 0x1210 } }, 2, "1@0 2@4600" },
	{ ".lll.", false, { { 1, 0x1310 } }, 1, "1@4600" },
	{ "ll.", false, { { 1, 0x1110 } }, 1, "1@4344" },
	{ "..l.", false, { { 1, 0x1210 } }, 1, "1@4624" },
	{ "..l.", true, { { 1, 0x1210 } }, 1, "1@4600" },
	{ ".l.l.", true, { { 1, 0x1310 } }, 1, "1@4600" },
	{ "l.", true, { { 1, 0x1010 } }, 1, "1@4112" },
	{ "...", true, { { 1, 0x1110 } }, 1, "1@4368" },
	{ ".l.", true, { { 1, 0x1310 } }, 1, "1@4880" },
	{ ".llll.", false, { { 1, 0x1210 }, { 2, 0x1410 } }, 2, "1@4600 2@5112" },
	{ ".l.l.", true, { { 1, 0x1110 }, { 2, 0x1310 } }, 2, "1@4344 2@4856" },
	{ "l.l.", true, { { 1, 0x1110 }, { 2, 0x1210 } }, 2, "1@4368 2@4624" },
	{ ".ll.", false, { { 1, 0x1210 }, { 2, RUNTIME_APART } }, 2, "1@4600 2@-2" },
};

static void test_inside(void)
{
	struct runtime_native list[PAIRS_MAX];
	struct runtime_pair pairs[PAIRS_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(inside); i++) {
		struct runtime_natives natives = { .list = list, .n = strlen(inside[i].natives) };

		for (size_t k = 0; k < natives.n; k++)
			list[k] = (struct runtime_native) { .cfa = 0x1100 + 0x100 * k,
							    .loop = inside[i].natives[k] == 'l' };
		memcpy(pairs, inside[i].pairs, sizeof(pairs));
		anchors__inside(pairs, inside[i].n, &natives, inside[i].called);
		is_str(show(pairs, inside[i].n), inside[i].want, "parts of a loop: %s, case %zu",
		       inside[i].natives, i);
	}
}

static void test_complete(void)
{
	for (int i = 0; i < 4; i++) {
		struct runtime_sample sample = { .native_complete = i & 1, .cut = i & 2 };

		ok(anchors__are_complete(&sample) == (i == 1), "native frames %s, the runtime's %s",
		   i & 1 ? "complete" : "not complete", i & 2 ? "cut" : "not cut");
	}
}

int main(void)
{
	struct runtime_pair pairs[PAIRS_MAX];

	test_complete();
	for (size_t i = 0; i < ARRAY_SIZE(settled); i++) {
		memcpy(pairs, settled[i].pairs, sizeof(pairs));
		is_str(show(pairs, anchors__settle(pairs, settled[i].n)), settled[i].want, "%s",
		       settled[i].what);
	}
	for (size_t i = 0; i < ARRAY_SIZE(paired); i++) {
		struct runtime_natives natives = natives_of(NULL, paired[i].cfas, paired[i].n_cfas);

		memcpy(pairs, paired[i].pairs, sizeof(pairs));
		anchors__pair(pairs, paired[i].n, &natives, paired[i].complete);
		is_str(show(pairs, paired[i].n), paired[i].want, "%s", paired[i].what);
	}
	test_prune();
	test_outwards();
	test_inside();
	return tap__done();
}
