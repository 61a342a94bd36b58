// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests -e: texts that are events, texts that are not, the error messages, and suggestions of
 * similar names. */
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

static void test_values(void)
{
	struct event_list list = {};
	struct kernel_half_opts opts = {};
	const struct event_value *value;
	struct err err = {};

	is_int(event_list__parse("uprobe:/a(b)/x:f(fd:s32, _ ,text=arg7:str),cpu,"
				 "usdt:x:p:n(),uprobe:a:f:latency:uretprobe:a:f(ret:ptr)",
				 &list, &err),
	       0, "values, with commas in their lists");
	is_int(list.n, 4, "... which separate no events");
	is_str(list.list[0].name, "uprobe:/a(b)/x:f", "... and are no part of the name");
	is_int(list.list[0].values.n, 2, "an argument may be left out");
	value = &list.list[0].values.list[0];
	is_str(value->label, "value.fd", "a value is a label");
	ok(value->spec.is_signed && value->spec.bytes == 4 && !value->spec.n_steps,
	   "... of its type");
	value = &list.list[0].values.list[1];
	is_str(event_value__name(value), "text", "... or has its own name");
	is_int(value->argument, 7, "... and number");
	ok(value->spec.arg.kind == PROBE_ARG_MEMORY && value->spec.arg.value == 8,
	   "... on the stack, above the return address");
	is_int(list.list[2].values.n, VALUES_MAX, "an empty list is all arguments of a USDT probe");
	is_str(list.list[3].values.list[0].label, "value.ret", "an interval has those of its end");
	event_list__configure(&list, &(struct event_rates) { 99, 10, 4096 }, &opts);
	is_int(opts.valued, 1 << 1 | 1 << 3 | 1 << 4, "events 1, 3 and 4 have values");
}

/* Names of Go have parentheses, stars and brackets of their own. */
static void test_go_names(void)
{
	static const char method[] = "uprobe:x:main.(*server).handle";
	struct event_list list = {};
	struct err err = {};

	is_int(event_list__parse("uprobe:x:main.(*server).handle,uprobe:x:main.(*server).h*,"
				 "uprobe:x:main.(*server).f:latency:uretprobe:x:main.(*server).f",
				 &list, &err),
	       0, "methods of Go");
	is_str(list.list[0].name, method, "... have no list of values");
	ok(!event_values__are_recorded(&list.list[0].values), "... and are no pattern");
	ok(list.list[1].values.by_place, "... unless there is another star");
	is_int(event_list__parse("uretprobe:x:main.(*server).handle(ret:s64)", &list, &err), 0,
	       "a list follows such a name");
	is_str(list.list[3].name, "uretprobe:x:main.(*server).handle", "... which is whole");
}

static void test_decoding(void)
{
	struct event_values values = { .n = 4 };
	struct rec_values rec = { .n = 4,
				  .n_texts = 2,
				  .is_text = 3,
				  .is_missing = 4,
				  .is_signed = 8,
				  .numbers = { 4, VALUE_TEXT_BYTES, 7, -5 } };
	struct sink_label labels[VALUES_MAX];
	struct value_texts texts;
	char longest[VALUE_TEXT_BYTES];

	memset(longest, 'y', sizeof(longest));
	memcpy(rec.texts[0], "a\nb", 4);
	memcpy(rec.texts[1], longest, sizeof(longest)); /* without a NUL */
	is_int(values__decode(&values, &rec, &texts, labels), 4, "a label for each value");
	is_str(labels[0].value, "a?b", "a text is printable");
	ok(strlen(labels[1].value) == VALUE_TEXT_SHOWN + 3 &&
		   !strcmp(labels[1].value + VALUE_TEXT_SHOWN, "..."),
	   "... and is cut, which shows");
	is_str(labels[2].value, VALUE_UNREADABLE, "an unreadable value says so");
	is_str(labels[3].value, "-5", "a signed value has its sign");
	rec.n = VALUES_MAX;
	is_int(values__decode(&values, &rec, &texts, labels), 4,
	       "a value without a name is left out");
	ok(values__are_sane(&rec, REC_VALUES_HEADER + 2 * VALUE_TEXT_BYTES),
	   "a record has its texts");
	ok(!values__are_sane(&rec, REC_VALUES_HEADER + VALUE_TEXT_BYTES), "... all of them");
	rec.n = VALUES_MAX + 1;
	ok(!values__are_sane(&rec, REC_VALUES_HEADER + 2 * VALUE_TEXT_BYTES),
	   "... and no more values than there may be");
}

static void test_locks(void)
{
	struct event_list list = {};
	struct err err = {};

	is_int(event_list__parse("lock:1ms,lock:pthread:20us,lock-holder", &list, &err), 0,
	       "waits for locks, and calls for them");
	is_str(list.list[1].name, "lock:pthread", "calls go by that name");
	is_int(list.list[1].minimum, 20000, "with a minimum");
	is_int(event_list__of_slot(&list, EVENT_LOCK_CALL), 2, "are another event");
	is_int(event_list__of_slot(&list, EVENT_LOCK), 1, "... than waits");
}

static void refuses(const char *text, const char *words)
{
	struct event_list list = {};
	struct err err = {};
	int code = event_list__parse(text, &list, &err);

	if (!ok(code == -EINVAL && strstr(err.text, words), "'%.60s': %s", text, words))
		tap__diag("%d: %s", code, err.text);
}

static void test_refused_values(void)
{
	refuses("uprobe:x:f(fd:s33)", "the value fd has an unknown type 's33'");
	refuses("uprobe:x:f(d:f64)", "Leave it out with _");
	refuses("uprobe:x:f(fd:s32,fd)", "two values have the name fd");
	refuses("uprobe:x:f(fd", "a list in parentheses at its end");
	refuses("uprobe:x:f)", "a list in parentheses at its end");
	refuses("uprobe:x:f()", "Name its arguments");
	refuses("uprobe:x:f(_,_)", "has only _");
	refuses("uprobe:x:f(a,b,c,d,e,f,g)", "at most 6 values: leave out g");
	refuses("uprobe:x:f(arg13)", "only the first 12");
	refuses("uprobe:x:f(a->b)", "only values of the kernel have fields");
	refuses("uprobe:x:f(a b)", "'a b' is no value");
	refuses("uretprobe:x:f(a,b)", "a return has one value");
	refuses("uretprobe:x:f(arg1)", "its only value is the result");
	refuses("uretprobe:x:f(_,a)", "cannot record argument 2 at a return");
	refuses("uprobe:x:f(a,arg0)", "counted from arg1");
	refuses("usdt:x:p:n(a,arg0)", "counted from arg1");
	refuses("usdt:x:p:n(a->b:s32)", "only values of the kernel have fields");
	refuses("tracepoint:sched:sched_switch(prev->pid)/prev->pid > 1/", "follow its filter");
	refuses("uprobe:x:f(a):latency:uretprobe:x:f", "Write the list at the end");
	refuses("uprobe:x:P*(function)", "has the name of the function");
	refuses("uretprobe:x:P*", "a pattern is for calls");
	refuses("uprobe:x:f:latency:uprobe:x:P*", "cannot begin or end at a pattern");
	refuses("tracepoint:sched:*", "a tracepoint cannot be a pattern");
	refuses("cpu(x)", "the event cpu has no values");
}

static void test_refused(void)
{
	char longest[EVENT_NAME_BYTES + 20] = "tracepoint:sched:";

	memset(longest + strlen(longest), 'x', EVENT_NAME_BYTES);
	refuses("", "name is missing");
	refuses("cpu,", "name is missing");
	refuses("cpu,cpu", "the event cpu is given twice");
	refuses("off-cpu,wall", "one contains the other");
	refuses("off-cpu:5", "not a minimum time of waiting");
	refuses("lock:pthread:5", "lock:pthread:10us");
	refuses("lock:pthread:", "lock:pthread:10us");
	refuses("lock:pthreads", "not a minimum time of waiting");
	refuses("lock-holder:pthread", "not a minimum time of waiting");
	refuses("lock:pthread,lock:pthread:1ms", "lock:pthread is given twice");
	refuses("block-io:5", "not a minimum time of block I/O");
	refuses("wall:-1ms", "not a minimum time of waiting");
	refuses("off-cpu:2days", "not a minimum time of waiting");
	refuses("off-cpu:90000s", "not a minimum time of waiting");
	refuses("cpus", "did you mean cpu or cs?");
	refuses("uprobes:x:y", "did you mean uprobe or kprobe?");
	refuses("tracepoit:sched:sched_switch", "did you mean tracepoint?");
	refuses("nothing-like-it", ", syscall, tracepoint, uprobe, ");
	refuses("nothing-like-it", "A:latency:B[:MIN]; braid events describes them");
	refuses("page-fualt", "did you mean page-fault");
	refuses("LLC-load-mises", "did you mean LLC-load-misses");
	refuses("r12x", "there is no event 'r12x'");
	refuses("page-faults,faults", "the event page-fault is given twice");
	refuses("cycles:u", "the event cycles takes no argument");
	refuses("uprobe:/bin/ls:main/x == 1/", "uprobe takes no filter");
	refuses("uretprobe:libc.so.6:malloc/ret == 0/", "uretprobe takes no filter");
	refuses("usdt:libc.so.6:libc:setjmp/arg1 == 0/", "usdt takes no filter");
	refuses("kprobe:vfs_read/pid == 1/", "kprobe takes no filter");
	refuses("syscall:openat/ret < 0/", "syscall takes no filter");
	refuses("off-cpu/pid == 1/", "off-cpu takes no filter");
	refuses("uprobe:/usr/bin/ls/", "a uprobe is uprobe:FILE:SYMBOL");
	refuses("faults:u", "the event faults takes no argument");
	refuses("cpu:1", "takes no argument");
	refuses("tracepoint", "requires an argument: tracepoint:SYS:NAME");
	refuses("uprobe:", "requires an argument: uprobe:FILE:SYMBOL");
	refuses("tracepoint:sched_switch", "tracepoint:SYS:NAME");
	refuses("tracepoint:sched:", "tracepoint:SYS:NAME");
	refuses("tracepoint:sched:a b", "is not the name of a tracepoint");
	refuses("tracepoint:a:b:c", "is not the name of a tracepoint");
	refuses("tracepoint:syscalls:sys_enter_opnat", "there is no system call 'opnat'");
	refuses("tracepoint:syscalls:openat", "sys_enter_NAME or sys_exit_NAME, not openat");
	refuses("usdt:libc.so.6:setjmp", "usdt:FILE:PROVIDER:NAME");
	refuses("usdt:libc.so.6::setjmp", "usdt:FILE:PROVIDER:NAME");
	refuses("usdt:libc.so.6:libc:", "usdt:FILE:PROVIDER:NAME");
	refuses("uretprobe:libc.so.6", "uretprobe:FILE:SYMBOL");
	refuses("kprobe:a b",
		"kprobe:a b does not name a function of the kernel. Write kprobe:FUNCTION");
	refuses("kretprobe:", "requires an argument: kretprobe:FUNCTION");
	refuses("syscall:raed", "there is no system call 'raed': did you mean read");
	refuses("syscall:read:1", "such as 1ms or 250us, not '1'");
	refuses("syscall:1m", "such as 1ms or 250us, not '1m'");
	refuses("syscall:read:1ms:", "not '1ms:'");
	refuses("syscall:read:nan", "not 'nan'");
	refuses("uprobe:libc.so.6", "uprobe:FILE:SYMBOL");
	refuses("uprobe::malloc", "uprobe:FILE:SYMBOL");
	refuses("uprobe:libc.so.6:0x", "neither a symbol nor an offset");
	refuses("uprobe:libc.so.6:0x12zz", "neither a symbol nor an offset");
	refuses("uprobe:libc.so.6:4711", "neither a symbol nor an offset");
	refuses("uprobe:libc.so.6:0xffffffffffffffffff", "neither a symbol nor an offset");
	refuses(longest, "at most 511 bytes");
	refuses("uprobe:a:1x", "neither a symbol nor an offset");
	refuses("cpu,uprobe:x:a,uprobe:x:b,uprobe:x:c,uprobe:x:d,uprobe:x:e,uprobe:x:f,uprobe:x:g,"
		"uprobe:x:h,uprobe:x:i,uprobe:x:j,uprobe:x:k,uprobe:x:l,uprobe:x:m,uprobe:x:n,"
		"uprobe:x:o,uprobe:x:p",
		"at most 16 events");
}

static void test_filters_refused(void)
{
	char deep[] = "tracepoint:s:n/a->b->c->d->e == 1/";

	refuses("tracepoint:s:n/", "a filter begins and ends with a slash");
	refuses("tracepoint:s:n/a == 1", "a filter begins and ends with a slash");
	refuses("tracepoint:s:n//", "a filter begins and ends with a slash");
	refuses("tracepoint:s:n/ /", "is missing at ''");
	refuses("tracepoint:s:n/1 == a/", "is missing at '1 == a'");
	refuses("tracepoint:s:n/a/", "not with ''");
	refuses("tracepoint:s:n/a = 1/", "not with '= 1'");
	refuses("tracepoint:s:n/a && b/", "not with '&& b'");
	refuses("tracepoint:s:n/a ==/", "not with ''");
	refuses("tracepoint:s:n/a == (1)/", "not with '(1)'");
	refuses("tracepoint:s:n/a == 1x/", "malformed or larger than 64 bits: 1x");
	refuses("tracepoint:s:n/a == 0x1ffffffffffffffff/", "malformed or larger than 64 bits");
	refuses("tracepoint:s:n/a == -9223372036854775809/", "malformed or larger than 64 bits");
	refuses("tracepoint:s:n/a == 1 b == 2/", "joined with && or ||, not with 'b == 2'");
	refuses("tracepoint:s:n/a == \"b/",
		"the closing quote of a text in the filter is missing: \"b");
	refuses("tracepoint:s:n/a < b/", "texts can only be compared with == and !=: b");
	refuses("tracepoint:s:n/a == abcdefghijklmnopqrstuvwxyzabcdef/", "at most 31 characters");
	refuses(deep, "may have at most 3 fields: remove 'e == 1'");
	refuses("tracepoint:s:n/a==1||a==2||a==3||a==4||a==5||a==6||a==7||a==8||a==9/",
		"a filter may have at most 8 comparisons");
}

static void test_intervals(void)
{
	struct event_list list = {};
	struct kernel_half_opts opts = {};
	struct err err = {};

	refuses("latency", "requires an argument: latency:A:latency:B[:MIN]");
	refuses("latency:x", "an interval is A:latency:B");
	refuses(":latency:uprobe:a:b", "an interval is A:latency:B");
	refuses("uprobe:a:b:latency:", "an interval is A:latency:B");
	refuses("uprobe:a:b:latency:uprobe:a:c:latency:uprobe:a:d",
		"has two ends, but this one has three");
	refuses("cpu:latency:uprobe:a:b", "cannot begin or end at cpu");
	refuses("uprobe:a:b:latency:syscall:read", "cannot begin or end at syscall:read");
	refuses("uprobe:a:b:latency:uprob:a:c", "did you mean uprobe");
	refuses("uprobe:a:latency:uprobe:a:c", "uprobe:FILE:SYMBOL");
	refuses("uprobe:a:b:latency:uprobe:a:c:10", "'10' is not a minimum time between two");
	refuses("uprobe:a:b:latency:uprobe:a:4711", "neither a symbol nor an offset");
	refuses("uprobe:a:b:latency:uprobe:a:1ms", "neither a symbol nor an offset");
	refuses("uprobe:a:b:1ms:latency:uprobe:a:c", "comes last: A:latency:B:MIN");
	is_int(event_list__parse("tracepoint:s:n/a==1/:latency:uretprobe:x:f,"
				 "usdt:x:p:n:latency:tracepoint:s:n/a==1/,"
				 "kprobe:f:latency:kretprobe:f,tracepoint:s:n/a==1/",
				 &list, &err),
	       0, "three intervals");
	ok(list.list[0].kind == &event_latency, "are of their own kind, whatever they begin with");
	is_int(list.list[0].minimum, 0, "without a minimum");
	event_list__configure(&list, &(struct event_rates) { 99, 0, 0 }, &opts);
	is_int(opts.paired, 1 << 1 | 1 << 2 | 1 << 3, "their values are times");
	is_int(opts.intervals, opts.paired, "... which the budget chooses by");
	is_int(opts.events.begins, 1 << 1, "the first begins at a tracepoint");
	is_int(opts.events.functions, 1 << 3, "the third is at functions of the kernel");
	is_int(opts.filtered, 1 << 2 | 1 << 4, "the end of the second and the fourth have filters");
	is_int(opts.events.of_type[CHAIN_TRACEPOINT], 1 << 1 | 1 << 2 | 1 << 4, "tracepoints ...");
	is_int(opts.events.of_type[CHAIN_UPROBE], 1 << 1 | 1 << 2 | 1 << 3,
	       "... and uprobes or functions where there are such ends");
	list.n = 0;
	is_int(event_list__parse("uprobe:a:b:latency:uprobe:a:0x10:1.5ms,"
				 "uprobe:a:b:latency:usdt:x:p:n:20us,"
				 "uprobe:a:b:latency:tracepoint:s:n/c == \"1:1ms\"/:1s,"
				 "uprobe:a:b:latency:tracepoint:s:n/c == \"1:1ms\"/",
				 &list, &err),
	       0, "with a minimum");
	is_int(list.list[0].minimum, 1500000, "behind an offset");
	is_int(list.list[1].minimum, 20000, "... a probe");
	is_int(list.list[2].minimum, 1000000000, "... a filter");
	is_int(list.list[3].minimum, 0, "... not in it");
	is_str(list.list[1].name, "uprobe:a:b:latency:usdt:x:p:n:20us", "is in the name");
}

static void test_names(void)
{
	struct event_list list = {};
	struct kernel_half_opts opts = {};
	struct err err = {};

	is_int(event_list__parse("task-clock,faults,cpu-cycles,r01a2,cs,syscall,syscall:1.5ms,"
				 "syscall:read:2s",
				 &list, &err),
	       0, "events by perf's names, and system calls");
	is_str(list.list[0].name, "cpu", "a clock is the event cpu");
	is_str(list.list[1].name, "page-fault", "one of several names is the name");
	is_str(list.list[2].name, "cycles", "... of the CPU's counters, too");
	is_str(list.list[3].name, "r01a2", "a raw one keeps its own");
	is_str(list.list[4].name, "context-switches", "an abbreviation is written out");
	ok(list.list[2].kind->rated && list.list[3].kind == &event_pmu && !list.list[4].kind->rated,
	   "what the CPU counts has a rate");
	ok(event_list__has_rated(&list), "... which the list says");
	is_int(list.list[5].minimum, 0, "no shortest time");
	is_int(list.list[6].minimum, 1500000, "one of all calls");
	is_int(list.list[7].minimum, 2000000000, "one of a call");
	event_list__configure(&list, &(struct event_rates) { 99, 7, 0 }, &opts);
	is_int(opts.periods[2], 7, "the period is for what the kernel counts");
	is_int(opts.periods[3], 1, "what the CPU counts has its own");
	is_int(opts.limited >> 2 & 15, 1 | 8, "... and is not limited otherwise");
	is_int(opts.minima[8], 2000000000, "and the shortest time reaches the kernel half");
	is_int(opts.events.of_type[CHAIN_TRACEPOINT], 1 << 6 | 1 << 7 | 1 << 8,
	       "system calls are at tracepoints");
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
	test_filters_refused();
	test_intervals();
	test_values();
	test_go_names();
	test_refused_values();
	test_decoding();
	test_locks();
	test_names();
	test_nearest();
	return tap__done();
}
