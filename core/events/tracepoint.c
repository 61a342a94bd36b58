// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <bpf/btf.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "core/base/privilege.h"
#include "core/events/nearest.h"

/* The kernel's tracepoints, as raw ones: by name and without tracefs, which is not mounted, or not
 * to be read, in many places. The name of the subsystem is for people: the kernel knows them by the
 * other one. */

#define BTF_PREFIX "btf_trace_" /* of a typedef that the kernel's BTF has for each */

static const char *name_of(const char *argument)
{
	return strchr(argument, ':') + 1;
}

static int parse(struct event_spec *spec, struct err *err)
{
	const char *argument = event__argument(spec);
	const char *colon = strchr(argument, ':'), *at;

	if (!colon || colon == argument || !colon[1])
		return err__set(err, -EINVAL,
				"a tracepoint is tracepoint:SYS:NAME, such as "
				"tracepoint:sched:sched_switch, not tracepoint:%s",
				argument);
	for (at = argument; *at; at++)
		if (!isalnum((unsigned char)*at) && *at != '_' && at != colon)
			return err__set(err, -EINVAL, "tracepoint:%s is no name of a tracepoint",
					argument);
	/* The kernel makes these from raw_syscalls:sys_enter, in tracefs only. */
	if (!strncmp(argument, "syscalls:", 9))
		return err__set(err, -EINVAL,
				"tracepoint:%s is none of the kernel's own, but derived from "
				"raw_syscalls:sys_%s, which comes with every system call: record "
				"tracepoint:raw_syscalls:sys_%s, or the function of the C library "
				"that calls it: uprobe:libc.so.6:%s",
				argument, strncmp(colon + 1, "sys_exit_", 9) ? "enter" : "exit",
				strncmp(colon + 1, "sys_exit_", 9) ? "enter" : "exit",
				strncmp(colon + 1, "sys_e", 5) ? "NAME" : strrchr(colon, '_') + 1);
	return 0;
}

static int no_such(const char *name, struct err *err)
{
	struct btf *btf = btf__load_vmlinux_btf();
	struct nearest nearest = nearest__to(name, strlen(name));
	unsigned n = btf ? btf__type_cnt(btf) : 0;
	int code;

	for (unsigned id = 1; id < n; id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);
		const char *text = btf__name_by_offset(btf, type->name_off);

		if (btf_is_typedef(type) && !strncmp(text, BTF_PREFIX, strlen(BTF_PREFIX)))
			nearest__add(&nearest, text + strlen(BTF_PREFIX));
	}
	code = err__set(err, -ENOENT, "this kernel has no tracepoint %s%s%s%s", name,
			nearest.n ? ": did you mean " : "", nearest__text(&nearest),
			nearest.n ? "?" : "");
	btf__free(btf);
	return code;
}

static int attach(struct event *event, const struct event_place *place, struct err *err)
{
	const char *name = name_of(event__argument(&event->spec));
	struct bpf_link *link = bpf_program__attach_raw_tracepoint(event->program, name);
	int code = link ? 0 : -errno;

	(void)place;
	if (code == -ENOENT)
		return no_such(name, err);
	if (code == -EPERM || code == -EACCES)
		return privilege__explain(1U << PRIVILEGE_EVENTS, "to attach to tracepoints", err);
	if (code)
		return err__set(err, code, "cannot attach to the tracepoint %s: %s", name,
				strerror(-code));
	return event__add_link(event, link, -1, err);
}

const struct event_kind event_tracepoint = {
	.name = "tracepoint",
	.argument = "SYS:NAME",
	.unit = "count",
	.help = "A tracepoint of the kernel: tracepoint:sched:sched_switch",
	.type = CHAIN_TRACEPOINT,
	.parse = parse,
	.attach = attach,
};
