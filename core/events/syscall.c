// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <bpf/bpf.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/privilege.h"
#include "core/base/syscalls.h"
#include "core/events/duration.h"
#include "core/events/nearest.h"

/* The duration of system calls: syscall:NAME, or all calls without an event of their own,
 * optionally with a minimum. One pair of programs serves all such events, with a table from calls
 * to events (bpf/syscall.bpf.c). */

#define EVENTS_MAP "syscall_events"

static int no_such(const char *name, struct err *err)
{
	struct nearest nearest = nearest__to(name, strlen(name));

	for (int number = syscall__next(0); number >= 0; number = syscall__next(number + 1))
		nearest__add(&nearest, syscall__name(number));
	return err__set(err, -EINVAL, "there is no system call '%s'%s%s%s", name,
			nearest.n ? ": did you mean " : "", nearest__text(&nearest),
			nearest.n ? "?" : "");
}

/* Parses NAME, MIN, or NAME:MIN. The name is "" if it is missing. */
static int take_apart(const char *argument, char *ret_name, size_t size, uint64_t *ret_minimum,
		      struct err *err)
{
	bool named = !isdigit((unsigned char)*argument);
	size_t len = named ? strcspn(argument, ":") : 0;
	const char *minimum = argument + len + (argument[len] == ':' && named);

	*ret_minimum = 0;
	snprintf(ret_name, size, "%.*s", (int)len, argument);
	if (argument[len] && duration__parse(minimum, ret_minimum))
		return err__set(err, -EINVAL,
				"the minimum time in syscall:%s must be a number with a unit, such "
				"as 1ms or 250us, not '%s'",
				argument, minimum);
	return named && syscall__number(ret_name) < 0 ? no_such(ret_name, err) : 0;
}

static int parse(struct event_spec *spec, struct err *err)
{
	char name[EVENT_NAME_BYTES];

	return take_apart(event__argument(spec), name, sizeof(name), &spec->minimum, err);
}

/* Returns true if the programs are attached for another event of the session. */
static int has_any(int fd)
{
	uint32_t event;

	for (uint32_t number = 0; number < SYSCALLS_MAX; number++)
		if (!bpf_map_lookup_elem(fd, &number, &event) && event)
			return 1;
	return 0;
}

/* Enters the event's calls into the table. A named call takes precedence over all calls. */
static int take_calls(int fd, const struct event *event)
{
	char name[EVENT_NAME_BYTES];
	uint64_t minimum;
	uint32_t number, taken;
	int one;

	take_apart(event__argument(&event->spec), name, sizeof(name), &minimum, NULL);
	one = syscall__number(name);
	for (number = 0; number < SYSCALLS_MAX; number++) {
		if (*name && (int)number != one)
			continue;
		if (!*name && !bpf_map_lookup_elem(fd, &number, &taken) && taken)
			continue;
		if (bpf_map_update_elem(fd, &number, &event->number, BPF_ANY))
			return -errno;
	}
	return 0;
}

static const struct chain_program programs[] = { { CHAIN_TRACEPOINT, "on_syscall_exit" },
						 { CHAIN_TRACEPOINT, "on_syscall_enter" },
						 {} };

static int attach(struct event *event, const struct event_place *place, struct err *err)
{
	static const char *const tracepoints[] = { "sys_exit", "sys_enter" };
	int fd = kernel_half__map_fd(event->half, EVENTS_MAP), code = 0;
	bool attached = has_any(fd);

	(void)place;
	for (int i = 0; !code && !attached && i < 2; i++) {
		struct bpf_link *link = bpf_program__attach_raw_tracepoint(
			kernel_half__program(event->half, &programs[i]), tracepoints[i]);

		if (!link && (errno == EPERM || errno == EACCES))
			return privilege__explain(1U << PRIVILEGE_EVENTS,
						  "to attach to system calls", err);
		code = link ? event__add_link(event, link, -1, err)
			    : err__set(err, -errno, "cannot attach to system calls: %s%s",
				       strerror(errno),
				       errno == ENOENT ? " (the kernel lacks "
							 "CONFIG_HAVE_SYSCALL_TRACEPOINTS). "
							 "uprobe:libc.so.6:NAME may work"
						       : "");
	}
	if (!code && take_calls(fd, event))
		code = err__set(err, -errno, "cannot write the table of system calls: %s",
				strerror(errno));
	return code;
}

const struct event_kind event_syscall = {
	.name = "syscall",
	.argument = "[NAME][:MIN]",
	.unit = "ns",
	.help = "Time of a system call, or of each system call, if it is at least MIN: "
		"syscall:read:1ms",
	.type = CHAIN_TRACEPOINT,
	.programs = programs,
	.slot = EVENT_SYSCALL,
	.intervals = true,
	.optional = true,
	.parse = parse,
	.attach = attach,
};
