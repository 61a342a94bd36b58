// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/store/load_extent.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/util.h"
#include "core/store/load_file.h"
#include "core/store/recording.h"

/* maximum time and duration, about seventy years; larger values are damage */
#define NS_MAX (1LL << 61)

struct titles {
	int64_t start_ns, offset_ns, started_at_s;
	double duration_s, frequency_hz;
	bool has_start, has_offset, has_started_at;
};

static bool parse_ns(const char *text, int64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoll(text, &end, 10);
	return !errno && *text && !*end && *ret > -NS_MAX && *ret < NS_MAX;
}

static double parse_number(const char *text)
{
	double number = strtod(text, NULL);

	return isfinite(number) && number > 0 && number < NS_MAX / 1e9 ? number : 0;
}

static void take(struct titles *titles, const char *key, const char *value)
{
	struct tm tm = {};

	if (!strcmp(key, META_START_NS)) {
		titles->has_start = parse_ns(value, &titles->start_ns) && titles->start_ns >= 0;
	} else if (!strcmp(key, META_CLOCK_OFFSET_NS)) {
		titles->has_offset = parse_ns(value, &titles->offset_ns);
	} else if (!strcmp(key, META_DURATION_S)) {
		titles->duration_s = parse_number(value);
	} else if (!strcmp(key, "frequency_hz")) {
		titles->frequency_hz = parse_number(value);
	} else if (!strcmp(key, "started_at") && strptime(value, "%Y-%m-%dT%H:%M:%SZ", &tm)) {
		titles->started_at_s = timegm(&tm);
		titles->has_started_at = true;
	}
}

static int read_titles(sqlite3 *db, struct titles *ret)
{
	sqlite3_stmt *stmt = NULL;
	int code = sqlite3_prepare_v2(db, "SELECT key, value FROM main.meta NOT INDEXED", -1, &stmt,
				      NULL);

	while (!code && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
		const char *key = (const char *)sqlite3_column_text(stmt, 0);
		const char *value = (const char *)sqlite3_column_text(stmt, 1);

		code = 0;
		if (key && value)
			take(ret, key, value);
	}
	sqlite3_finalize(stmt);
	return code == SQLITE_DONE ? 0 : code;
}

/* Sets the start to the time of the first sample, for a recording without a start. */
static int find_start(sqlite3 *db, struct titles *titles)
{
	sqlite3_stmt *stmt = NULL;
	int code = sqlite3_prepare_v2(db, "SELECT min(time_ns) FROM main.sample NOT INDEXED", -1,
				      &stmt, NULL);

	if (!code)
		code = sqlite3_step(stmt);
	if (code == SQLITE_ROW) {
		titles->start_ns = max_of(sqlite3_column_int64(stmt, 0), 0);
		code = 0;
	}
	sqlite3_finalize(stmt);
	return code;
}

int load_extent__of(const char *path, struct load_extent *ret, struct err *err)
{
	struct titles titles = {};
	sqlite3 *db = NULL;
	uint32_t version;
	int code = load_file__open(path, &db, &version, err), sqlite = 0;

	if (code)
		return code;
	sqlite = read_titles(db, &titles);
	if (!sqlite && !titles.has_start)
		sqlite = find_start(db, &titles);
	sqlite3_close(db);
	if (sqlite)
		return load_file__failed(path, sqlite, err);
	titles.start_ns = min_of(titles.start_ns, NS_MAX);
	if (!titles.has_offset && titles.has_started_at &&
	    titles.started_at_s < NS_MAX / (int64_t)NSEC_PER_SEC && titles.started_at_s >= 0)
		titles.offset_ns = titles.started_at_s * (int64_t)NSEC_PER_SEC - titles.start_ns;
	*ret = (struct load_extent) { .begin_ns = titles.start_ns + titles.offset_ns,
				      .offset_ns = titles.offset_ns,
				      .frequency_hz = titles.frequency_hz };
	ret->end_ns = ret->begin_ns + (int64_t)(titles.duration_s * 1e9);
	return 0;
}
