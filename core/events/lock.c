// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <errno.h>
#include <string.h>

#include "core/base/privilege.h"
#include "core/events/duration.h"

/* Contended locks: threads that wait for a futex, and those that let them go on (bpf/lock.bpf.c).
 * Both events can be in one recording: the programs are attached once. */

static const struct chain_program programs[] = { { CHAIN_TRACEPOINT, "lock_on_sys_enter" },
						 { CHAIN_TRACEPOINT, "lock_on_sys_exit" },
						 {} };

static int parse(struct event_spec *spec, struct err *err)
{
	const char *argument = event__argument(spec);

	if (duration__parse(argument, &spec->minimum))
		return err__set(err, -EINVAL,
				"%s is not the shortest time of waiting that is wanted: "
				"%s:10us, %s:1ms",
				argument, spec->kind->name, spec->kind->name);
	strcpy(spec->name, spec->kind->name);
	return 0;
}

static int attach_to(struct event *event, const struct chain_program *program,
		     const char *tracepoint, struct err *err)
{
	struct bpf_link *link = bpf_program__attach_raw_tracepoint(
		kernel_half__program(event->half, program), tracepoint);
	int ret = link ? 0 : -errno;

	if (ret == -EPERM || ret == -EACCES)
		return privilege__explain(1U << PRIVILEGE_EVENTS, "to see threads wait for locks",
					  err);
	if (ret)
		return err__set(err, ret, "cannot attach to the tracepoint %s: %s", tracepoint,
				strerror(-ret));
	return event__add_link(event, link, -1, err);
}

/* The end first: what begins is to be seen when it ends. */
static int attach(struct event *event, const struct event_place *place, struct err *err)
{
	int ret = attach_to(event, &programs[1], "sys_exit", err);

	(void)place;
	return ret ? ret : attach_to(event, &programs[0], "sys_enter", err);
}

static int attach_holder(struct event *event, const struct event_place *place, struct err *err)
{
	return place->locks ? 0 : attach(event, place, err);
}

const struct event_kind event_lock = {
	.name = "lock",
	.argument = "[MIN]",
	.optional = true,
	.unit = "ns",
	.help = "Time in which threads wait for locks: lock, or lock:1ms for nothing shorter",
	.type = CHAIN_TRACEPOINT,
	.programs = programs,
	.slot = EVENT_LOCK,
	.intervals = true,
	.parse = parse,
	.attach = attach,
};

const struct event_kind event_lock_holder = {
	.name = "lock-holder",
	.argument = "[MIN]",
	.optional = true,
	.unit = "ns",
	.help = "Who lets threads go on that wait for a lock, by how long the first has waited",
	.type = CHAIN_TRACEPOINT,
	.programs = programs,
	.slot = EVENT_LOCK_HOLDER,
	.intervals = true,
	.parse = parse,
	.attach = attach_holder,
};
