// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/events/duration.h"
#include "core/events/lock_calls.h"

/* Contended locks: threads that wait for a futex, and threads that end such waits (bpf/lock.bpf.c).
 * Both events can be in one recording: the programs are attached once. */

static const struct chain_program programs[] = { { CHAIN_TRACEPOINT, "lock_on_sys_enter" },
						 { CHAIN_TRACEPOINT, "lock_on_sys_exit" },
						 {} };

#define OF_CALLS "pthread"

/* Parses [MIN], or pthread[:MIN]. */
static int parse(struct event_spec *spec, struct err *err)
{
	const char *argument = event__argument(spec);
	size_t len = strlen(OF_CALLS);

	if (!strncmp(argument, OF_CALLS, len) && (!argument[len] || argument[len] == ':')) {
		if (argument[len] && duration__parse(argument + len + 1, &spec->minimum))
			return err__set(err, -EINVAL,
					"'%s' is not a minimum time of waiting. Write "
					"lock:pthread:10us or lock:pthread:1ms, for example",
					argument + len + 1);
		spec->kind = &event_lock_calls;
		strcpy(spec->name, "lock:" OF_CALLS);
		return 0;
	}
	return event__parse_minimum(spec, "waiting", err);
}

static int parse_holder(struct event_spec *spec, struct err *err)
{
	return event__parse_minimum(spec, "waiting", err);
}

static int attach_to(struct event *event, const struct chain_program *program,
		     const char *tracepoint, struct err *err)
{
	return event__attach_raw(event, program->name, tracepoint, "to see threads wait for locks",
				 err);
}

/* Attaches the end first, so that each start has an end. */
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
	.argument = "[pthread][:MIN]",
	.optional = true,
	.unit = "ns",
	.help = "Time that threads wait for locks: lock, or lock:1ms to leave out shorter waits; "
		"lock:pthread[:MIN] for calls of the C library, by probes",
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
	.help = "Releases of a lock that threads wait for, weighted by how long the first one "
		"waited",
	.type = CHAIN_TRACEPOINT,
	.programs = programs,
	.slot = EVENT_LOCK_HOLDER,
	.intervals = true,
	.parse = parse_holder,
	.attach = attach_holder,
};
