// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <errno.h>
#include <string.h>

/* Waiting, and waiting together with running (bpf/off_cpu.bpf.c). */

#define LEAVE  "off_cpu_leave"
#define RETURN "off_cpu_return"
#define WAKE   "off_cpu_wake"
#define TICK   "on_sample"

/* The tracepoint at which a thread returns, since Linux 6.16; and the programs that replace it. */
#define NEWEST "sched_exit_tp"
#define SWITCH "off_cpu_switch"
#define OVER   "off_cpu_over"

#define PROGRAMS                         \
	{ CHAIN_TRACEPOINT, LEAVE },     \
	{                                \
		CHAIN_TRACEPOINT, RETURN \
	}
#define OLDER_PROGRAMS                 \
	{ CHAIN_TRACEPOINT, SWITCH },  \
	{                              \
		CHAIN_TRACEPOINT, OVER \
	}

static const struct chain_program programs[] = { PROGRAMS, {} };
static const struct chain_program older_programs[] = { OLDER_PROGRAMS, {} };
static const struct chain_program wall_programs[] = { PROGRAMS, { CHAIN_TICK, TICK }, {} };
static const struct chain_program older_wall_programs[] = { OLDER_PROGRAMS,
							    { CHAIN_TICK, TICK },
							    {} };
static const struct chain_program wakeup_programs[] = { PROGRAMS, { CHAIN_TRACEPOINT, WAKE }, {} };
static const struct chain_program older_wakeup_programs[] = { OLDER_PROGRAMS,
							      { CHAIN_TRACEPOINT, WAKE },
							      {} };

static int parse(struct event_spec *spec, struct err *err)
{
	return event__parse_minimum(spec, "waiting", err);
}

static int attach_to(struct event *event, const char *program, const char *tracepoint,
		     struct err *err)
{
	return event__attach_raw(event, program, tracepoint, "to see threads wait", err);
}

static bool is_older(const struct event *event)
{
	const struct chain_program over = { CHAIN_TRACEPOINT, OVER };

	return bpf_program__fd(kernel_half__program(event->half, &over)) >= 0;
}

/* Attaches the returns first, as they must be reported before later events. A kernel without
 * restartable sequences only has threads without them. */
static int attach_older(struct event *event, struct err *err)
{
	const struct chain_program requested = { CHAIN_TRACEPOINT, SWITCH };
	int ret = attach_to(event, OVER, "sched_switch", err);
	struct bpf_link *link;

	if (!ret)
		ret = attach_to(event, OVER, "rseq_update", err);
	if (ret && ret != -ENOENT)
		return ret;
	link = bpf_program__attach(kernel_half__program(event->half, &requested));
	if (!link)
		return err__set(err, -errno, "cannot attach to the tracepoint sched_switch: %s",
				strerror(errno));
	return event__add_link(event, link, -1, err);
}

/* Attaches to the end of system calls when a thread needs it: each system call of the machine would
 * pay for it. */
static int follow(struct event *event, const struct event_place *place, struct err *err)
{
	(void)place;
	return kernel_half__waits_without_rseq(event->half)
		       ? attach_to(event, OVER, "sys_exit", err)
		       : 0;
}

/* Attaches the return first, so that each departure has a return. */
static int attach_switches(struct event *event, struct err *err)
{
	int ret;

	if (is_older(event))
		return attach_older(event, err);
	ret = attach_to(event, RETURN, NEWEST, err);
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

/* The waiting event's programs, if in the session, are already attached, and a wait ends only
 * once. */
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
	.help = "Time that threads wait: off-cpu, or off-cpu:1ms to leave out shorter waits",
	.type = CHAIN_TRACEPOINT,
	.programs = programs,
	.older_programs = older_programs,
	.newest = NEWEST,
	.slot = EVENT_OFF_CPU,
	.intervals = true,
	.parse = parse,
	.attach = attach,
	.follow = follow,
};

const struct event_kind event_wall = {
	.name = "wall",
	.argument = "[MIN]",
	.optional = true,
	.unit = "ns",
	.help = "All time of threads: running (sampled by the clock, -F) and waiting",
	.type = CHAIN_TRACEPOINT,
	.programs = wall_programs,
	.older_programs = older_wall_programs,
	.newest = NEWEST,
	.slot = EVENT_WALL,
	.intervals = true,
	.timed = true,
	.contains = &event_off_cpu,
	.parse = parse,
	.attach = attach_wall,
	.follow = follow,
	.detach = event__detach_clock,
	.slow_down = event__slow_clock,
};

const struct event_kind event_wakeup = {
	.name = "wakeup",
	.argument = "[MIN]",
	.optional = true,
	.unit = "ns",
	.help = "Wakeups of waiting threads, with the waker's stack, weighted by the time waited",
	.type = CHAIN_TRACEPOINT,
	.programs = wakeup_programs,
	.older_programs = older_wakeup_programs,
	.newest = NEWEST,
	.slot = EVENT_WAKEUP,
	.intervals = true,
	.parse = parse,
	.attach = attach_wakeup,
	.follow = follow,
};
