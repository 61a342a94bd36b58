// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/tap.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int tests_run, tests_failed;

static bool report(bool cond, const char *file, int line, const char *fmt, va_list args)
{
	printf("%sok %d - ", cond ? "" : "not ", ++tests_run);
	vprintf(fmt, args);
	putchar('\n');
	if (!cond) {
		tests_failed++;
		fprintf(stderr, "# failed at %s:%d\n", file, line); /* prove shows it */
	}
	fflush(stdout);
	return cond;
}

bool tap__ok(bool cond, const char *file, int line, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	report(cond, file, line, fmt, args);
	va_end(args);
	return cond;
}

bool tap__is_int(int64_t got, int64_t want, const char *file, int line, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	report(got == want, file, line, fmt, args);
	va_end(args);
	if (got != want)
		fprintf(stderr, "# got %" PRId64 ", want %" PRId64 "\n", got, want);
	return got == want;
}

bool tap__is_str(const char *got, const char *want, const char *file, int line, const char *fmt,
		 ...)
{
	bool same = got && want ? !strcmp(got, want) : got == want;
	va_list args;

	va_start(args, fmt);
	report(same, file, line, fmt, args);
	va_end(args);
	if (!same)
		fprintf(stderr, "# got  '%s'\n# want '%s'\n", got ? got : "(null)",
			want ? want : "(null)");
	return same;
}

void tap__skip(const char *why, const char *fmt, ...)
{
	va_list args;

	printf("ok %d - ", ++tests_run);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf(" # SKIP %s\n", why);
}

void tap__diag(const char *fmt, ...)
{
	va_list args;

	printf("# ");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
}

int tap__done(void)
{
	printf("1..%d\n", tests_run);
	return tests_failed ? 1 : 0;
}
