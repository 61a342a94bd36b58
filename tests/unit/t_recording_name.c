// SPDX-License-Identifier: GPL-2.0-or-later
/* Names of the recordings of a directory: valid names, and their order at any changes of the clock.
 */
#include "core/store/recording_name.h"

#include <string.h>

#include "core/base/util.h"
#include "tests/tap.h"

static void check_names(void)
{
	const struct recording_name name = { 1795501834, 7 };
	struct recording_name got;
	enum recording_state state;
	char text[RECORDING_NAME_BYTES];

	recording_name__text(&name, RECORDING_DONE, text);
	is_str(text, "20261124T063034Z-000007.db",
	       "of a finished one"); /* date -u -d @1795501834 */
	ok(recording_name__parse(text, &got, &state) && state == RECORDING_DONE &&
		   !recording_name__compare(&got, &name),
	   "and back");
	recording_name__text(&name, RECORDING_BEING_WRITTEN, text);
	is_str(text, "20261124T063034Z-000007.part", "of one that is being written");
	ok(recording_name__parse(text, &got, &state) && state == RECORDING_BEING_WRITTEN,
	   "and back");
}

static void check_others(void)
{
	static const char *const others[] = {
		"",
		"braid.db",
		"20261124T063034Z-000007",
		"20261124T063034Z-000007.db-journal",
		"20261124T063034Z-000007.dbx",
		"20261124T063034Z-7.db",
		"20261124T063034Z-+00007.db",
		"20261124T063034Z- 00007.db",
		"20261124T063034-000007.db",
		"20261332T063034Z-000007.db",
		"20261124T063060Z-000007.db",
		"x20261124T063034Z-000007.db",
		"20261124T063034Z-0000007.db",
		"19691231T235959Z-000000.db",
		"../20261124T063034Z-000007.db",
	};
	struct recording_name got;
	enum recording_state state;

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		ok(!recording_name__parse(others[i], &got, &state), "'%s' is none", others[i]);
}

/* Each name is greater than the previous one, also as a text. */
static void check_order(void)
{
	static const int64_t clock_s[] = { 1000, 1001, 1001, 1001, 5,	 -7,   1000,
					   1002, 1002, 99,   9e15, 9e15, 1003, 0 };
	char last[RECORDING_NAME_BYTES] = "", text[RECORDING_NAME_BYTES];
	struct recording_name name = {};

	for (size_t i = 0; i < ARRAY_SIZE(clock_s); i++) {
		struct recording_name next = recording_name__next(i ? &name : NULL, clock_s[i]);

		recording_name__text(&next, RECORDING_DONE, text);
		ok(strcmp(text, last) > 0 && (!i || recording_name__compare(&next, &name) > 0),
		   "%s comes after %s", text, last);
		strcpy(last, text);
		name = next;
	}
}

static void check_numbers_end(void)
{
	const struct recording_name last = { 1000, 999999 };
	struct recording_name next = recording_name__next(&last, 10);

	is_int(next.time_s, 1001, "after the last number comes the next second");
	is_int(next.number, 0, "and the first number");
}

int main(void)
{
	check_names();
	check_others();
	check_order();
	check_numbers_end();
	return tap__done();
}
