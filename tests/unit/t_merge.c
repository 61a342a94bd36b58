// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "tests/tap.h"

#define FRAMES_MAX 64

/* A stack as text, innermost first: "k:read n:strcmp@100 l:eval@200 py:f". Frames are of the kernel
 * (k), native (n, l: code of a loop, j: compiled at run time) or of a runtime (py, rb). A stack
 * address follows '@' if the frame has one; "@/": on another stack. */
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

		*frame = (struct merge_frame) { .frame = stack->n,
						.kind = token[0],
						.kernel = token[0] == 'k',
						.loop = token[0] == 'l',
						.jit = token[0] == 'j',
						.inferred = strchr(token, '?') != NULL };
		if (at) {
			frame->address = at[1] == '/' ? MERGE_APART : strtoul(at + 1, NULL, 10);
			*at = '\0';
		}
		stack->names[stack->n++] = token;
	}
}

/* First ID of runtime frames; IDs of native frames are smaller. */
#define RUNTIME_ID 1000

/* Merges two stacks and returns the result as text. Runtime frames have a mark for their placement:
 * = address, ~ order, + appended, / apart. Loops have an asterisk, frames without proof an
 * exclamation mark. */
static const char *merge_drawn(const char *native, const char *runtime, bool keep_vm, bool complete,
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
	n = merge__run(&(struct merge_stacks) { n_stack.frames, r_stack.frames, n_stack.n,
						r_stack.n, complete },
		       keep_vm, placed, report);
	text[0] = '\0';
	for (i = 0; i < n; i++) {
		uint32_t id = placed[i].frame;
		const char *name =
			id < RUNTIME_ID ? n_stack.names[id] : r_stack.names[id - RUNTIME_ID];

		len += snprintf(text + len, sizeof(text) - len, "%s%s%s%s%s", i ? " " : "", name,
				(const char *[]) { "", "=", "~", "+", "/" }[placed[i].placement],
				placed[i].loop ? "*" : "", placed[i].inferred ? "!" : "");
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
	  "n:a py:x= n:b py:y+!", false },
	{ "an anchor below the frame that would be next", "n:a@100 n:b@200 n:eval@300",
	  "py:x@150 py:y@120 py:z@90 py:w@250", "n:a py:x= py:y= py:z~! py:w=", false },
	{ "two frames with the same CFA", "n:a@100 n:b@100 n:c@200", "py:x@100 py:y@99",
	  "n:a n:b py:x= py:y+!", false },
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

	{ "the code of a frame that was reached by an inferred step", "n:a@100 j:b?@200 n:c?@300",
	  "py:x@100", "n:a py:x=! j:b?! n:c?!", false },
	{ "and its loop", "n:a@100 l:eval?@200 n:c@300", "py:x@150", "n:a py:x=! n:c", false },

	{ "the parts of a loop", "n:a@100 l:core@200 l:exec@300 n:b@400 l:exec@500", "py:x@150",
	  "n:a py:x= n:b l:exec", false },
	{ "the same with them", "n:a@100 l:core@200 l:exec@300 n:b@400 l:exec@500", "py:x@150",
	  "n:a py:x= l:core* l:exec* n:b l:exec", true },
	{ "a part inside the loop", "l:part@100 l:core@200 l:exec@300", "py:x@150",
	  "l:part py:x=", false },
	{ "loops side by side", "l:core@100 l:exec@200 l:core@300 l:exec@400", "py:x@50 py:y@250",
	  "py:x= py:y=", false },
	{ "a part without a CFA", "n:a@100 l:core@200 l:exec n:b@300", "py:x@150", "n:a py:x= n:b",
	  false },
	{ "loops without frames", "l:core@100 l:exec@200 n:main@300", "", "l:core l:exec n:main",
	  false },

	{ "compiled code", "n:a@100 j:code@200 l:exec@300 n:b@400", "py:x@192",
	  "n:a j:code py:x= n:b", false },
	{ "the same with the loop", "n:a@100 j:code@200 l:exec@300 n:b@400", "py:x@192",
	  "n:a j:code py:x= l:exec* n:b", true },
	{ "several in a row", "j:c@100 j:d@200 l:exec@300", "py:x@92 py:y@192 py:z@250",
	  "j:c py:x= j:d py:y= py:z=", false },
	{ "compiled code without frames", "n:a@100 j:code@200 n:b@300", "", "n:a j:code n:b",
	  false },
	{ "whose CFA is not known", "n:a@100 j:code l:exec@300", "py:x@250",
	  "n:a j:code py:x=", false },
	{ "compiled code that starts a region", "n:a@900 j:code@200 n:b@300", "py:x@250",
	  "n:a j:code py:x=", false },
	{ "a native method that it calls", "n:sort@100 j:code@200 l:exec@300", "py:m@100 py:x@192",
	  "n:sort py:m= j:code py:x=", false },
	{ "a native method that it is called from", "j:code@100 n:sort@200 l:exec@300 n:b@400",
	  "py:x@92 py:m@200 py:y@292", "j:code py:x= n:sort py:m= py:y= n:b", false },
	{ "frames without address outside compiled code", "j:code@100 l:exec@200",
	  "py:x@92 py:y py:z@150", "j:code py:x= py:y~ py:z=", false },
	{ "inside it", "n:a@50 j:code@100 l:exec@200", "py:x py:y@92",
	  "n:a py:x~ j:code py:y=", false },

	{ "a native method between two loops",
	  "n:cmp@100 l:exec@200 n:helper@300 n:sort@400 n:call@500 l:exec@600 n:main@700",
	  "py:x@192 py:m@400 py:y@592", "n:cmp py:x= n:helper n:sort py:m= py:y= n:main", false },
	{ "frames apart", "n:a@100 l:exec@200 n:b@300", "py:x@150 py:y@/ py:z@/",
	  "n:a py:x= n:b py:y/ py:z/", false },
	{ "all of them", "n:a@100", "py:y@/ py:z@/", "n:a py:y/ py:z/", false },
	{ "frames without address ahead of those", "n:a@100 l:exec@200 n:b@300",
	  "py:x@150 py:u py:y@/", "n:a py:x= py:u~ n:b py:y/", false },
	{ "and none before", "n:a@100 n:b@200", "py:u py:y@/", "n:a n:b py:u+ py:y/", false },
	{ "two runtimes, one of which calls the other",
	  "n:a@100 l:exec@200 n:call@300 n:eval@400 n:main@500", "rb:x@150 rb:y@150 py:z@350",
	  "n:a rb:x= rb:y= n:call py:z= n:main", false },
	{ "the same with their loops", "n:a@100 l:exec@200 n:call@300 n:eval@400 n:main@500",
	  "rb:x@150 rb:y@150 py:z@350", "n:a rb:x= rb:y= l:exec* n:call py:z= n:eval* n:main",
	  true },
	{ "a frame without address goes with the one before, not with another runtime's",
	  "n:a@100 l:exec@200 n:call@300 n:eval@400", "rb:x@150 rb:y rb:w py:z@350",
	  "n:a rb:x= rb:y~ rb:w~ n:call py:z=", false },
	{ "and with the next one of its own, not with the one before",
	  "n:a@100 l:exec@200 n:call@300 n:eval@400", "rb:x@150 py:y py:z@350",
	  "n:a rb:x= n:call py:y~ py:z=", false },
	{ "alone it goes with any", "n:a@100 l:exec@200 n:call@300 n:eval@400",
	  "rb:x@150 j:y py:z@350", "n:a rb:x= n:call j:y~ py:z=", false },
	{ "its own neighbour is on another stack", "n:a@100 l:exec@200 n:call@300 n:eval@400",
	  "py:z@50 rb:x@150 rb:y rb:w@/", "py:z= rb:x= rb:y~ n:call n:eval rb:w/", false },
	{ "an address behind frames apart", "n:a@100 l:exec@200", "py:y@/ py:x@150",
	  "n:a l:exec py:y/ py:x+", false },
};

/* The native frames reach the thread's outermost one. */
static const struct {
	const char *what, *native, *runtime, *want;
} complete_cases[] = {
	{ "all frames are within native ones", "n:a@100 n:eval@200 n:main@300", "py:x@150 py:y@150",
	  "n:a py:x= py:y= n:main" },
	{ "one that none runs is not shown outside of them", "n:a@100 n:eval@200 n:main@300",
	  "py:x@150 py:y@900", "n:a py:x= py:y+! n:main" },
	{ "nor do several become proven by each other", "n:a@100 n:b@200", "py:x@900 py:y@950",
	  "n:a py:x+! py:y+! n:b" },
	{ "one between two that have their place", "n:a@100 n:eval@200 n:eval@300 n:main@400",
	  "py:x@150 py:y@50 py:z@250", "n:a py:x= py:y~! py:z= n:main" },
	{ "an address further in than the frame before", "n:a@100 n:eval@200 n:b@300",
	  "py:x@150 py:y@50", "n:a py:x= py:y+! n:b" },
	{ "no addresses", "n:a@100 n:b@200", "py:x py:y", "n:a py:x+! py:y+! n:b" },
	{ "no native frames with an address", "k:a n:b", "py:x@50", "k:a n:b py:x+!" },
	{ "what waits on another stack", "n:a@100 n:eval@200", "py:x@150 py:y@/",
	  "n:a py:x= py:y/" },
	{ "a callback on a higher stack",
	  "n:burn@9100 n:eval@9200 n:closure@9300 n:call_on@150 n:ffi@200 n:eval@300 n:start@400",
	  "py:inner@9150 py:callback@9150 py:middle@250 py:outer@250",
	  "n:burn py:inner= py:callback= n:closure n:call_on n:ffi py:middle= py:outer= n:start" },
	{ "C alone on a higher stack", "n:burn@9100 n:call_on@150 n:eval@300 n:start@400",
	  "py:middle@250", "n:burn n:call_on py:middle= n:start" },
	{ "a callback on a lower stack",
	  "n:burn@110 n:eval@120 n:closure@130 n:call_on@9100 n:eval@9200 n:start@9300",
	  "py:inner@115 py:middle@9150",
	  "n:burn py:inner= n:closure n:call_on py:middle= n:start" },
	{ "up, down and back to the first stack",
	  "n:burn@300 n:eval@400 n:call@5100 n:eval@5200 n:call@2100 n:eval@2200 n:call@600 "
	  "n:eval@700 n:start@800",
	  "py:a@350 py:b@5150 py:c@2150 py:d@650",
	  "n:burn py:a= n:call py:b= n:call py:c= n:call py:d= n:start" },
	{ "a frame of the stack in the midst, none of the highest",
	  "n:burn@300 n:call@5100 n:main@5200 n:call@2100 n:eval@2200 n:start@2300", "py:c@2150",
	  "n:burn n:call n:main n:call py:c= n:start" },
	{ "a function that switches stacks runs no frames",
	  "n:a@9100 n:eval@9200 n:call@100 n:start@200", "py:x@9150 py:y@50",
	  "n:a py:x= n:call py:y~ n:start" },
};

/* The native frames end too early, after a change of stacks. */
static void test_cut(void)
{
	is_str(merge_drawn("n:burn@9100 n:eval@9200 n:call_on@150",
			   "py:inner@9150 py:middle@250 py:outer@250", false, false, NULL),
	       "n:burn py:inner= n:call_on py:middle+! py:outer+!",
	       "cut: frames of a missing native frame are outside");
	is_str(merge_drawn("n:burn@9100 n:call_on@150", "py:middle@250", false, false, NULL),
	       "n:burn n:call_on py:middle+!",
	       "cut: the innermost frame does not run them, wherever it begins");
	is_str(merge_drawn("l:exec@9100 n:call_on@150", "py:inner@9050 py:middle@250", false, false,
			   NULL),
	       "py:inner= n:call_on py:middle+!", "cut: but a loop runs its own");
}

static void test_inferred(void)
{
	const struct merge_frame native[] = { { .frame = 1, .address = 100, .inferred = true },
					      { .frame = 2, .address = 200 } };
	const struct merge_frame runtime[] = { { .frame = 11, .address = 150, .inferred = true },
					       { .frame = 12, .address = 150 } };
	struct merge_report report = { 0 };
	struct merge_placed placed[4];

	is_int(merge__run(&(struct merge_stacks) { native, runtime, 2, 2, true }, true, placed,
			  &report),
	       4, "inferred frames");
	ok(placed[0].inferred && placed[1].inferred && !placed[2].inferred && !placed[3].inferred,
	   "they stay inferred, and no others become so");
	is_int(report.unproven, 0, "their places are proven");
}

static void test_complete(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(complete_cases); i++)
		is_str(merge_drawn(complete_cases[i].native, complete_cases[i].runtime, false, true,
				   NULL),
		       complete_cases[i].want, "complete: %s", complete_cases[i].what);
}

static void test_cases(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		is_str(merge_drawn(cases[i].native, cases[i].runtime, cases[i].keep_vm, false,
				   NULL),
		       cases[i].want, "%s", cases[i].what);
}

static void test_report(void)
{
	struct merge_report report = { .by_address = 10 };

	merge_drawn("n:a@100 n:eval@200", "py:x@150 py:y@50 py:z@900 py:w@/", false, false,
		    &report);
	is_int(report.by_address, 11, "report: by address, added to what was there");
	is_int(report.by_order, 1, "report: by order");
	is_int(report.appended, 1, "report: appended");
	is_int(report.apart, 1, "report: apart");
	is_int(report.loops, 1, "report: loops");
	is_int(report.unproven, 1, "report: unproven");
}

/* State of a fixed sequence (linear congruential generator of Numerical Recipes). */
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
		frames[i].kind = runtime && !random_below(8);
		frames[i].kernel = !runtime && i < 3 && random_below(2);
		frames[i].loop = !runtime && !random_below(4);
		frames[i].jit =
			!runtime && !frames[i].kernel && !frames[i].loop && !random_below(8);
	}
	while (runtime && i-- > 0 && !random_below(8))
		frames[i].address = MERGE_APART;
	return n;
}

/* Checks the properties of any merged stack that includes the loops. Returns the violated one, or
 * NULL. */
static const char *check_placed(const struct merge_placed *placed, size_t n,
				const struct merge_frame *native, size_t n_native, size_t n_runtime,
				const struct merge_report *report)
{
	int64_t last_native = -1, last_runtime = RUNTIME_ID - 1;
	uint64_t by[5] = { 0 }, loops = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		int64_t id = placed[i].frame;
		bool is_native = id < RUNTIME_ID;

		if (is_native != (placed[i].placement == MERGE_PLACED_NATIVE))
			return "a frame is said to be of the other stack";
		if (id != (is_native ? last_native : last_runtime) + 1)
			return "the order changed, or a frame is missing";
		if (placed[i].loop && (!is_native || native[id].jit))
			return "what is no loop";
		*(is_native ? &last_native : &last_runtime) = id;
		by[placed[i].placement]++;
		loops += placed[i].loop && !native[id].loop;
	}
	if (last_native != (int64_t)n_native - 1 ||
	    last_runtime != (int64_t)(RUNTIME_ID + n_runtime - 1))
		return "the outermost frames are missing";
	if (loops > report->loops)
		return "the report has fewer loops";
	if (by[MERGE_PLACED_ADDRESS] != report->by_address ||
	    by[MERGE_PLACED_ORDER] != report->by_order ||
	    by[MERGE_PLACED_APPENDED] != report->appended ||
	    by[MERGE_PLACED_APART] != report->apart)
		return "the report's sums differ";
	return NULL;
}

/* Checks that a merged stack without its loops is otherwise equal. Returns the difference, or NULL.
 */
static const char *check_hidden(const struct merge_placed *all, size_t n_all,
				const struct merge_placed *placed, size_t n)
{
	size_t at = 0, i;

	for (i = 0; i < n_all; i++) {
		if (all[i].loop)
			continue;
		if (at == n || placed[at].frame != all[i].frame ||
		    placed[at].placement != all[i].placement || placed[at].loop)
			return "hidden loops change more than that";
		at++;
	}
	return at == n ? NULL : "there are more frames without loops than with them";
}

static void test_properties(void)
{
	struct merge_frame native[FRAMES_MAX], runtime[FRAMES_MAX];
	struct merge_report sums = { 0 };
	const char *wrong = NULL;
	int round;

	for (round = 0; !wrong && round < 20000; round++) {
		size_t n_native = random_stack(native, 0, false);
		size_t n_runtime = random_stack(runtime, RUNTIME_ID, true);
		struct merge_placed all[2 * FRAMES_MAX], placed[2 * FRAMES_MAX];
		struct merge_report report = { 0 };
		size_t n_all, n;
		struct merge_stacks stacks = { native, runtime, n_native, n_runtime, round % 2 };
		n_all = merge__run(&stacks, true, all, &report);
		n = merge__run(&stacks, false, placed, &sums);
		wrong = check_placed(all, n_all, native, n_native, n_runtime, &report);
		if (!wrong)
			wrong = check_hidden(all, n_all, placed, n);
	}
	is_str(wrong, NULL, "20,000 pairs of stacks (the last was no. %d)", round);
	ok(sums.by_address > 10000 && sums.by_order > 10000 && sums.appended > 10000 &&
		   sums.apart > 1000,
	   "they had every placement often");
}

int main(void)
{
	test_cases();
	test_complete();
	test_cut();
	test_inferred();
	test_report();
	test_properties();
	return tap__done();
}
