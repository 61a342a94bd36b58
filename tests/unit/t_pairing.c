// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/pairing.h"

#include "bpf/shared.h"
#include "core/util.h"
#include "tests/tap.h"

/* An interpreter whose loop is LOOP bytes of code and runs one frame each time. */
#define BIAS 0x400000
#define LOOP 0x100
#define CODE (BIAS + 0x1000)

static size_t loops(const struct runtime_image *image, const struct runtime_range **ret,
		    enum runtime_loops *ret_how)
{
	static const struct runtime_range range = { 0x1000, 0x1000 + LOOP };

	(void)image;
	*ret = &range;
	*ret_how = RUNTIME_LOOPS_ONE_EACH;
	return 1;
}

static const struct runtime runtime = { .name = "made up", .loops = loops };
static struct image image = { .runtimes[0].image = (void *)&image };
static struct mapped mapped = {
	.start = BIAS, .end = BIAS + 0x10000, .bias = BIAS, .image = &image
};
static struct process process = { .mapped = &mapped, .n_mapped = 1, .recording_id = 1 };

/* Three loops; the call in the last one is the last instruction of the loop. The first and the last
 * native frame are none: interrupted at the first byte behind the loop, and far from it. */
static const struct native_frame natives[] = {
	{ (CODE + LOOP) | NATIVE_EXACT, 0x7010 },
	{ CODE + 1, 0x7020 },
	{ CODE + 0x20, 0x7030 },
	{ CODE + LOOP, 0x7040 },
	{ CODE - 0x20, 0x7050 },
};

static const struct {
	const char *name;
	bool native_complete;
	uint32_t flags;
	uint64_t addresses[2];
} cases[] = {
	{ "all is there: from the outermost on", true, 0, { 0x7028, 0x7038 } },
	{ "frames are cut: from the innermost on",
	  true,
	  SAMPLE_RUNTIME_TRUNCATED,
	  { 0x7018, 0x7028 } },
	{ "frames cannot be read: from the innermost on",
	  true,
	  SAMPLE_RUNTIME_BROKEN,
	  { 0x7018, 0x7028 } },
	{ "the native stack is cut: from the innermost on", false, 0, { 0x7018, 0x7028 } },
};

int main(void)
{
	struct pairing *pairing = pairing__new();

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct runtime_pair pairs[] = { { .key = FRAME_KEY(1, 0) },
						{ .key = FRAME_KEY(2, 0) } };
		struct pairing_sample sample = { .process = &process,
						 .runtime = &runtime,
						 .natives = natives,
						 .n_natives = ARRAY_SIZE(natives),
						 .native_complete = cases[i].native_complete,
						 .flags = cases[i].flags };

		is_int(pairing__run(pairing, &sample, pairs, 2), 2, "%s", cases[i].name);
		for (int k = 0; k < 2; k++)
			is_int(pairs[k].address, cases[i].addresses[k], "frame %d", k);
	}
	pairing__free(pairing);
	return tap__done();
}
