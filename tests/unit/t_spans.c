// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests of a profile that is made here: their order, the causes of their time, and the time
 * outside of requests. */
#include <stdlib.h>
#include <string.h>

#include "core/out/output.h"
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

/* Adds a stack of @frames, root first, of a request and a state. */
static void add(const char *request, const char *state, const uint32_t *frames, size_t n,
		uint64_t weight)
{
	const struct profile_value value = {
		.weight = weight,
		.waiting = !strncmp(state, "waiting", 7) ? weight : 0,
		.preempted = !strncmp(state, "preempted", 9) ? weight : 0,
	};
	uint32_t stack[8] = { frame(profile->group_kind, request, NULL, 0),
			      frame(profile__label_kind(profile, "state"), state, NULL, 0) };

	memcpy(stack + 2, frames, n * sizeof(*frames));
	if (profile__add_value(profile, stack, n + 2, &value, NULL))
		exit(1);
}

static void setup(void)
{
	size_t n = 0;

	for (size_t i = 0; runtimes[i]; i++)
		if (runtimes[i]->function_rules)
			rules[n++] = runtimes[i]->function_rules;
	profile = profile__new();
	profile->rules = rules;
	if (profile__measures(profile, "wall", "ns"))
		exit(1);
	profile->group_kind = profile__label_kind(profile, "request");
}

static void check(size_t rows, const char *want, const char *name)
{
	const struct output_opts opts = { .rows = rows };
	char *text = NULL, *table;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ok(!output__spans(profile, &opts, out) && !fclose(out), "%s: written", name);
	table = strstr(text, "      Time");
	is_str(table ? table : text, want, "%s", name);
	free(text);
}

int main(void)
{
	uint32_t python, orders, reserve, take, sem, futex, tcp, recv, get;

	setup();
	python = profile__kind(profile, "python", "_[py]");
	orders = frame(python, "orders", "/srv/app.py", 10);
	reserve = frame(python, "reserve", "/srv/app.py", 55);
	take = frame(KIND_NATIVE, "PyThread_acquire_lock_timed", "python3.11", 0);
	sem = frame(KIND_NATIVE, "sem_clockwait", "libc", 0);
	get = frame(KIND_NATIVE, "recv", "libc", 0);
	futex = frame(KIND_KERNEL, "__x64_sys_futex", NULL, 0);
	recv = frame(KIND_KERNEL, "__x64_sys_recvfrom", NULL, 0);
	tcp = frame(KIND_KERNEL, "tcp_recvmsg", NULL, 0);
	add("aa /items", "running", &orders, 1, 30);
	add("no request", "waiting", (uint32_t[]) { take, sem, futex }, 3, 500);
	add("bb /orders", "waiting elsewhere", (uint32_t[]) { orders, reserve, take, sem, futex },
	    5, 310);
	add("bb /orders", "waiting for the lock", (uint32_t[]) { orders, sem, futex }, 3, 50);
	add("bb /orders", "waiting elsewhere", (uint32_t[]) { orders, get, recv, tcp }, 4, 20);
	add("bb /orders", "preempted", &orders, 1, 60);
	add("bb /orders", "running with the lock", (uint32_t[]) { orders, reserve }, 2, 40);
	add("no such /\033[2J", "running", &orders, 1, 1);
	check(0,
	      "      Time  Share  Request\n"
	      "    480 ns  47.5%  bb /orders\n"
	      "    310 ns  64.6%    a lock                    reserve (app.py:55)\n"
	      "     50 ns  10.4%    the lock of python        orders (app.py:10)\n"
	      "     40 ns   8.3%    on the CPU                reserve (app.py:55)\n"
	      "     20 ns   4.2%    the network               orders (app.py:10)\n"
	      "     60 ns  12.5%    another thread had the CPU\n"
	      "     30 ns   3.0%  aa /items\n"
	      "     30 ns 100.0%    on the CPU                orders (app.py:10)\n"
	      "      1 ns   0.1%  no such /?[2J\n"
	      "      1 ns 100.0%    on the CPU                orders (app.py:10)\n"
	      "500 ns of the time belong to no group\n",
	      "all requests");
	check(1,
	      "      Time  Share  Request\n"
	      "    480 ns  47.5%  bb /orders\n"
	      "    310 ns  64.6%    a lock                    reserve (app.py:55)\n"
	      "     50 ns  10.4%    the lock of python        orders (app.py:10)\n"
	      "     40 ns   8.3%    on the CPU                reserve (app.py:55)\n"
	      "     20 ns   4.2%    the network               orders (app.py:10)\n"
	      "     60 ns  12.5%    another thread had the CPU\n"
	      "(2 more)\n"
	      "500 ns of the time belong to no group\n",
	      "the first one");
	profile__free(profile);

	setup();
	check(0, "      Time  Share  Request\n", "nothing");
	profile__free(profile);
	return tap__done();
}
