// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/store/recording_name.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/util.h"

#define NUMBER_MAX 999999
#define TIME_MAX   253402300799LL /* the last second of the year 9999 */

static const char *const suffixes[] = {
	[RECORDING_DONE] = ".db", [RECORDING_BEING_WRITTEN] = ".part"
};

void recording_name__text(const struct recording_name *name, enum recording_state state,
			  char ret[RECORDING_NAME_BYTES])
{
	time_t time = name->time_s;
	struct tm tm;
	char text[20];

	gmtime_r(&time, &tm);
	strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(ret, RECORDING_NAME_BYTES, "%s-%06u%s", text, name->number, suffixes[state]);
}

/* Returns true if @text is exactly the text that braid writes for @name. */
static bool is_text_of(const char *text, const struct recording_name *name,
		       enum recording_state state)
{
	char written[RECORDING_NAME_BYTES];

	recording_name__text(name, state, written);
	return !strcmp(text, written);
}

bool recording_name__parse(const char *text, struct recording_name *ret,
			   enum recording_state *ret_state)
{
	struct tm tm = {};
	unsigned number;

	if (sscanf(text, "%4d%2d%2dT%2d%2d%2dZ-%6u", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		   &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &number) != 7)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	*ret = (struct recording_name) { timegm(&tm), number };
	if (ret->time_s < 0 || ret->time_s > TIME_MAX || number > NUMBER_MAX)
		return false;
	for (int state = 0; state < (int)ARRAY_SIZE(suffixes); state++)
		if (is_text_of(text, ret, state)) {
			*ret_state = state;
			return true;
		}
	return false;
}

int recording_name__compare(const struct recording_name *a, const struct recording_name *b)
{
	if (a->time_s != b->time_s)
		return a->time_s < b->time_s ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

struct recording_name recording_name__next(const struct recording_name *newest, int64_t now_s)
{
	struct recording_name next = { .time_s = min_of(max_of(now_s, 0), TIME_MAX) };

	if (!newest || newest->time_s < next.time_s)
		return next;
	next = *newest;
	if (next.number < NUMBER_MAX)
		next.number++;
	else if (next.time_s < TIME_MAX)
		next = (struct recording_name) { .time_s = next.time_s + 1 };
	return next;
}
