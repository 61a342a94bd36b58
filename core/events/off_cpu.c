// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <errno.h>

/* Waiting, and waiting together with running (bpf/off_cpu.bpf.c). */

#define LEAVE  "off_cpu_leave"
#define RETURN "off_cpu_return"
#define WAKE   "off_cpu_wake"
#define TICK   "on_sample"

static const struct chain_program programs[] = { { CHAIN_TRACEPOINT, LEAVE },
						 { CHAIN_TRACEPOINT, RETURN },
						 {} };
static const struct chain_program wall_programs[] = {
	{ CHAIN_TRACEPOINT, LEAVE }, { CHAIN_TRACEPOINT, RETURN }, { CHAIN_TICK, TICK }, {}
};
static const struct chain_program wakeup_programs[] = {
	{ CHAIN_TRACEPOINT, LEAVE }, { CHAIN_TRACEPOINT, RETURN }, { CHAIN_TRACEPOINT, WAKE }, {}
};

static int parse(struct event_spec *spec, struct err *err)
{
	return event__parse_minimum(spec, "waiting", err);
}

static int attach_to(struct event *event, const char *program, const char *tracepoint,
		     struct err *err)
{
	int ret = event__attach_raw(event, program, tracepoint, "to see threads wait", err);

	if (ret == -ENOENT)
		return err__set(
			err, ret,
			"this kernel has no tracepoint %s, which %s needs (Linux 6.16 and "
			"later have it): tracepoint:sched:sched_switch samples where threads "
			"leave the CPU, and syscall:MIN how long their system calls take",
			tracepoint, event->spec.kind->name);
	return ret;
}

/* The return first: what leaves is to be seen when it returns. */
static int attach_switches(struct event *event, struct err *err)
{
	int ret = attach_to(event, RETURN, "sched_exit_tp", err);

	return ret ? ret : attach_to(event, LEAVE, "sched_switch", err);
}

static int attach(struct event *event, const struct event_place *place, struct err *err)
{
	(void)place;
	return attach_switches(event, err);
}

static int attach_wall(struct event *event, const struct event_place *place, struct err *err)
{
	const struct chain_program tick = { CHAIN_TICK, TICK };
	int ret = attach(event, place, err);

	return ret ? ret
		   : event__attach_clock(event, kernel_half__program(event->half, &tick), err);
}

/* Beside the event of waiting its programs are attached already, and a wait ends but once. */
static int attach_wakeup(struct event *event, const struct event_place *place, struct err *err)
{
	int ret = place->waits ? 0 : attach_switches(event, err);

	return ret ? ret : attach_to(event, WAKE, "sched_waking", err);
}

const struct event_kind event_off_cpu = {
	.name = "off-cpu",
	.argument = "[MIN]",
	.optional = true,
	.unit = "ns",
	.help = "Time in which threads wait: off-cpu, or off-cpu:1ms for nothing shorter",
	.type = CHAIN_TRACEPOINT,
	.programs = programs,
	.slot = EVENT_OFF_CPU,
	.intervals = true,
	.parse = parse,
	.attach = attach,
};

const struct event_kind event_wall = {
	.name = "wall",
	.argument = "[MIN]",
	.optional = true,
	.unit = "ns",
	.help = "The whole time of threads, running (by the clock, -F) and waiting",
	.type = CHAIN_TRACEPOINT,
	.programs = wall_programs,
	.slot = EVENT_WALL,
	.intervals = true,
	.timed = true,
	.contains = &event_off_cpu,
	.parse = parse,
	.attach = attach_wall,
	.detach = event__detach_clock,
	.slow_down = event__slow_clock,
};

const struct event_kind event_wakeup = {
	.name = "wakeup",
	.argument = "[MIN]",
	.optional = true,
	.unit = "ns",
	.help = "Who wakes a thread that waits, by how long it has waited",
	.type = CHAIN_TRACEPOINT,
	.programs = wakeup_programs,
	.slot = EVENT_WAKEUP,
	.intervals = true,
	.parse = parse,
	.attach = attach_wakeup,
};
