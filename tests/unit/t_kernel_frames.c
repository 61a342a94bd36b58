// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "core/base/util.h"
#include "core/capture/kernel_frames.h"
#include "tests/tap.h"

/* Tests the remaining kernel frames of waits, of interrupts and of all other samples. */

#define SCHED 0x1000 /* to 0x1fff */
#define ENTRY 0x3000 /* to 0x3fff */

static const struct kernel_texts texts = { SCHED, SCHED + 0x1000, ENTRY, ENTRY + 0x1000 };
static const struct kernel_texts nothing;

/* Lists end with 0. */
#define WORDS(...) ((const uint64_t[]) { __VA_ARGS__, 0 })

static size_t length(const uint64_t *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	return n;
}

static void frames_are(const char *what, const struct kernel_texts *known, struct rec_sample rec,
		       const uint64_t *words, const uint64_t *want)
{
	uint64_t got[KERNEL_FRAMES_MAX + 1] = {};
	size_t n;

	rec.n_kernel = length(words);
	n = kernel_frames__of(known, &rec, words, got);
	ok(n == length(want) && !memcmp(got, want, n * sizeof(*want)), "%s", what);
}

int main(void)
{
	struct rec_sample runs = { .tid = 7, .condition.state = STATE_RUNS };
	struct rec_sample blocked = { .tid = 7, .condition.state = STATE_BLOCKED };
	struct rec_sample preempted = { .tid = 7, .condition.state = STATE_PREEMPTED };
	struct rec_sample interrupt = { .comm = INTERRUPT_NAME, .condition.state = STATE_RUNS };
	struct rec_sample impostor = { .tid = 7, .comm = INTERRUPT_NAME };
	uint64_t many[2 * KERNEL_FRAMES_MAX] = {};
	uint64_t got[KERNEL_FRAMES_MAX + 1];

	frames_are("blocked: without the scheduler", &texts, blocked,
		   WORDS(0x1010, 0x1fff, 0x2000, 0x5000), WORDS(0x2000, 0x5000));
	frames_are("blocked: nor the tracepoint", &texts, blocked, WORDS(0x9000, 0x1010, 0x2000),
		   WORDS(0x2000));
	frames_are("blocked: nor what waits further out", &texts, blocked,
		   WORDS(0x1010, 0x2000, 0x1200, 0x5000), WORDS(0x2000, 0x5000));
	frames_are("blocked: no scheduler at all", &texts, blocked, WORDS(0x2000, 0x5000),
		   WORDS(0x2000, 0x5000));
	frames_are("preempted", &texts, preempted, WORDS(0x1010, 0x3010), WORDS(0x3010));
	frames_are("running: the scheduler is what it runs", &texts, runs, WORDS(0x1010, 0x2000),
		   WORDS(0x1010, 0x2000));
	frames_are("an interrupt: up to its entry", &texts, interrupt,
		   WORDS(0x2000, 0x3010, 0x2100, 0x3100), WORDS(0x2000, 0x3010));
	frames_are("an interrupt without one", &texts, interrupt, WORDS(0x2000, 0x2100),
		   WORDS(0x2000, 0x2100));
	frames_are("a thread of that name", &texts, impostor, WORDS(0x2000, 0x3010, 0x2100),
		   WORDS(0x2000, 0x3010, 0x2100));
	frames_are("without symbols: all", &nothing, blocked, WORDS(0x1010, 0x2000),
		   WORDS(0x1010, 0x2000));
	frames_are("without symbols: all", &nothing, interrupt, WORDS(0x3010, 0x2000),
		   WORDS(0x3010, 0x2000));
	ok(!kernel_frames__are_cut(&runs) && !kernel_frames__are_cut(&impostor),
	   "what runs needs no symbols");
	ok(kernel_frames__are_cut(&blocked) && kernel_frames__are_cut(&interrupt),
	   "what waits, and interrupts, do");
	runs.n_kernel = ARRAY_SIZE(many);
	ok(kernel_frames__of(&texts, &runs, many, got) == KERNEL_FRAMES_MAX + 1,
	   "no more than there is room for");
	return tap__done();
}
