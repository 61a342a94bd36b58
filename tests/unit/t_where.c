// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <string.h>

#include "core/push/url.h"
#include "core/push/where.h"
#include "tests/tap.h"

#define NOW 1800000000 /* 2027-01-15T08:00:00Z */

static void is_sql(const char *text, const char *series, const char *samples)
{
	struct where where;
	struct err err = {};

	ok(!where__parse(text, NOW, &where, &err), "%s: %s", text, err.text);
	is_str(where.series, series, "%s: of series", text);
	is_str(where.samples, samples, "%s: of samples", text);
	where__done(&where);
}

static void is_wrong(const char *text, const char *why)
{
	struct where where;
	struct err err = {};

	ok(where__parse(text, NOW, &where, &err) == -EINVAL && strstr(err.text, why), "%s: %s",
	   text, err.text);
	where__done(&where);
}

static void test_sql(void)
{
	is_sql("", "1", "1");
	is_sql("service=web", "service = 'web'", "1");
	is_sql("service = web and host != 'a b'", "(service = 'web' AND host != 'a b')",
	       "(1 AND 1)");
	is_sql("NOT thread ~ x", "(NOT match(thread, 'x'))", "1");
	is_sql("time >= now-1h and pid = 7", "(1 AND pid = 7)",
	       "(time >= toDateTime(1799996400) AND 1)");
	is_sql("time < 2027-01-15 or tid != 7", "1",
	       "(time < toDateTime(1799971200) OR "
	       "series GLOBAL IN (SELECT series FROM braid_series WHERE tid != 7))");
	is_sql("event = a or event = b and event = c",
	       "(event = 'a' OR (event = 'b' AND event = 'c'))", "1");
	is_sql("process = \"it's\\\"", "process = 'it\\x27s\\x5c'", "1");
	is_sql("host = 'a''b\"`\t\xff'", "host = 'a\\x27b\\x22\\x60\\x09\\xff'", "1");
}

static void test_times(void)
{
	struct where where;
	struct err err;

	ok(!where__parse("time >= 100 and host = a and time < 200 and time <= 300", NOW, &where,
			 &err) &&
		   where.from_s == 100 && where.to_s == 200,
	   "the bounds of all parts");
	where__done(&where);
	ok(!where__parse("time >= 100 or host = a", NOW, &where, &err) && !where.from_s &&
		   where.to_s == INT64_MAX,
	   "none where it may be another time");
	where__done(&where);
}

static void test_wrong(void)
{
	is_wrong("host", "=, !=, ~ or !~ is missing at 'the end'");
	is_wrong("hosts = a", "service, host");
	is_wrong("host = 'a", "a quote is missing");
	is_wrong("(host = a", "a ) is missing");
	is_wrong("host = a or", "is missing at 'the end'");
	is_wrong("pid = -1", "a number is missing");
	is_wrong("pid = 4294967296", "a number is missing");
	is_wrong("time = now+1h", "a time");
	is_wrong("time = now-1y", "a time");
	is_wrong("time = 2026-13-01", "a time");
	is_wrong("host = a; DROP TABLE braid_samples", "'and' or 'or' is missing");
}

static void is_url(const char *text, const char *server, const char *path)
{
	struct url url;
	struct err err = {};

	ok(!url__parse(text, &url, &err), "%s: %s", text, err.text);
	is_str(url.server, server, "%s: server", text);
	is_str(url.path, path, "%s: path", text);
}

static void test_urls(void)
{
	static const char *const wrong[] = {
		"",
		"host",
		"http://host",
		"otlp:/host",
		"otlp://",
		"otlp://h:",
		"otlp://h:65536",
		"otlp://h:1:2",
		"otlp://[::1",
		"otlp://[]",
		"otlp://h/a?",
		"otlp://h/#",
		"otlp://h/\r\nA: b",
		"otlp://h\r\n",
		"otlp://h/é",
	};
	struct url url;
	struct err err;

	is_url("clickhouse://db.example/braid", "http://db.example:8123", "/braid");
	is_url("clickhouse+https://db:1/braid/", "https://db:1", "/braid");
	is_url("otlp+https://[2001:db8::1]", "https://[2001:db8::1]:4318", "");
	is_url("pyroscope://[::1]:80/a/b", "http://[::1]:80", "/a/b");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		ok(url__parse(wrong[i], &url, &err) == -EINVAL, "refused: %s", wrong[i]);
	ok(url__parse("otlp://me:secret@host", &url, &err) == -EINVAL &&
		   !strstr(err.text, "secret"),
	   "a password is refused, and not shown");
}

int main(void)
{
	test_sql();
	test_times();
	test_wrong();
	test_urls();
	return tap__done();
}
