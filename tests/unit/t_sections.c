// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/sections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/merge.h"
#include "tests/tap.h"

#define FRAMES_MAX 32

/* Stacks as text, innermost first. "strcmp@100 eval@200" are native frames with their CFA. "f@150"
 * is a runtime's frame with its stack address, which is unknown without '@'; "@/": on another
 * stack. Sections are separated by "|". */
struct drawing {
	char text[512];
	struct native_frame natives[FRAMES_MAX];
	struct runtime_pair pairs[FRAMES_MAX];
	const char *names[FRAMES_MAX];
	struct section sections[SECTIONS_MAX];
	size_t n_natives, n_pairs, n_sections;
};

static void draw_natives(struct drawing *drawing, const char *drawn)
{
	for (const char *at = strchr(drawn, '@'); at; at = strchr(at + 1, '@'))
		drawing->natives[drawing->n_natives++] =
			(struct native_frame) { 1, strtoul(at + 1, NULL, 10) };
}

static void draw_sections(struct drawing *drawing, const char *drawn)
{
	struct section *section = drawing->sections;
	char *rest, *token;

	*section = (struct section) { .pairs = drawing->pairs };
	snprintf(drawing->text, sizeof(drawing->text), "%s", drawn);
	for (token = strtok_r(drawing->text, " ", &rest); token;
	     token = strtok_r(NULL, " ", &rest)) {
		struct runtime_pair *pair = &drawing->pairs[drawing->n_pairs];
		char *at = strchr(token, '@');

		if (*token == '|') {
			section[1] = (struct section) { pair, 0, section->runtime + 1, 0 };
			section++;
			continue;
		}
		*pair = (struct runtime_pair) { .key = drawing->n_pairs };
		if (at) {
			pair->address = at[1] == '/' ? RUNTIME_APART : strtoul(at + 1, NULL, 10);
			*at = '\0';
		}
		drawing->names[drawing->n_pairs++] = token;
		section->n++;
	}
	drawing->n_sections = section + 1 - drawing->sections;
}

static struct sections *sections;
static struct runtime_stack stack;

static const struct {
	const char *what, *natives, *sections, *want;
	size_t unknown;
} cases[] = {
	{ "one section is what it was", "a@100 eval@200", "f@150 g h@50", "f g h", 0 },
	{ "a runtime inside another: C of it, a loop of the other",
	  "hit@100 vm@200 call@300 eval@400 main@500", "py:f@350 py:g@350 | rb:x@150 rb:y@150",
	  "rb:x rb:y py:f py:g", 0 },
	{ "the other way round", "hit@100 eval@200 call@300 vm@400", "py:f@150 | rb:x@350",
	  "py:f rb:x", 0 },
	{ "in turn, and back", "hit@100 eval@200 call@300 vm@400 call@500 eval@600",
	  "py:f@150 py:g@550 py:h@550 | rb:x@350", "py:f rb:x py:g py:h", 0 },
	{ "three of them", "hit@100 vm@200 c@300 eval@400 c@500 java@600 java@700 main@800",
	  "py:f@350 | rb:x@150 | j:a@592 j:b@692", "rb:x py:f j:a j:b", 0 },
	{ "a frame without an address goes with the next one of its own runtime",
	  "hit@100 vm@200 call@300 eval@400", "py:f@350 | rb:m rb:x@150", "rb:m rb:x py:f", 0 },
	{ "or with the one before, not with those of others around it",
	  "hit@100 vm@200 call@300 eval@400", "py:f py:g@350 | rb:x@150 rb:y rb:z",
	  "rb:x rb:y rb:z py:f py:g", 0 },
	{ "between two of its own", "hit@100 vm@200 c@300 eval@400 c@500 vm@600",
	  "rb:x@150 rb:y rb:z@550 | py:f@350", "rb:x py:f rb:y rb:z", 0 },
	{ "a section without addresses is outside, and counted", "hit@100 eval@200 main@300",
	  "rb:x rb:y | py:f@150", "py:f rb:x rb:y", 2 },
	{ "so are two, in their order", "hit@100 main@300", "rb:x rb:y | py:f", "rb:x rb:y py:f",
	  3 },
	{ "the native stack ends too early: addresses are left", "hit@100",
	  "py:f@350 py:g@950 | rb:x@50 rb:y@550", "rb:x py:f rb:y py:g", 0 },
	{ "no native stack", "", "py:f@350 py:g@550 | rb:x@150 rb:y@450", "rb:x py:f rb:y py:g",
	  0 },
	{ "a signal handler on a higher stack: its addresses tell nothing of the rest",
	  "hit@8000 eval@9000 trampoline@100 vm@200 main@300", "py:f@8500 | rb:x@150", "py:f rb:x",
	  0 },
	{ "one on a lower stack", "hit@50 vm@80 trampoline@1000 eval@1100 main@1200",
	  "py:f@1050 | rb:x@60", "rb:x py:f", 0 },
	{ "what waits on another stack is around what runs here, inside who called that",
	  "hit@100 vm@200 fiber@300", "py:f@9000 | rb:x@150 rb:y@/ rb:z@/", "rb:x rb:y rb:z py:f",
	  0 },
	{ "and those that run here are inside", "hit@100 eval@200 c@300 vm@400 fiber@500",
	  "rb:x@350 rb:y@/ | py:f@150", "py:f rb:x rb:y", 0 },
	{ "at one address: in the order of their slots", "hit@100 eval@200", "py:f@150 | rb:x@150",
	  "py:f rb:x", 0 },
	{ "an address below the one before is of a stack that is missing",
	  "hit@100 eval@200 c@300 vm@400", "py:f@150 py:g@50 | rb:x@350", "py:f rb:x py:g", 0 },
};

static void test_cases(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct drawing drawing = {};
		char text[512] = "";
		size_t unknown;

		draw_natives(&drawing, cases[i].natives);
		draw_sections(&drawing, cases[i].sections);
		unknown = sections__merge(sections, drawing.sections, drawing.n_sections,
					  &(struct section_natives) { drawing.natives,
								      drawing.n_natives, false },
					  &stack);
		for (size_t j = 0; j < stack.n; j++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
				 j ? " " : "", drawing.names[stack.pairs[j].key]);
		is_str(text, cases[i].want, "%s", cases[i].what);
		is_int(unknown, cases[i].unknown, "%s: by order", cases[i].what);
	}
}

/* Returns a number of a fixed sequence (linear congruential generator of Numerical Recipes). */
static uint32_t random_below(uint32_t n)
{
	static uint32_t state = 1;

	state = state * 1664525 + 1013904223;
	return (state >> 8) % n;
}

static uint64_t random_address(void)
{
	uint32_t what = random_below(20);

	return what == 0 ? 0 : what == 1 ? RUNTIME_APART : 1 + random_below(2000);
}

/* Returns true if each frame is in the result once, with its runtime, in its section's order. */
static bool is_whole(const struct section *list, size_t n)
{
	size_t next[SECTIONS_MAX] = { 0 }, all = 0;

	for (size_t i = 0; i < stack.n; i++) {
		uint8_t of = stack.runtimes[i];

		if (of >= n || next[of] == list[of].n ||
		    stack.pairs[i].key != list[of].pairs[next[of]].key ||
		    stack.pairs[i].address != list[of].pairs[next[of]].address)
			return false;
		next[of]++;
	}
	for (size_t i = 0; i < n; i++)
		all += list[i].n;
	return stack.n == all;
}

static void test_any(void)
{
	static struct runtime_pair pairs[SECTIONS_MAX][FRAMES_MAX];
	struct native_frame natives[FRAMES_MAX];
	struct section list[SECTIONS_MAX];
	uint64_t address;
	int bad = 0;

	for (int round = 0; round < 20000; round++) {
		size_t n = 1 + random_below(SECTIONS_MAX), n_natives = random_below(FRAMES_MAX);

		for (size_t i = 0; i < n_natives; i++)
			natives[i] = (struct native_frame) { 1, random_address() };
		for (size_t i = 0; i < n; i++) {
			list[i] = (struct section) { pairs[i], random_below(FRAMES_MAX), i, 0 };
			address = random_below(500);
			for (size_t j = 0; j < list[i].n; j++) {
				address += random_below(60);
				pairs[i][j] = (struct runtime_pair) {
					1000 * i + j, random_below(4) ? address : random_address()
				};
			}
		}
		sections__merge(sections, list, n,
				&(struct section_natives) { natives, n_natives, round % 2 },
				&stack);
		bad += !is_whole(list, n);
	}
	is_int(bad, 0, "20,000 samples: no frame is lost, added or out of order");
}

int main(void)
{
	sections = sections__new();
	test_cases();
	test_any();
	sections__free(sections);
	sections__free(NULL);
	return tap__done();
}
