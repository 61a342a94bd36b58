// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/privilege.h"

/* Calls and returns of the kernel's functions. `fentry:` is accepted as other tools' name for it.
 * The kernel's own fentry programs each belong to one function, and so cannot reach the unwinder
 * and the walkers by tail calls. A kprobe at the same place, which the kernel implements by the
 * same means (ftrace), replaces them. */

#define KPROBES "/sys/bus/event_source/devices/kprobe/type"

static int parse(struct event_spec *spec, struct err *err)
{
	const char *argument = event__argument(spec), *at = argument;

	while (isalnum((unsigned char)*at) || *at == '_' || *at == '.')
		at++;
	spec->types = 1U << CHAIN_UPROBE;
	spec->functions = true;
	return *at ? err__set(err, -EINVAL,
			      "%s:%s does not name a function of the kernel. Write %s:FUNCTION, "
			      "such as %s:vfs_read",
			      spec->kind->name, argument, spec->kind->name, spec->kind->name)
		   : 0;
}

static int set_values(struct event_spec *spec, struct err *err)
{
	return event_values__of_kernel(&spec->values, event__argument(spec), err);
}

static int set_result(struct event_spec *spec, struct err *err)
{
	int code = event_values__of_return(&spec->values, spec->kind->name, err);

	spec->values.list[0].spec.is_kernel = true;
	return code;
}

static int refuse(int code, const struct event_spec *at, struct err *err)
{
	const char *function = event__argument(at);

	if (access(KPROBES_TYPE, F_OK))
		return err__set(err, -ENOTSUP,
				"this kernel has no kprobes (CONFIG_KPROBE_EVENTS). Use a "
				"tracepoint near %s instead (braid events lists them), or "
				"syscall:NAME if it serves a system call",
				function);
	if (code == -EPERM || code == -EACCES)
		return privilege__explain(1U << PRIVILEGE_EVENTS,
					  "to attach to functions of the kernel (tracepoints and "
					  "syscall:NAME may work)",
					  err);
	if (code == -ENOENT || code == -EADDRNOTAVAIL || code == -EINVAL)
		return err__set(err, -ENOENT,
				"cannot attach a kprobe to %s: there is no such function, or it is "
				"notrace, inlined, or on the kernel's blacklist",
				function);
	return err__set(err, code,
			"cannot attach to the kernel's function %s: %s. Tracepoints (braid events) "
			"and syscall:NAME may work",
			function, strerror(-code));
}

static int attach_at(struct event *event, const struct event_spec *at, bool begins,
		     const struct event_place *place, struct err *err)
{
	static const struct chain_program on_kprobe = { CHAIN_UPROBE, "on_kprobe" };
	LIBBPF_OPTS(bpf_kprobe_opts, opts, .bpf_cookie = event__cookie(event, begins),
		    .retprobe = at->kind == &event_kretprobe);
	uint64_t cookie = 0;
	struct bpf_link *link;
	int code = begins ? 0 : event__put_spec_values(event, at, &cookie, err);

	(void)place;
	if (code)
		return code;
	opts.bpf_cookie |= cookie;
	link = bpf_program__attach_kprobe_opts(kernel_half__program(event->half, &on_kprobe),
					       event__argument(at), &opts);
	return link ? event__add_link(event, link, -1, err) : refuse(-errno, at, err);
}

static int attach(struct event *event, const struct event_place *place, struct err *err)
{
	return attach_at(event, &event->spec, false, place, err);
}

#define KPROBE                                                                         \
	.argument = "FUNCTION", .unit = "count", .type = CHAIN_UPROBE, .parse = parse, \
	.attach = attach, .attach_at = attach_at

const struct event_kind event_kprobe = {
	.name = "kprobe",
	.help = "Calls of a function of the kernel: kprobe:vfs_read",
	.values = set_values,
	KPROBE,
};

const struct event_kind event_kretprobe = {
	.name = "kretprobe",
	.help = "Returns of such a function: kretprobe:vfs_read",
	.values = set_result,
	KPROBE,
};

const struct event_kind event_fentry = {
	.name = "fentry",
	.help = "Same as kprobe: fentry:vfs_read",
	.values = set_values,
	KPROBE,
};
