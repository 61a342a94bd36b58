// SPDX-License-Identifier: GPL-2.0-or-later
/* Data that capture caches for each process (by serial number) and its places (by number), for one
 * epoch. */
#include "core/capture/captured.h"

#include <stdlib.h>

#include "tests/tap.h"

static const struct runtime *const none[] = { NULL };
static const struct runtime_set runtimes = { .list = none };

static void test_processes(void)
{
	struct process first = { .serial = 1 }, second = { .serial = 2 };
	struct captured_set set = {};
	struct captured *captured = captured__get(&set, &first);

	ok(captured && captured->process == &first && !captured->id, "a new one");
	ok(captured__get(&set, &first) == captured, "the same again");
	ok(captured__get(&set, &second) != captured, "another process");
	first.serial = 3; /* the process called exec */
	ok(!captured__find(&set, 3), "a new incarnation has nothing");
	ok(captured__find(&set, 1) == captured, "the old one's is still there");
	captured__forget(&set, captured);
	ok(!captured__find(&set, 1) && captured__find(&set, 2), "until it is forgotten");
	captured_set__done(&set);
	ok(!set.first, "all are gone");
}

static void test_places(void)
{
	struct process process = { .serial = 1, .runtimes = &runtimes };
	struct captured_set set = {};
	struct captured *captured = captured__get(&set, &process);
	const struct place *place;
	uint64_t address = 0;

	if (place__at(&process, address++, 1, &place))
		exit(1);
	captured__place(captured, 3)->id = 7;
	is_int(captured__place(captured, 3)->id, 7, "kept under its number");
	is_int(captured__place(captured, 2)->id, 0, "others have nothing yet");
	captured__place(captured, 4000);
	is_int(captured__place(captured, 3)->id, 7, "also where there are many");
	captured->n_unknown = 1;
	while (places__epoch(&process) == 1)
		if (place__at(&process, address++, 1, &place))
			exit(1);
	is_int(captured__place(captured, place->number)->id, 0, "another epoch: nothing is known");
	is_int(captured__place(captured, 3)->id, 0, "of no place");
	is_int(captured->n_unknown, 0, "and none of the old ones waits for a name");
	captured_set__done(&set);
	process__forget_code(&process);
}

int main(void)
{
	test_processes();
	test_places();
	return tap__done();
}
