// SPDX-License-Identifier: GPL-2.0-or-later
/* -e: what is understood as an event, and what is not, in which words; names that are near. */
#include "core/events/events.h"

#include <errno.h>
#include <string.h>

#include "core/base/util.h"
#include "core/events/nearest.h"
#include "tests/tap.h"

static void test_understood(void)
{
	struct event_list list = {};
	struct kernel_half_opts opts = {};
	struct err err = {};

	is_int(event_list__parse("tracepoint:sched:sched_switch,cpu", &list, &err), 0, "a list");
	is_int(event_list__parse("uprobe:/lib/libx.so:f", &list, &err), 0, "and another -e");
	is_int(event_list__parse("uprobe:ruby:0x1a30", &list, &err), 0, "an offset in a file");
	is_int(list.n, 4, "are four events");
	is_str(list.list[0].name, "tracepoint:sched:sched_switch", "with their names");
	is_str(event__argument(&list.list[2]), "/lib/libx.so:f", "... arguments");
	is_str(event__argument(&list.list[1]), "", "... or none");
	ok(list.list[1].kind == &event_cpu && list.list[3].kind == &event_uprobe, "... and kinds");
	ok(event_list__has_timed(&list, true) && event_list__has_timed(&list, false),
	   "some come by the clock, some do not");
	event_list__configure(&list, &(struct event_rates) { 99, 10, 4096 }, &opts);
	is_int(opts.events.of_type[CHAIN_TRACEPOINT], 1 << 1, "the tracepoint is number 1");
	is_int(opts.events.of_type[CHAIN_TICK], 1 << 2, "the clock's is number 2");
	is_int(opts.events.of_type[CHAIN_UPROBE], 1 << 3 | 1 << 4,
	       "the uprobes are numbers 3 and 4");
	is_int(opts.periods[1], 10, "the period is that of events that are counted");
	is_int(opts.periods[2], 1, "... not of the clock's");
}

static void refuses(const char *text, const char *words)
{
	struct event_list list = {};
	struct err err = {};
	int code = event_list__parse(text, &list, &err);

	if (!ok(code == -EINVAL && strstr(err.text, words), "'%.60s': %s", text, words))
		tap__diag("%d: %s", code, err.text);
}

static void test_refused(void)
{
	char longest[EVENT_NAME_BYTES + 20] = "tracepoint:sched:";

	memset(longest + strlen(longest), 'x', EVENT_NAME_BYTES);
	refuses("", "name is missing");
	refuses("cpu,", "name is missing");
	refuses("cpu,cpu", "the event cpu is there twice");
	refuses("off-cpu,wall", "one of them contains the other");
	refuses("off-cpu:5", "shortest time of waiting");
	refuses("wall:-1ms", "shortest time of waiting");
	refuses("off-cpu:2days", "shortest time of waiting");
	refuses("off-cpu:90000s", "shortest time of waiting");
	refuses("cpus", "did you mean cpu?");
	refuses("uprobes:x:y", "did you mean uprobe?");
	refuses("tracepoit:sched:sched_switch", "did you mean tracepoint?");
	refuses("page-faults", "there are: cpu, ");
	refuses("cpu:1", "takes no argument");
	refuses("tracepoint", "needs an argument: tracepoint:SYS:NAME");
	refuses("uprobe:", "needs an argument: uprobe:FILE:SYMBOL");
	refuses("tracepoint:sched_switch", "tracepoint:SYS:NAME");
	refuses("tracepoint:sched:", "tracepoint:SYS:NAME");
	refuses("tracepoint:sched:a b", "no name of a tracepoint");
	refuses("tracepoint:a:b:c", "no name of a tracepoint");
	refuses("tracepoint:syscalls:sys_enter_openat", "tracepoint:raw_syscalls:sys_enter");
	refuses("tracepoint:syscalls:sys_exit_openat", "tracepoint:raw_syscalls:sys_exit");
	refuses("uprobe:libc.so.6", "uprobe:FILE:SYMBOL");
	refuses("uprobe::malloc", "uprobe:FILE:SYMBOL");
	refuses("uprobe:libc.so.6:0x", "neither a symbol nor an offset");
	refuses("uprobe:libc.so.6:0x12zz", "neither a symbol nor an offset");
	refuses("uprobe:libc.so.6:4711", "neither a symbol nor an offset");
	refuses("uprobe:libc.so.6:0xffffffffffffffffff", "neither a symbol nor an offset");
	refuses(longest, "511 bytes at most");
	refuses("uprobe:a:1x", "neither a symbol nor an offset");
	refuses("cpu,uprobe:x:a,uprobe:x:b,uprobe:x:c,uprobe:x:d,uprobe:x:e,uprobe:x:f,uprobe:x:g,"
		"uprobe:x:h,uprobe:x:i,uprobe:x:j,uprobe:x:k,uprobe:x:l,uprobe:x:m,uprobe:x:n,"
		"uprobe:x:o,uprobe:x:p",
		"16 events at most");
}

static void test_nearest(void)
{
	static const char *const names[] = { "sched_switch", "sched_wakeup", "sched_stat_wait",
					     "sched_waking", "sys_enter",    "sched_switches" };
	struct nearest nearest = nearest__to("sched_swich", 11);
	char longest[NEAREST_BYTES + 1] = "sched_swich";

	memset(longest + 11, 'x', NEAREST_BYTES - 11);
	is_str(nearest__text(&nearest), "", "of no names none is near");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		nearest__add(&nearest, names[i]);
	nearest__add(&nearest, longest);
	is_str(nearest__text(&nearest), "sched_switch or sched_switches",
	       "the nearest comes first, and none that is too long");
	nearest = nearest__to("event", 5);
	nearest__add(&nearest, "event12");
	nearest__add(&nearest, "event1");
	nearest__add(&nearest, "event2");
	nearest__add(&nearest, "even");
	is_str(nearest__text(&nearest), "event1, event2 or even", "of four the nearest three");
	nearest = nearest__to("xyz", 3);
	nearest__add(&nearest, "sched_switch");
	is_int(nearest.n, 0, "what is far is not offered");
	nearest = nearest__to("sched", 5);
	nearest__add(&nearest, "sched_switch");
	is_int(nearest.n, 1, "what it begins is");
}

int main(void)
{
	test_understood();
	test_refused();
	test_nearest();
	return tap__done();
}
