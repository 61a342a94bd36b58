// SPDX-License-Identifier: GPL-2.0-or-later
/* Sentences about a profile that is made here: each wait by its object and function, shares of the
 * whole, and the advice. */
#include <stdlib.h>
#include <string.h>

#include "core/out/out_findings.h"
#include "runtimes/registry.h"
#include "tests/tap.h"

static const struct function_rules *rules[64];
static struct profile *profile;

static uint32_t frame(int kind, const char *name, const char *file, uint32_t line)
{
	uint32_t ret;

	if (profile__code(profile, kind, name, file, line, kind == KIND_NATIVE ? file : NULL, &ret))
		exit(1);
	return ret;
}

/* Adds a stack of @frames, root first, after the state. */
static void add(const char *state, const uint32_t *frames, size_t n, uint64_t weight)
{
	bool waits = !strncmp(state, "waiting", 7);
	const struct profile_value value = { .weight = weight,
					     .waiting = waits ? weight : 0,
					     .preempted =
						     !strcmp(state, "preempted") ? weight : 0 };
	uint32_t stack[8] = { 0 };

	stack[0] = frame(profile->group_kind, state, NULL, 0);
	memcpy(stack + 1, frames, n * sizeof(*frames));
	if (profile__add_value(profile, stack, n + 1, &value, NULL))
		exit(1);
}

static void setup(void)
{
	size_t n = 0;
	int kind;

	for (size_t i = 0; runtimes[i]; i++)
		if (runtimes[i]->function_rules)
			rules[n++] = runtimes[i]->function_rules;
	profile = profile__new();
	profile->rules = rules;
	if (profile__measures(profile, "wall", "ns"))
		exit(1);
	kind = profile__label_kind(profile, "state");
	profile->group_kind = kind;
}

static char *sentences(struct output_advice *advice)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ok(out && !output__findings(profile, out, advice) && !fclose(out), "written");
	return text;
}

static void check(const char *want, bool locks, bool native, const char *name)
{
	struct output_advice advice;
	char *text = sentences(&advice);

	ok(text && !strcmp(text, want), "%s", name);
	if (text && strcmp(text, want) != 0)
		printf("# got %s# want %s", text, want);
	ok(advice.locks == locks && advice.native == native, "%s: the advice", name);
	free(text);
	profile__free(profile);
}

int main(void)
{
	uint32_t python, run, reserve, rates, report, dumps, take, get, futex, recv, tcp, zip, sem;

	setup();
	python = profile__kind(profile, "python", "_[py]");
	run = frame(python, "run", "/usr/lib/python3.11/threading.py", 1);
	reserve = frame(python, "reserve", "/srv/app.py", 55);
	rates = frame(python, "fetch_rates", "/srv/app.py", 31);
	report = frame(python, "build_report", "/srv/app.py", 60);
	dumps = frame(python, "dumps", "/usr/lib/python3.11/json/__init__.py", 9);
	take = frame(KIND_NATIVE, "PyThread_acquire_lock_timed", "python3.11", 0);
	get = frame(KIND_NATIVE, "recv", "libc", 0);
	sem = frame(KIND_NATIVE, "sem_clockwait", "libc", 0);
	futex = frame(KIND_KERNEL, "__x64_sys_futex", NULL, 0);
	recv = frame(KIND_KERNEL, "__x64_sys_recvfrom", NULL, 0);
	tcp = frame(KIND_KERNEL, "tcp_recvmsg", NULL, 0);
	zip = frame(KIND_NATIVE, "deflate_slow", "libz", 0);
	add("waiting elsewhere", (uint32_t[]) { run, reserve, take, sem, futex }, 5, 390);
	add("waiting elsewhere", (uint32_t[]) { run, rates, get, recv, tcp }, 5, 180);
	add("waiting for the lock", (uint32_t[]) { run, report, sem }, 3, 160);
	add("preempted", (uint32_t[]) { run, report }, 2, 190);
	add("running", (uint32_t[]) { run, report, dumps }, 3, 44);
	add("running", (uint32_t[]) { run, reserve, zip }, 3, 20);
	add("running", (uint32_t[]) { run }, 1, 16);
	check("73 % of thread time is waiting: 39 % for a lock in reserve (app.py:55), 18 % for "
	      "the "
	      "network in fetch_rates (app.py:31), 16 % for the lock of python in build_report "
	      "(app.py:60).\n19 % of thread time another thread had the CPU.\n"
	      "CPU 8 %: build_report (app.py:60) 55 %, reserve (app.py:55) 25 %, run "
	      "(threading.py:1) "
	      "20 %.\n",
	      true, false, "waits, others, CPU");

	setup();
	zip = frame(KIND_NATIVE, "deflate_slow", "libz", 0);
	get = frame(KIND_NATIVE, "memcpy", "libc", 0);
	futex = frame(KIND_KERNEL, "__x64_sys_futex", NULL, 0);
	add("running", (uint32_t[]) { zip, get }, 2, 90);
	add("waiting", (uint32_t[]) { zip, futex }, 2, 10);
	check("10 % of thread time is waiting: 10 % for another thread (futex) in deflate_slow.\n"
	      "CPU 90 %: deflate_slow 100 %.\n",
	      false, true, "native code: what is not known is not named");

	setup();
	futex = frame(KIND_NATIVE, "runtime.gopark", NULL, 0);
	add("parked", &futex, 1, 90);
	add("running", &futex, 1, 10);
	profile->nodes[2].waiting = profile->waiting = profile->parked = 90;
	check("90 % of the time of threads and parked tasks is waiting: 90 % for an event in "
	      "runtime.gopark.\nCPU 10 %: runtime.gopark 100 %.\n",
	      false, true, "tasks on no thread");
	setup();
	check("This recording is empty.\n", false, false, "nothing");
	setup();
	profile->other_events = strdup("uprobe:x:f");
	check("There is no sample of the event wall. Other events: uprobe:x:f (--event).\n", false,
	      false, "another event has samples");
	setup();
	profile->idle.weight = 5;
	check("All threads were idle (--idle show shows them).\n", false, false, "idle");
	return tap__done();
}
