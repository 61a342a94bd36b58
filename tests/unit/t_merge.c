// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/util.h"
#include "tests/tap.h"

#define FRAMES_MAX 64

/* A stack as drawn: "k:read n:strcmp@100 n:eval@?": kernel (k), native (n) and runtime (py) frames,
 * innermost first, with their stack address; "?" for none. */
struct stack {
	char text[512];
	const char *names[FRAMES_MAX];
	struct merge_frame frames[FRAMES_MAX];
	size_t n;
};

static void parse(struct stack *stack, const char *drawn)
{
	char *rest, *token;

	stack->n = 0;
	snprintf(stack->text, sizeof(stack->text), "%s", drawn);
	for (token = strtok_r(stack->text, " ", &rest); token; token = strtok_r(NULL, " ", &rest)) {
		struct merge_frame *frame = &stack->frames[stack->n];
		char *at = strchr(token, '@');

		*frame = (struct merge_frame) { .frame = stack->n, .kernel = token[0] == 'k' };
		if (at) {
			frame->address = strtoul(at + 1, NULL, 10);
			*at = '\0';
		}
		stack->names[stack->n++] = token;
	}
}

/* Runtime frames get other ids than native ones. */
#define RUNTIME_ID 1000

/* As drawn; runtime frames with how they were placed: = address, ~ order, + appended; loops with
 * an asterisk. */
static const char *merge_drawn(const char *native, const char *runtime, bool keep_vm,
			       struct merge_report *report)
{
	struct merge_placed placed[2 * FRAMES_MAX];
	struct stack n_stack, r_stack;
	static char text[1024];
	size_t i, n, len = 0;

	parse(&n_stack, native);
	parse(&r_stack, runtime);
	for (i = 0; i < r_stack.n; i++)
		r_stack.frames[i].frame += RUNTIME_ID;
	n = merge__run(n_stack.frames, n_stack.n, r_stack.frames, r_stack.n, keep_vm, placed,
		       report);
	text[0] = '\0';
	for (i = 0; i < n; i++) {
		uint32_t id = placed[i].frame;
		const char *name =
			id < RUNTIME_ID ? n_stack.names[id] : r_stack.names[id - RUNTIME_ID];

		len += snprintf(text + len, sizeof(text) - len, "%s%s%s%s", i ? " " : "", name,
				(const char *[]) { "", "=", "~", "+" }[placed[i].placement],
				placed[i].loop ? "*" : "");
	}
	return text;
}

static const struct {
	const char *what, *native, *runtime, *want;
	bool keep_vm;
} cases[] = {
	{ "a loop that runs two frames, inside another",
	  "k:ksys n:strcmp@100 n:eval@200 n:sort@300 n:eval@400 n:_start@500",
	  "py:inner@150 py:outer@350 py:mod@350",
	  "k:ksys n:strcmp py:inner= n:sort py:outer= py:mod= n:_start", false },
	{ "the same with its loops", "n:strcmp@100 n:eval@200 n:sort@300 n:eval@400 n:_start@500",
	  "py:inner@150 py:outer@350 py:mod@350",
	  "n:strcmp py:inner= n:eval* n:sort py:outer= py:mod= n:eval* n:_start", true },
	{ "no native stack", "", "py:a@10 py:b@20", "py:a+ py:b+", false },
	{ "no runtime stack", "k:x n:a@10 n:b@20", "", "k:x n:a n:b", false },
	{ "nothing at all", "", "", "", false },
	{ "the innermost frame is a loop", "n:eval@100 n:main@200", "py:a@1 py:b@99",
	  "py:a= py:b= n:main", false },
	{ "spans are half open", "n:a@100 n:b@200 n:c@300", "py:x@100 py:y@200",
	  "n:a py:x= py:y=", false },
	{ "just below a boundary", "n:a@100 n:b@200", "py:x@99 py:y@199", "py:x= py:y=", false },
	{ "native frames end too early", "n:a@100 n:eval@200", "py:x@150 py:y@200 py:z@900",
	  "n:a py:x= py:y+ py:z+", false },
	{ "kernel frames contain nothing", "k:a k:b n:eval@100", "py:x@50",
	  "k:a k:b py:x=", false },
	{ "only kernel frames", "k:a k:b", "py:x@50", "k:a k:b py:x+", false },
	{ "an unknown CFA contains nothing and moves nothing", "n:a@100 n:lost n:eval@300",
	  "py:x@150", "n:a n:lost py:x=", false },
	{ "all CFAs unknown", "n:a n:b", "py:x@150", "n:a n:b py:x+", false },
	{ "an anchor below the one before", "n:a@100 n:eval@200 n:b@300", "py:x@150 py:y@50",
	  "n:a py:x= py:y~ n:b", false },
	{ "an anchor below the frame that would be next", "n:a@100 n:b@200 n:eval@300",
	  "py:x@150 py:y@120 py:z@90 py:w@250", "n:a py:x= py:y= py:z~ py:w=", false },
	{ "two frames with the same CFA", "n:a@100 n:b@100 n:c@200", "py:x@100 py:y@99",
	  "n:a n:b py:x= py:y~", false },
	{ "a signal handler on a higher alternate stack",
	  "n:handler@9000 n:trampoline@100 n:eval@200 n:main@300", "py:x@150 py:y@160",
	  "n:handler n:trampoline py:x= py:y= n:main", false },
	{ "one that runs a loop itself", "n:f@8000 n:eval@9000 n:trampoline@100 n:eval2@200",
	  "py:h@8500 py:x@150", "n:f py:h= n:trampoline py:x=", false },
	{ "on a lower alternate stack", "n:handler@50 n:trampoline@1000 n:eval@1100 n:main@1200",
	  "py:x@1050", "n:handler n:trampoline py:x= n:main", false },
	{ "frames placed stay placed where the stack falls",
	  "n:a@9100 n:eval@9200 n:trampoline@100 n:eval@200", "py:x@9150 py:y@9150 py:z@50",
	  "n:a py:x= py:y= n:trampoline py:z~ n:eval", false },
	{ "a frame without address goes with the next one", "n:a@100 n:eval@200 n:b@300",
	  "py:x py:y@150", "n:a py:x~ py:y= n:b", false },
	{ "or with the one before", "n:a@100 n:eval@200 n:b@300", "py:x@150 py:y py:z",
	  "n:a py:x= py:y~ py:z~ n:b", false },
	{ "or outside", "n:a@100 n:b@200", "py:x py:y", "n:a n:b py:x+ py:y+", false },
};

static void test_cases(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		is_str(merge_drawn(cases[i].native, cases[i].runtime, cases[i].keep_vm, NULL),
		       cases[i].want, "%s", cases[i].what);
}

static void test_report(void)
{
	struct merge_report report = { .by_address = 10 };

	merge_drawn("n:a@100 n:eval@200", "py:x@150 py:y@50 py:z@900", false, &report);
	is_int(report.by_address, 11, "report: by address, added to what was there");
	is_int(report.by_order, 1, "report: by order");
	is_int(report.appended, 1, "report: appended");
	is_int(report.loops, 1, "report: loops");
}

/* A fixed sequence: Numerical Recipes' linear congruential generator. */
static uint32_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % n;
}

static size_t random_stack(struct merge_frame *frames, uint32_t first_id, bool runtime)
{
	size_t i, n = random_below(FRAMES_MAX);
	uint64_t address = 1 + random_below(500);

	for (i = 0; i < n; i++) {
		address += random_below(60);
		if (!random_below(40))
			address = 1 + random_below(2000);
		frames[i] = (struct merge_frame) { .frame = first_id + i, .address = address };
		if (!random_below(15))
			frames[i].address = MERGE_NO_ADDRESS;
		frames[i].kernel = !runtime && i < 3 && random_below(2);
	}
	return n;
}

/* What holds for any two stacks. Returns what does not. */
static const char *check_placed(const struct merge_placed *placed, size_t n, size_t n_native,
				size_t n_runtime, bool keep_vm, const struct merge_report *report)
{
	uint64_t by[4] = { 0 }, loops = 0;
	int64_t last_native = -1, last_runtime = RUNTIME_ID - 1;
	size_t i;

	for (i = 0; i < n; i++) {
		int64_t id = placed[i].frame;
		bool native = id < RUNTIME_ID;

		if (native != (placed[i].placement == MERGE_PLACED_NATIVE))
			return "a frame is said to be of the other stack";
		if (native ? id <= last_native : id != last_runtime + 1)
			return "the order changed, or a runtime frame is missing";
		if (placed[i].loop && (!keep_vm || !native))
			return "what is no loop, or should not be there";
		*(native ? &last_native : &last_runtime) = id;
		by[placed[i].placement]++;
		loops += placed[i].loop;
	}
	if (last_runtime != (int64_t)(RUNTIME_ID + n_runtime - 1))
		return "the outermost runtime frames are missing";
	if (by[MERGE_PLACED_NATIVE] + (keep_vm ? 0 : report->loops) != n_native)
		return "native frames are missing";
	if (keep_vm && loops != report->loops)
		return "the report's loops are not those marked";
	if (by[MERGE_PLACED_ADDRESS] != report->by_address ||
	    by[MERGE_PLACED_ORDER] != report->by_order ||
	    by[MERGE_PLACED_APPENDED] != report->appended)
		return "the report's sums differ";
	return NULL;
}

static void test_properties(void)
{
	struct merge_frame native[FRAMES_MAX], runtime[FRAMES_MAX];
	uint64_t seen[3] = { 0 };
	const char *wrong = NULL;
	int round;

	for (round = 0; !wrong && round < 20000; round++) {
		size_t n_native = random_stack(native, 0, false);
		size_t n_runtime = random_stack(runtime, RUNTIME_ID, true);
		struct merge_placed placed[2 * FRAMES_MAX];
		struct merge_report report = { 0 };
		bool keep_vm = round & 1;
		size_t n =
			merge__run(native, n_native, runtime, n_runtime, keep_vm, placed, &report);

		wrong = check_placed(placed, n, n_native, n_runtime, keep_vm, &report);
		seen[0] += report.by_address;
		seen[1] += report.by_order;
		seen[2] += report.appended;
	}
	is_str(wrong, NULL, "20,000 pairs of stacks (the last was no. %d)", round);
	ok(seen[0] > 10000 && seen[1] > 10000 && seen[2] > 10000, "they had every placement often");
}

int main(void)
{
	test_cases();
	test_report();
	test_properties();
	return tap__done();
}
