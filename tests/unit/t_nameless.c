// SPDX-License-Identifier: GPL-2.0-or-later
/* The note on native frames without a symbol. */
#include "core/profile/nameless.h"

#include <string.h>

#include "core/out/out_common.h"
#include "tests/tap.h"

static struct profile *profile;

static uint32_t code(int kind, const char *name, const char *library)
{
	uint32_t frame = 0;

	if (profile__code(profile, kind, name, NULL, 0, library, &frame))
		printf("Bail out! out of memory\n");
	return frame;
}

static struct recorded recorded_now;
static struct recorded *recorded = &recorded_now;

static const char *note(void)
{
	return nameless__find(profile, recorded) ? "error" : profile->nameless;
}

static void begin(void)
{
	profile__free(profile);
	profile = profile__new();
}

/* Records 20 samples, of which @nameless end in a function of libzebra that has no symbol. */
static void fill(unsigned nameless)
{
	uint32_t zebra, named;

	begin();
	zebra = code(KIND_NATIVE, "[libzebra.so.1+0x10]", "libzebra");
	named = code(KIND_NATIVE, "graze", "libzebra");
	profile__add(profile, &zebra, 1, nameless);
	profile__add(profile, &named, 1, 20 - nameless);
}

/* A debug server finds a file by its build ID. */
static void test_build_id(void)
{
	ok(!recorded__init(recorded), "a recording");
	recorded__add_image(recorded, 1, "/srv/libzebra.so.1", "");
	fill(20);
	ok(note() && strstr(note(), "no build ID") && !strstr(note(), "DEBUGINFOD_URLS"),
	   "a file without a build ID: %s", note());
	recorded__add_image(recorded, 2, "/usr/lib/libzebra.so.2", "abcd");
	fill(20);
	ok(note() && strstr(note(), "set DEBUGINFOD_URLS"), "another one of the name has one");
}

int main(void)
{
	char notes[OUTPUT_NOTES_MAX][OUTPUT_NOTE_BYTES];
	uint32_t stack[5];

	begin();
	is_str(note(), NULL, "nothing was recorded");
	fill(0);
	is_str(note(), NULL, "all have symbols");
	begin();
	stack[0] = code(KIND_NATIVE, "main", "app");
	stack[1] = code(KIND_NATIVE, "[libzebra.so.1+0x10]", "libzebra");
	stack[2] = code(KIND_NATIVE, "[JIT]", NULL);
	stack[3] = code(KIND_INLINED, "inlined", "app");
	stack[4] = code(KIND_KERNEL, "[kernel+0x1]", "kernel");
	profile__add(profile, stack, 5, 3);
	profile__add(profile, stack, 1, 1);
	is_str(note(),
	       "30 % of native frames have no symbol, most of them in libzebra: install the "
	       "-dbgsym or -dbg package, or set DEBUGINFOD_URLS, before recording",
	       "3 of 4 + 3 + 3, in samples; kernel, inlined and compiled code do not count");
	recorded->symbols_queried = true;
	is_str(note(),
	       "30 % of native frames have no symbol, most of them in libzebra: debug servers have "
	       "no symbols of it. Install debug files below /usr/lib/debug, such as those of a "
	       "-dbgsym package",
	       "they were asked in vain");
	recorded->symbols_queried = false;
	is_int(output__notes(profile, notes), 1, "one note");
	is_str(notes[0], profile->nameless, "reports and pages have it");
	fill(1);
	ok(note() && !strncmp(note(), "5 %", 3), "as few as one in twenty");
	begin();
	stack[0] = code(KIND_NATIVE, "[zebra+0x10]", "\033[31mz\xff");
	profile__add(profile, stack, 1, 1);
	is_str(note(),
	       "100 % of native frames have no symbol, most of them in ?[31mz?: install the "
	       "-dbgsym or -dbg package, or set DEBUGINFOD_URLS, before recording",
	       "a hostile file name");
	test_build_id();
	recorded__done(recorded);
	profile__free(profile);
	return tap__done();
}
