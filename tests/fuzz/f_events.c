// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "core/events/events.h"
#include "tests/fuzz/fuzz.h"

/* Parses the argument of -e, including filters and intervals. */
bool target__run(const uint8_t *data, size_t size)
{
	struct kernel_half_opts opts = {};
	struct event_list list = {};
	char *text = malloc(size + 1);
	struct err err = {};
	int code;

	if (!text)
		return false;
	memcpy(text, data, size);
	text[size] = '\0';
	code = event_list__parse(text, &list, &err);
	if (code ? !err.text[0] : !list.n)
		abort();
	event_list__configure(&list, &(struct event_rates) { .period = 10, .frequency_hz = 99 },
			      &opts);
	for (uint32_t i = 0; i < list.n; i++)
		if (!list.list[i].kind || !list.list[i].name[0])
			abort();
	free(text);
	return !code;
}

void target__seeds(void)
{
	fuzz__seed_text("cpu,page-faults,r01c4,LLC-load-misses,cs");
	fuzz__seed_text("syscall,syscall:1.5ms,syscall:fsync:2s,tracepoint:syscalls:sys_exit_read");
	fuzz__seed_text("tracepoint:s:n/a->b.c == -0x7 && d != \"e f\" || g & 3 && comm == h/");
	fuzz__seed_text(
		"uprobe:a:f(fd:s32,_,n=arg7:u64,text:str),usdt:a:p:n(),uretprobe:a:f(r:ptr)");
	fuzz__seed_text("tracepoint:sched:sched_switch(prev->pid, c=next->comm)");
	fuzz__seed_text("uprobe:a:0x1a30:latency:uretprobe:a:b,usdt:a:b:c:latency:kprobe:d");
}
