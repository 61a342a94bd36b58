// SPDX-License-Identifier: GPL-2.0-or-later
/* Matches native frames with the frames of a runtime, whose loops run the frames up to a mark. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/shared.h"
#include "core/base/util.h"
#include "runtimes/common/anchors.h"
#include "runtimes/runtime.h"
#include "tests/tap.h"

#define FRAMES_MAX 128

struct stacks {
	struct runtime_pair pairs[FRAMES_MAX];
	uint64_t functions[FRAMES_MAX];
	size_t n;
	struct runtime_native natives[FRAMES_MAX];
	size_t n_natives;
};

static size_t match(struct stacks *stacks, bool complete)
{
	struct runtime_natives natives = { .list = stacks->natives, .n = stacks->n_natives };

	return anchors__match(stacks->pairs, stacks->functions, stacks->n, &natives, complete,
			      ANCHORS_MARK_LAST);
}

/* --- cases, as drawn --- */

/* Parses two stacks, innermost first. Runtime: f is a frame that a loop runs; m5 is a native method
 * whose function is 5; m? is a native method with an unknown function; | ends a loop; frames after
 * / are apart. Native: n5 calls function 5; n? calls an unknown function; L is code of a loop; n5-
 * has no CFA. */
static void parse(struct stacks *stacks, const char *runtime, const char *native)
{
	char text[256], *rest, *token;

	memset(stacks, 0, sizeof(*stacks));
	snprintf(text, sizeof(text), "%s", runtime);
	for (token = strtok_r(text, " ", &rest); token; token = strtok_r(NULL, " ", &rest)) {
		size_t i = stacks->n++;

		stacks->pairs[i].key = *token == '|'   ? FRAME_LOOP_END
				       : *token == '/' ? FRAME_APART
						       : i + 1;
		if (*token == 'm')
			stacks->functions[i] = token[1] == '?' ? ANCHOR_FUNCTION_UNKNOWN
							       : strtoul(token + 1, NULL, 10);
	}
	snprintf(text, sizeof(text), "%s", native);
	for (token = strtok_r(text, " ", &rest); token; token = strtok_r(NULL, " ", &rest)) {
		struct runtime_native *to = &stacks->natives[stacks->n_natives++];

		to->cfa = strchr(token, '-') ? 0 : 100 * stacks->n_natives;
		to->loop = *token == 'L';
		to->function = *token == 'L' ? 9999 : strtoul(token + 1, NULL, 10);
	}
}

/* Returns the pairs as "KEY@ADDRESS ...". */
static const char *show(const struct runtime_pair *pairs, size_t n)
{
	static char text[1024];
	size_t len = 0;

	*text = 0;
	for (size_t i = 0; i < n; i++)
		len += snprintf(text + len, sizeof(text) - len,
				pairs[i].address == RUNTIME_APART ? "%s%d@apart" : "%s%d@%d",
				i ? " " : "", (int)pairs[i].key, (int)pairs[i].address);
	return text;
}

static const struct {
	const char *what, *runtime, *native;
	bool complete, cut; /* kinds of stacks that the case applies to */
	const char *want;
} cases[] = {
	{ "nothing", "", "", true, true, "" },
	{ "no native frames", "f m5 | f |", "", true, true, "1@0 2@0 4@0" },
	{ "no frames", "", "n1 L n2", true, true, "" },
	{ "nothing but marks", "| | /", "n1 L n2", true, true, "" },
	{ "one loop that runs all", "f f f |", "n1 L n2", true, true, "1@192 2@192 3@192" },
	{ "the parts of a loop are one: the innermost", "f | f |", "L L n1 L L L n2", true, true,
	  "1@92 3@392" },
	{ "loops side by side are one, too", "f | f |", "n1 L L n2", true, false, "1@92 3@192" },
	{ "two loops", "f f | f |", "L n1 n2 L n3", true, true, "1@92 2@92 4@392" },
	{ "an inner loop that has no frame yet", "f | f |", "L n1 L n2 L n3", true, false,
	  "1@292 3@492" },
	{ "outer loops that the walk did not come to", "f | f", "L n1 L n2 L n3", false, true,
	  "1@92 3@292" },
	{ "an inner frame that has no loop yet", "f | f | f |", "n1 L n2 L n3", true, false,
	  "1@92 3@192 5@392" },
	{ "its callers are outside of a native method's caller", "f | m5 f |", "n1 n2 n5 n3 L n4",
	  true, false, "1@92 3@300 4@492" },
	{ "one that has no mark yet, either", "f m5 f |", "n1 n2 n5 n3 L n4", true, true,
	  "1@92 2@300 3@492" },
	{ "and calls nothing", "f m5 m6 f |", "n2 n5 n6 L n4", true, true,
	  "1@92 2@200 3@300 4@392" },
	{ "no native frame is left for it", "f | f |", "L n2", true, false, "1@0 3@92" },
	{ "outer frames behind the end of the native stack", "f | f | f |", "n1 L n2 L n3", false,
	  true, "1@192 3@392 5@0" },
	{ "compiled code in loops", "f f | f |", "n? L n1 n? n? L n2", true, true,
	  "1@192 2@192 4@592" },

	{ "a loop without a CFA", "f | f |", "n1 L n2 L-", true, true, "1@192 3@0" },

	{ "a native method", "m5 f |", "n1 n5 n2 L n3", true, true, "1@200 2@392" },
	{ "several, one called by the other", "m6 m5 f |", "n6 n2 n5 n7 L n3", true, true,
	  "1@100 2@300 3@492" },
	{ "of compiled code", "m5 f |", "n5 n? L", true, true, "1@100 2@292" },
	{ "between two loops", "f | m5 f |", "L n5 n2 L n3", true, true, "1@92 3@200 4@392" },
	{ "one that was called as the last thing of its function", "m6 m5 f |", "n6 n2 L", true,
	  true, "1@100 2@0 3@292" },
	{ "one that is not found", "m5 f |", "n1 n2 L", true, true, "1@0 2@292" },
	{ "one in the wrong loop", "f | m5 f |", "n5 L n2 L n5", true, true, "1@192 3@0 4@392" },
	{ "one that calls itself: the outermost", "m5 f |", "n5 n5 n5 L", true, true,
	  "1@300 2@392" },
	{ "and that the runtime knows of", "m5 m5 f |", "n1 n5 n5 n5 L", true, true,
	  "1@300 2@400 3@492" },
	{ "order counts", "m5 m6 f |", "n6 n5 L", true, true, "1@0 2@100 3@292" },
	{ "functions that are not known", "m? m5 f |", "n? n? n5 L", true, true,
	  "1@0 2@300 3@392" },
	{ "a method without a CFA", "m5 f |", "n5- L", true, true, "1@0 2@192" },

	{ "only native methods", "m6 m5", "n1 n6 n5 n2", true, true, "1@200 2@300" },
	{ "inside a loop that has no frame", "m5", "n5 L n2", false, true, "1@100" },
	{ "outside all loops that have frames", "f | m5", "n1 L n5 n2", true, true, "1@192 3@300" },
	{ "outside a loop that has no frame yet", "m5", "n1 L n5 n2", true, false, "1@300" },
	{ "and inside it", "m5", "n5 L n1 n2", true, false, "1@0" },

	{ "frames apart", "f | / f | m5 f |", "L n5 n2", true, true,
	  "1@92 4@apart 6@apart 7@apart" },
	{ "all frames apart", "/ m5 f |", "n5 L n2", true, true, "2@apart 3@apart" },
	{ "an end that was not marked", "f | f / f |", "L n1 L n2", true, true,
	  "1@92 3@292 5@apart" },
};

static void test_cases(void)
{
	struct stacks stacks;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (int complete = 0; complete < 2; complete++) {
			size_t n;

			if (complete ? !cases[i].complete : !cases[i].cut)
				continue;
			parse(&stacks, cases[i].runtime, cases[i].native);
			n = match(&stacks, complete);
			is_str(show(stacks.pairs, n), cases[i].want, "%s (%s)", cases[i].what,
			       complete ? "complete" : "cut");
		}
	}
}

/* The innermost frame has no loop. It depends on the runtime whether its loop has not begun yet. */
static void test_starts(void)
{
	static const char *const want[] = {
		[ANCHORS_LOOP_FIRST] = "1@0 3@300 4@492",
		[ANCHORS_FRAME_FIRST] = "1@92 3@300 4@492",
		[ANCHORS_MARK_LAST] = "1@92 3@300 4@492",
	};
	struct stacks stacks;

	for (enum anchors_start start = 0; start < ARRAY_SIZE(want); start++) {
		struct runtime_natives natives = { .list = stacks.natives };
		size_t n;

		parse(&stacks, "f | m5 f |", "n1 n2 n5 n3 L n4");
		natives.n = stacks.n_natives;
		n = anchors__match(stacks.pairs, stacks.functions, stacks.n, &natives, true, start);
		is_str(show(stacks.pairs, n), want[start], "a frame that no loop runs, start %d",
		       start);
	}
}

/* --- simulated threads, and the stacks that a sampler gets --- */

/* State of a fixed sequence (linear congruential generator of Numerical Recipes). */
static uint32_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % n;
}

/* Stacks of a thread, made from the outermost frame on and then reversed. */
struct thread {
	struct stacks stacks;
	uint64_t want[FRAMES_MAX]; /* address of each pair */
	uint64_t last_function;
	uint64_t cfa;
	bool pending;	/* true: the innermost ends of both stacks do not correspond */
	bool recursion; /* native methods call themselves; the runtime shows one call */
};

/* Adds a native call and returns its CFA. @function is 0 for a helper that the runtime never calls.
 */
static uint64_t call(struct thread *thread, uint64_t function, bool loop)
{
	struct stacks *stacks = &thread->stacks;

	stacks->natives[stacks->n_natives++] = (struct runtime_native) {
		.cfa = thread->cfa,
		.function = function ? function : 1 + random_below(3),
		.loop = loop,
	};
	thread->cfa -= 16 + 16 * random_below(8);
	return stacks->natives[stacks->n_natives - 1].cfa;
}

static void push(struct thread *thread, uint64_t key, uint64_t function, uint64_t want)
{
	struct stacks *stacks = &thread->stacks;

	stacks->pairs[stacks->n] = (struct runtime_pair) { .key = key };
	stacks->functions[stacks->n] = function;
	thread->want[stacks->n++] = want;
}

static void call_helpers(struct thread *thread)
{
	for (uint32_t n = random_below(3); n; n--)
		call(thread, 0, false);
}

/* Adds native methods. Some are optimised into jumps, some have an unknown function, and some call
 * themselves at the end. */
static void call_methods(struct thread *thread)
{
	for (uint32_t n = random_below(4), how = 0; n; n--) {
		uint64_t function = ++thread->last_function, cfa = 0;

		how = random_below(6);
		if (how)
			cfa = call(thread, function, false);
		push(thread, function, how == 1 ? ANCHOR_FUNCTION_UNKNOWN : function,
		     how == 1 ? 0 : cfa);
		call_helpers(thread);
		if (how == 2 && thread->recursion)
			call(thread, function, false);
	}
}

static void run_loop(struct thread *thread)
{
	uint64_t cfa = 0;

	for (uint32_t parts = 1 + random_below(3); parts; parts--)
		cfa = call(thread, 0, true);
	push(thread, FRAME_LOOP_END, 0, 0);
	for (uint32_t n = 1 + random_below(4); n; n--)
		push(thread, ++thread->last_function, 0, cfa - 8);
}

static void turn(struct thread *thread)
{
	struct stacks *stacks = &thread->stacks;

	for (size_t i = 0, k = stacks->n; i + 1 < k--; i++) {
		struct runtime_pair pair = stacks->pairs[i];
		uint64_t function = stacks->functions[i], want = thread->want[i];

		stacks->pairs[i] = stacks->pairs[k];
		stacks->functions[i] = stacks->functions[k];
		thread->want[i] = thread->want[k];
		stacks->pairs[k] = pair;
		stacks->functions[k] = function;
		thread->want[k] = want;
	}
	for (size_t i = 0, k = stacks->n_natives; i + 1 < k--; i++) {
		struct runtime_native native = stacks->natives[i];

		stacks->natives[i] = stacks->natives[k];
		stacks->natives[k] = native;
	}
}

/* Makes the stacks of a thread. C code surrounds the outermost loop. The innermost loop has no
 * frame yet, or is about to be entered for a frame that exists already (`pending`). */
static void run_thread(struct thread *thread, bool recursion)
{
	uint32_t loops = random_below(5), pending = random_below(4);
	struct stacks *stacks = &thread->stacks;

	memset(thread, 0, sizeof(*thread));
	thread->cfa = 1000000;
	thread->last_function = 1000;
	thread->recursion = recursion;
	call(thread, 0, false);
	call_methods(thread);
	for (; loops; loops--) {
		run_loop(thread);
		call_methods(thread);
		call(thread, 0, false);
	}
	if (pending == 0) {
		call(thread, 0, true);
	} else if (pending == 1) {
		if (!stacks->n || !stacks->functions[stacks->n - 1] || random_below(2))
			push(thread, FRAME_LOOP_END, 0, 0);
		push(thread, ++thread->last_function, 0,
		     stacks->natives[stacks->n_natives - 1].cfa - 8);
	}
	thread->pending = pending < 2;
	turn(thread);
}

static bool matches(const struct thread *thread, bool complete)
{
	struct stacks seen = thread->stacks;
	size_t n = match(&seen, complete);
	size_t at = 0;

	for (size_t i = 0; i < thread->stacks.n; i++) {
		uint64_t key = thread->stacks.pairs[i].key;

		if (FRAME_IS_MARK(key))
			continue;
		if (at >= n || seen.pairs[at].key != key ||
		    seen.pairs[at].address != thread->want[i])
			return false;
		at++;
	}
	return at == n;
}

/* Cuts the outer ends off a thread's stacks. */
static void cut(struct thread *thread)
{
	struct stacks *stacks = &thread->stacks;
	uint64_t end;

	if (!random_below(3))
		stacks->n -= random_below(stacks->n + 1);
	if (!random_below(3))
		stacks->n_natives -= random_below(stacks->n_natives);
	end = stacks->natives[stacks->n_natives - 1].cfa;
	for (size_t i = 0; i < stacks->n; i++)
		if (thread->want[i] > end)
			thread->want[i] = 0;
}

static void test_threads(void)
{
	static struct thread thread;
	size_t frames = 0, threads = 0;
	int bad = 0, bad_cut = 0;

	for (int round = 0; round < 20000; round++) {
		run_thread(&thread, true);
		bad += !matches(&thread, true);
		frames += thread.stacks.n;
		run_thread(&thread, false);
		if (thread.pending)
			continue;
		cut(&thread);
		bad_cut += !matches(&thread, false);
		threads++;
	}
	is_int(bad, 0, "20,000 threads");
	is_int(bad_cut, 0, "%zu threads whose outermost frames are not seen", threads);
	ok(frames > 100000 && threads > 5000, "they had %zu frames", frames);
}

/* --- random stacks --- */

static void test_anything(void)
{
	static struct stacks stacks;
	int bad = 0;

	for (int round = 0; round < 20000; round++) {
		uint64_t last = 0;
		size_t n, want = 0;

		stacks.n = random_below(24);
		stacks.n_natives = random_below(24);
		for (size_t i = 0; i < stacks.n; i++) {
			uint32_t what = random_below(12);

			stacks.pairs[i] = (struct runtime_pair) { .key = ++want };
			stacks.functions[i] = what < 5	  ? what
					      : what == 5 ? ANCHOR_FUNCTION_UNKNOWN
							  : 0;
			if (what > 9 && i && !FRAME_IS_MARK(stacks.pairs[i - 1].key) &&
			    !stacks.functions[i - 1]) {
				stacks.pairs[i].key = FRAME_LOOP_END;
				want--;
			}
		}
		for (size_t i = 0; i < stacks.n_natives; i++)
			stacks.natives[i] = (struct runtime_native) { .cfa = 100 * i + 100,
								      .function = random_below(6),
								      .loop = !random_below(3) };
		n = match(&stacks, round & 1);
		bad += n != want;
		for (size_t i = 0; i < n; i++) {
			bad += stacks.pairs[i].key != i + 1;
			bad += stacks.pairs[i].address && stacks.pairs[i].address < last;
			last = max_of(last, stacks.pairs[i].address);
		}
	}
	is_int(bad, 0, "any stacks: no frame is lost, none lies inside one that it called");
}

int main(void)
{
	test_cases();
	test_starts();
	test_threads();
	test_anything();
	return tap__done();
}
