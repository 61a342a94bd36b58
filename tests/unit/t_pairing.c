// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/pairing.h"

#include "bpf/shared.h"
#include "core/base/util.h"
#include "core/target/place.h"
#include "runtimes/common/anchors.h"
#include "tests/tap.h"

/* An interpreter whose loop is LOOP bytes of code and runs one frame each time, and code that it
 * compiled. */
#define BIAS	 0x400000
#define LOOP	 0x100
#define CODE	 (BIAS + 0x1000)
#define COMPILED 0x800000

static size_t loops(const struct runtime_image *image, const struct runtime_range **ret)
{
	static const struct runtime_range range = { 0x1000, 0x1000 + LOOP };

	(void)image;
	*ret = &range;
	return 1;
}

static struct runtime_sample seen;
static struct runtime_natives seen_natives;

static size_t pair(struct runtime_session *session, const struct runtime_sample *sample,
		   struct runtime_pair *pairs, size_t n)
{
	(void)session;
	seen = *sample;
	seen_natives = sample->natives(sample, false);
	anchors__pair(pairs, n, &seen_natives, anchors__are_complete(sample));
	return n;
}

static const struct runtime_files files = { .loops = loops };
static const struct runtime_names names = { .anchors = pair };
static const struct runtime runtime = { .name = "made up", .files = &files, .names = &names };
static const struct runtime without = { .name = "without", .files = &files };
static struct image image = { .runtimes[0].image = (void *)&image };
static struct image other; /* image of another runtime, or of no runtime */
static struct mapped mapped[] = {
	{ .start = BIAS, .end = BIAS + 0x10000, .bias = BIAS, .image = &image },
	{ .start = BIAS + 0x10000, .end = BIAS + 0x20000, .bias = BIAS, .image = &other },
	{ .start = COMPILED, .end = COMPILED + 0x1000, .path = "" },
};
static const struct runtime *const list[] = { &runtime, NULL };
static const struct runtime_set runtimes = { .list = list, .enabled = 1 };
static struct process process = { .runtimes = &runtimes,
				  .mapped = mapped,
				  .n_mapped = ARRAY_SIZE(mapped) };

/* Three frames of the loop; the call in the last one is the last instruction of the loop. The
 * others are outside: interrupted at the first byte behind the loop, and far from it. */
static const struct native_frame natives[] = {
	{ (CODE + LOOP) | NATIVE_EXACT, 0x7010 },
	{ CODE + 1, 0x7020 },
	{ CODE + 0x20, 0x7030 },
	{ CODE + LOOP, 0x7040 },
	{ CODE - 0x20, 0x7050 },
	{ COMPILED + 8, 0x7060 },
	{ BIAS + 0x11010, 0x7070 },
	{ 0x10, 0x7080 },
};

static const struct {
	const char *name;
	bool native_complete;
	uint32_t flags;
	uint64_t addresses[2];
} cases[] = {
	{ "all is there: from the outermost on", true, 0, { 0x7028, 0x7038 } },
	{ "the same of probes", true, SECTION_PROBED, { 0x7028, 0x7038 } },
	{ "frames are cut: from the innermost on", true, SECTION_TRUNCATED, { 0x7018, 0x7028 } },
	{ "frames cannot be read: from the innermost on",
	  true,
	  SECTION_BROKEN,
	  { 0x7018, 0x7028 } },
	{ "the native stack is cut: from the innermost on", false, 0, { 0x7018, 0x7028 } },
	{ "the runtime's own stack is whole: from the outermost on",
	  false,
	  SECTION_WHOLE,
	  { 0x7028, 0x7038 } },
	{ "but its frames are cut: from the innermost on",
	  false,
	  SECTION_WHOLE | SECTION_TRUNCATED,
	  { 0x7018, 0x7028 } },
};

int main(void)
{
	struct pairing *pairing = pairing__new();
	struct pairing_sample sample = { .process = &process,
					 .natives = natives,
					 .n_natives = ARRAY_SIZE(natives) };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct runtime_pair pairs[] = { { .key = FRAME_KEY(1, 0) },
						{ .key = FRAME_KEY(2, 0) } };

		sample.runtime = &runtime;
		sample.native_complete = cases[i].native_complete;
		sample.flags = cases[i].flags;
		is_int(pairing__run(pairing, &sample, pairs, 2), 2, "%s", cases[i].name);
		for (int k = 0; k < 2; k++)
			is_int(pairs[k].address, cases[i].addresses[k], "frame %d", k);
		ok(seen.native_complete ==
				   (cases[i].native_complete || cases[i].flags & SECTION_WHOLE) &&
			   seen.cut == !!(cases[i].flags & (SECTION_TRUNCATED | SECTION_BROKEN)) &&
			   seen.probed == !!(cases[i].flags & SECTION_PROBED),
		   "this is what the runtime was told");
		for (size_t k = 0; k < seen_natives.n; k++)
			ok(seen_natives.list[k].cfa == natives[k].cfa &&
				   seen_natives.list[k].loop == (k >= 1 && k <= 3) &&
				   seen_natives.list[k].compiled == (k == 5) &&
				   !seen_natives.list[k].function,
			   "and of native frame %zu", k);
		ok(seen_natives.n == ARRAY_SIZE(natives) &&
			   seen_natives.image == image.runtimes[0].image,
		   "and its image");
		sample.runtime = &without;
		pairs[0].address = 7;
		is_int(pairing__run(pairing, &sample, pairs, 2), 2, "a runtime without the hook");
		is_int(pairs[0].address, 7, "its frames stay as they are");
	}
	pairing__free(pairing);
	process__forget_code(&process);
	return tap__done();
}
