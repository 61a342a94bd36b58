// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/view_time.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

#define SECONDS_MAX 9000000000LL /* limit of times and durations: the year 2255 */

/* Parses ".25", or nothing, in ns. Returns the rest of the text. */
static const char *parse_fraction(const char *text, int64_t *ret_ns)
{
	int64_t worth = NSEC_PER_SEC;

	*ret_ns = 0;
	if (*text != '.' || !isdigit((unsigned char)text[1]))
		return text;
	for (text++; isdigit((unsigned char)*text); text++) {
		worth /= 10;
		*ret_ns += worth * (*text - '0');
	}
	return text;
}

/* Parses "90" or "1.5h", exact to 1 ns. */
static int parse_duration(const char *text, int64_t *ret)
{
	static const struct {
		const char *unit;
		int64_t seconds;
	} units[] = { { "", 1 }, { "s", 1 }, { "m", 60 }, { "h", 3600 }, { "d", 86400 } };
	int64_t seconds = 0, fraction_ns;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	for (; isdigit((unsigned char)*text); text++) {
		seconds = 10 * seconds + (*text - '0');
		if (seconds > SECONDS_MAX)
			return -EINVAL;
	}
	text = parse_fraction(text, &fraction_ns);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(text, units[i].unit) != 0)
			continue;
		if (seconds > SECONDS_MAX / units[i].seconds)
			return -EINVAL;
		*ret = (seconds * (int64_t)NSEC_PER_SEC + fraction_ns) * units[i].seconds;
		return 0;
	}
	return -EINVAL;
}

/* Parses "", "Z" or "+01:00". *@ret_given is true if there is a zone; *@ret_east_s is its offset
 * east of UTC in s. */
static bool parse_zone(const char *text, bool *ret_given, int *ret_east_s)
{
	unsigned hours = 0, minutes = 0;
	int n = 0;

	*ret_given = *text;
	*ret_east_s = 0;
	if (!*text || !strcmp(text, "Z"))
		return true;
	if ((*text != '+' && *text != '-') ||
	    (sscanf(text + 1, "%2u:%2u%n", &hours, &minutes, &n) != 2 &&
	     sscanf(text + 1, "%2u%2u%n", &hours, &minutes, &n) != 2) ||
	    text[1 + n] || hours > 14 || minutes > 59)
		return false;
	*ret_east_s = (int)(hours * 3600 + minutes * 60) * (*text == '-' ? -1 : 1);
	return true;
}

/* Returns false for dates such as 31 April, which strptime() accepts. */
static bool is_date(const struct tm *tm)
{
	struct tm same = *tm;

	timegm(&same);
	return same.tm_mday == tm->tm_mday;
}

/* As strptime(), but leaves *@tm unchanged on failure. */
static const char *parse_part(const char *text, const char *format, struct tm *tm)
{
	struct tm parsed = *tm;
	const char *end = strptime(text, format, &parsed);

	if (end)
		*tm = parsed;
	return end;
}

/* Parses the time of day, after a date or alone. Returns the rest of the text; NULL: it is not a
 * time. */
static const char *parse_clock(const char *text, struct tm *tm)
{
	const char *end = parse_part(text, "%H:%M:%S", tm);

	return end ? end : parse_part(text, "%H:%M", tm);
}

static int parse_calendar(const char *text, time_t now, int64_t *ret)
{
	struct tm tm = {};
	const char *at;
	int64_t fraction_ns;
	bool zone;
	int east_s;
	time_t seconds;

	localtime_r(&now, &tm);
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_isdst = -1;
	at = parse_part(text, "%Y-%m-%d", &tm);
	if (at && (*at == 'T' || *at == ' '))
		at = parse_clock(at + 1, &tm);
	else if (!at)
		at = parse_clock(text, &tm);
	at = at ? parse_fraction(at, &fraction_ns) : NULL;
	if (!at || !is_date(&tm) || !parse_zone(at, &zone, &east_s))
		return -EINVAL;
	seconds = zone ? timegm(&tm) - east_s : mktime(&tm);
	if (seconds < 0 || seconds > SECONDS_MAX)
		return -EINVAL;
	*ret = seconds * (int64_t)NSEC_PER_SEC + fraction_ns;
	return 0;
}

int view_time__parse(const char *text, time_t now, struct profile_time *ret)
{
	struct profile_time time = { .kind = TIME_ABSOLUTE };
	int code;

	if (*text == '@') {
		code = parse_duration(text + 1, &time.ns);
	} else if (*text == '-') {
		time.kind = TIME_BEFORE_END;
		code = parse_duration(text + 1, &time.ns);
	} else {
		time.kind = TIME_AFTER_BEGIN;
		code = parse_duration(text + (*text == '+'), &time.ns);
		if (code) {
			time.kind = TIME_ABSOLUTE;
			code = parse_calendar(text, now, &time.ns);
		}
	}
	if (!code)
		*ret = time;
	return code;
}
