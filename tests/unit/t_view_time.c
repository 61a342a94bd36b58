// SPDX-License-Identifier: GPL-2.0-or-later
/* Times in the forms that users enter. */
#include "core/cli/view_time.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "tests/tap.h"

#define NOW 1795503000 /* 2026-11-24T07:30:00+01:00, as `date -d` has it: 06:50 UTC */

static void check_good(void)
{
	static const struct {
		const char *text;
		enum profile_time_kind kind;
		int64_t ns;
	} cases[] = {
		{ "-10m", TIME_BEFORE_END, 600LL * 1000000000 },
		{ "-0", TIME_BEFORE_END, 0 },
		{ "-1.5h", TIME_BEFORE_END, 5400LL * 1000000000 },
		{ "10", TIME_AFTER_BEGIN, 10LL * 1000000000 },
		{ "+2d", TIME_AFTER_BEGIN, 172800LL * 1000000000 },
		{ "@1795503000.25", TIME_ABSOLUTE, 1795503000250000000LL },
		{ "2026-11-24T06:50:00Z", TIME_ABSOLUTE, 1795503000000000000LL },
		{ "2026-11-24 07:50+01:00", TIME_ABSOLUTE, 1795503000000000000LL },
		{ "2026-11-24T01:50:00.5-0500", TIME_ABSOLUTE, 1795503000500000000LL },
		/* local: three hours east */
		{ "2026-11-24T09:50", TIME_ABSOLUTE, 1795503000000000000LL },
		{ "09:50:01", TIME_ABSOLUTE, 1795503001000000000LL },
		{ "2026-11-24", TIME_ABSOLUTE, 1795467600000000000LL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct profile_time got = {};

		is_int(view_time__parse(cases[i].text, NOW, &got), 0, "%s is a time",
		       cases[i].text);
		is_int(got.kind, cases[i].kind, "%s: its kind", cases[i].text);
		is_int(got.ns, cases[i].ns, "%s: ns", cases[i].text);
	}
}

static void check_bad(void)
{
	static const char *const texts[] = { "",
					     "-",
					     "m",
					     "-10x",
					     "10 m",
					     "1e3",
					     "0x10",
					     "@",
					     "@-1",
					     "nan",
					     "-inf",
					     "25:00",
					     "2026-13-01",
					     "2026-02-30",
					     "2026-11-31T10:00",
					     "06:50Q",
					     "--10m",
					     "-10mm",
					     "1.2.3.4",
					     "06:50+",
					     "06:50+99:00",
					     "2026-11-24T",
					     "99999999999999",
					     "+-5" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct profile_time got = { TIME_ABSOLUTE, 42 };

		ok(view_time__parse(texts[i], NOW, &got) && got.ns == 42, "'%s' is none", texts[i]);
	}
}

int main(void)
{
	setenv("TZ", "EAT-3", 1);
	tzset();
	check_good();
	check_bad();
	return tap__done();
}
