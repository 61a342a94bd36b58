// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/base/privilege.h"
#include "core/base/syscalls.h"
#include "core/events/filter.h"
#include "core/events/nearest.h"

/* The kernel's tracepoints, as raw tracepoints: by name, and without tracefs, which is often not
 * mounted or unreadable. The subsystem's name is for users only: the kernel finds a tracepoint by
 * its own name. */

#define BTF_PREFIX "btf_trace_" /* prefix of a tracepoint's typedef in the kernel's BTF */
#define SYSCALLS   "syscalls:"	/* a subsystem that only tracefs has */
#define ENTER	   "sys_enter_"
#define EXIT	   "sys_exit_"

/* The parts of `tracepoint:SYS:NAME/FILTER/`. */
struct parts {
	char name[EVENT_NAME_BYTES]; /* the kernel's name */
	const char *filter;	     /* NULL: none */
	char text[EVENT_NAME_BYTES]; /* text of the filter */
	char required[64];	     /* a filter that must also match; "": none */
};

static int misnamed(const char *argument, struct err *err)
{
	return err__set(err, -EINVAL,
			"a tracepoint is tracepoint:SYS:NAME, such as "
			"tracepoint:sched:sched_switch, or with a filter tracepoint:SYS:NAME/"
			"FILTER/, not tracepoint:%s",
			argument);
}

/* Converts a tracepoint of a system call, which tracefs makes of raw_syscalls:sys_enter and
 * sys_exit by the number of the call. */
static int take_syscall(struct parts *ret, struct err *err)
{
	const char *name = ret->name;
	bool enter = !strncmp(name, ENTER, strlen(ENTER));
	const char *call = name + strlen(enter ? ENTER : EXIT);
	int number;

	if (!enter && strncmp(name, EXIT, strlen(EXIT)) != 0)
		return err__set(err, -EINVAL,
				"a tracepoint of system calls is tracepoint:" SYSCALLS ENTER
				"NAME or " EXIT "NAME, not %s",
				name);
	number = syscall__number(call);
	if (number < 0)
		return err__set(err, -EINVAL,
				"there is no system call '%s' (tracepoint:" SYSCALLS "%s)", call,
				name);
	/* Excludes calls of 32-bit code, which have other numbers. */
	snprintf(ret->required, sizeof(ret->required), "%s == %d && regs->cs == 0x33",
		 enter ? "id" : "regs->orig_ax", number);
	snprintf(ret->name, sizeof(ret->name), "%s", enter ? "sys_enter" : "sys_exit");
	return 0;
}

static int take_apart(const char *argument, struct parts *ret, struct err *err)
{
	const char *colon = strchr(argument, ':'), *slash = strchr(argument, '/'), *at;
	size_t len = slash ? (size_t)(slash - argument) : strlen(argument);
	const char *end = argument + len;

	*ret = (struct parts) {};
	if (!colon || colon == argument || colon + 1 >= end)
		return misnamed(argument, err);
	if (strcspn(argument, "*?[") < len)
		return err__set(err, -EINVAL,
				"a tracepoint cannot be a pattern: tracepoint:%s. Name up to %d "
				"tracepoints, separated by commas (braid events lists them)",
				argument, EVENTS_MAX);
	for (at = argument; at < end; at++)
		if (!isalnum((unsigned char)*at) && *at != '_' && at != colon)
			return err__set(err, -EINVAL,
					"tracepoint:%s is not the name of a tracepoint", argument);
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(end - colon - 1), colon + 1);
	if (slash) {
		snprintf(ret->text, sizeof(ret->text), "%s", slash + 1);
		len = strlen(ret->text);
		if (len < 2 || ret->text[len - 1] != '/')
			return err__set(err, -EINVAL,
					"a filter begins and ends with a slash, and has no comma: "
					"tracepoint:SYS:NAME/FILTER/, not tracepoint:%s",
					argument);
		ret->text[len - 1] = '\0';
		ret->filter = ret->text;
	}
	if (strncmp(argument, SYSCALLS, strlen(SYSCALLS)) != 0)
		return 0;
	return take_syscall(ret, err);
}

static int parse(struct event_spec *spec, struct err *err)
{
	struct filter_terms terms;
	struct parts parts;
	int code = take_apart(event__argument(spec), &parts, err);

	spec->filtered = parts.filter || parts.required[0];
	return code || !parts.filter ? code : filter_terms__parse(parts.filter, &terms, err);
}

static int set_values(struct event_spec *spec, struct err *err)
{
	struct parts parts;
	int code = take_apart(event__argument(spec), &parts, err);

	if (code)
		return code;
	if (parts.required[0] && !strcmp(parts.name, "sys_enter"))
		return event_values__of_syscall(&spec->values, err);
	return event_values__of_tracepoint(&spec->values, parts.name, err);
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

/* Writes the filter to the kernel half. */
static int put_filter(const struct event *event, uint32_t key, const struct parts *parts,
		      struct err *err)
{
	int fd = kernel_half__map_fd(event->half, "filters"), code = 0;
	struct btf *btf = btf__load_vmlinux_btf();
	struct event_filter filter = {};
	struct filter_terms terms;
	bool named;

	if (!btf)
		code = err__set(err, -errno, "cannot read the kernel's types (BTF): %s",
				strerror(errno));
	if (!code && !filter__arguments(btf, parts->name, &named))
		code = no_such(parts->name, err);
	if (!code && parts->required[0])
		code = filter_terms__parse(parts->required, &terms, err);
	if (!code && parts->required[0])
		code = filter__compile(&terms, btf, parts->name, &filter, err);
	if (!code && parts->filter)
		code = filter_terms__parse(parts->filter, &terms, err);
	if (!code && parts->filter)
		code = filter__compile(&terms, btf, parts->name, &filter, err);
	else
		filter.required = filter.n;
	btf__free(btf);
	if (!code && bpf_map_update_elem(fd, &key, &filter, BPF_ANY))
		code = err__set(err, -errno, "cannot set the filter: %s", strerror(errno));
	return code;
}

static int attach_at(struct event *event, const struct event_spec *at, bool begins,
		     const struct event_place *place, struct err *err)
{
	const struct bpf_program *program =
		begins ? kernel_half__begin(event->half, event->number)
		       : kernel_half__trigger(event->half, CHAIN_TRACEPOINT, event->number);
	struct bpf_link *link;
	struct parts parts;
	int code = take_apart(event__argument(at), &parts, err);
	uint64_t unused;

	(void)place;
	if (!code && !begins)
		code = event__put_spec_values(event, at, &unused, err);
	if (!code && at->filtered)
		code = put_filter(event, (begins ? FILTERS_BEGIN : 0) + event->number, &parts, err);
	if (code)
		return code;
	link = bpf_program__attach_raw_tracepoint(program, parts.name);
	code = link ? 0 : -errno;
	if (code == -ENOENT)
		return no_such(parts.name, err);
	if (code == -EPERM || code == -EACCES)
		return privilege__explain(1U << PRIVILEGE_EVENTS, "to attach to tracepoints", err);
	if (code)
		return err__set(err, code, "cannot attach to the tracepoint %s: %s", parts.name,
				strerror(-code));
	return event__add_link(event, link, -1, err);
}

static int attach(struct event *event, const struct event_place *place, struct err *err)
{
	return attach_at(event, &event->spec, false, place, err);
}

const struct event_kind event_tracepoint = {
	.name = "tracepoint",
	.argument = "SYS:NAME[/FILTER/]",
	.unit = "count",
	.help = "A tracepoint of the kernel, with an optional filter on its arguments: "
		"tracepoint:sched:sched_switch/prev->prio < 100/",
	.type = CHAIN_TRACEPOINT,
	.parse = parse,
	.values = set_values,
	.attach = attach,
	.attach_at = attach_at,
};
