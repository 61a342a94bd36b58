// SPDX-License-Identifier: GPL-2.0-or-later
/* Profiles of events other than CPU time: every writer names the event and its unit. */
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/out/out_common.h"
#include "core/out/output.h"
#include "tests/tap.h"

static const struct output_opts plain = {};

/* Makes a profile of f, which calls g, with the values of three samples. */
static struct profile *make(const char *event, const char *unit, uint64_t value)
{
	struct profile *profile = profile__new();
	uint32_t frames[2];

	profile__frame(profile, KIND_NATIVE, "f", NULL, 0, &frames[0]);
	profile__frame(profile, KIND_NATIVE, "g", NULL, 0, &frames[1]);
	profile__measures(profile, event, unit);
	profile__add(profile, frames, 1, value);
	profile__add(profile, frames, 2, 3 * value);
	profile->samples = 3;
	profile->duration_s = 2;
	return profile;
}

static void check(int (*write)(const struct profile *, const struct output_opts *, FILE *),
		  const struct profile *profile, const char *want, const char *what)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ok(!write(profile, &plain, out), "%s is written", what);
	fclose(out);
	is_str(text, want, "%s", what);
	free(text);
}

static void check_sizes(void)
{
	struct profile *profile = make("faults", "bytes", 1536);

	check(output__table, profile,
	      "event faults: 6.00 KiB in 3 samples, 2.0 s\n"
	      "\n"
	      " Self%       Self Total%      Total  Kind     Function\n"
	      " 75.0%   4.50 KiB  75.0%   4.50 KiB  native   g\n"
	      " 25.0%   1.50 KiB 100.0%   6.00 KiB  native   f\n",
	      "table of sizes");
	check(output__tree, profile,
	      "event faults: 6.00 KiB in 3 samples, 2.0 s\n"
	      "\n"
	      " Total%      Total       Self  Function\n"
	      "100.0%   6.00 KiB   1.50 KiB  f\n"
	      " 75.0%   4.50 KiB   4.50 KiB    g\n",
	      "tree of sizes");
	check(output__folded, profile, "f 1536\nf;g 4608\n", "folded: bytes");
	profile__free(profile);
}

static void check_times(void)
{
	struct profile *profile = make("offcpu", "ns", 1000000);

	check(output__table, profile,
	      "event offcpu: 4.00 ms in 3 samples, 2.0 s\n"
	      "\n"
	      " Self%       Self Total%      Total  Kind     Function\n"
	      " 75.0%    3.00 ms  75.0%    3.00 ms  native   g\n"
	      " 25.0%    1.00 ms 100.0%    4.00 ms  native   f\n",
	      "table of times, without calls");
	check(output__folded, profile, "f 1000000\nf;g 3000000\n", "folded: nanoseconds");
	profile__free(profile);
}

/* Plain numbers have their event and unit in the heading. */
static void check_numbers(void)
{
	static const struct {
		const char *event, *unit, *heading;
	} cases[] = {
		{ "faults", "count", "event faults: 4000 in 3 samples, 2.0 s\n" },
		{ "race", "furlongs", "event race: 4000 furlongs in 3 samples, 2.0 s\n" },
		{ "clock", "samples", "event clock: 4000 samples, 2.0 s\n" },
		{ "cpu", "samples", "4000 samples, 2.0 s\n" },
		{ "\x1b[2J\n", "\x1b[2J\n", "event ?[2J?: 4000 ?[2J? in 3 samples, 2.0 s\n" },
	};
	char want[400];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct profile *profile = make(cases[i].event, cases[i].unit, 1000);

		snprintf(want, sizeof(want),
			 "%s\n"
			 " Self%%       Self Total%%      Total  Kind     Function\n"
			 " 75.0%%       3000  75.0%%       3000  native   g\n"
			 " 25.0%%       1000 100.0%%       4000  native   f\n",
			 cases[i].heading);
		check(output__table, profile, want, cases[i].heading);
		profile__free(profile);
	}
}

/* Sizes below and above the points where rounding adds a digit. */
static void check_rounding(void)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{ 0, "0 B" },
		{ 1023, "1023 B" },
		{ 1024, "1.00 KiB" },
		{ 10234, "9.99 KiB" },
		{ 10236, "10.0 KiB" },
		{ 1023 * 1024, "1023 KiB" },
		{ 1024 * 1024 - 1, "1.00 MiB" },
		{ 1ULL << 30, "1.00 GiB" },
		{ 1ULL << 50, "1024 TiB" },
		{ UINT64_MAX, "16777216 TiB" },
	};
	struct profile *profile = make("faults", "bytes", 1);
	char text[32];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		output__weight(profile, cases[i].bytes, text, sizeof(text));
		is_str(text, cases[i].text, "%llu B", (unsigned long long)cases[i].bytes);
	}
	profile__free(profile);
}

/* The picture in an SVG has the texts of the page, which tests/unit/flame.t reads. */
static void check_picture(void)
{
	struct profile *profile = make("<faults>", "bytes", 1536);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	output__flame_svg(profile, &plain, out);
	fclose(out);
	ok(strstr(text, "<title>&lt;faults&gt;: Flame graph</title>"), "title of a picture");
	ok(strstr(text, ">event &lt;faults&gt;: 6.00 KiB in 3 samples, 2.0 s</text>"),
	   "its heading");
	ok(strstr(text, "\"unit\":\"bytes\""), "the unit for its script");
	free(text);
	profile__free(profile);
}

int main(void)
{
	check_sizes();
	check_times();
	check_numbers();
	check_rounding();
	check_picture();
	return tap__done();
}
