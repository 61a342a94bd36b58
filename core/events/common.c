// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/privilege.h"
#include "core/events/duration.h"

/* Functions for kinds with a minimum interval, and with programs at their own tracepoints. */

int event__parse_minimum(struct event_spec *spec, const char *what, struct err *err)
{
	const char *argument = event__argument(spec);

	if (duration__parse(argument, &spec->minimum))
		return err__set(
			err, -EINVAL,
			"'%s' is not a minimum time of %s. Write %s:10us or %s:1ms, for example",
			argument, what, spec->kind->name, spec->kind->name);
	strcpy(spec->name, spec->kind->name);
	return 0;
}

int event__attach_raw(struct event *event, const char *program, const char *tracepoint,
		      const char *purpose, struct err *err)
{
	const struct chain_program requested = { CHAIN_TRACEPOINT, program };
	struct bpf_link *link = bpf_program__attach_raw_tracepoint(
		kernel_half__program(event->half, &requested), tracepoint);
	int ret = link ? 0 : -errno;

	if (ret == -EPERM || ret == -EACCES)
		return privilege__explain(1U << PRIVILEGE_EVENTS, purpose, err);
	if (ret)
		return err__set(err, ret, "cannot attach to the tracepoint %s: %s", tracepoint,
				strerror(-ret));
	return event__add_link(event, link, -1, err);
}

int event__open_statistics(struct event *event)
{
	int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	struct err err = {};

	if (fd >= 0)
		return fd;
	if (errno == EPERM)
		privilege__explain(1U << PRIVILEGE_STATISTICS,
				   "to read the kernel's BPF statistics", &err);
	else
		err__set(&err, -errno, "the kernel's BPF statistics are unavailable: %s",
			 strerror(errno));
	snprintf(event->note, sizeof(event->note),
		 "the limit of --max-overhead is not enforced: %.350s", err.text);
	return -1;
}

/* for tests: simulates a kernel without the optional tracepoints */
#define OLDER "BRAID_TEST_OLDER_KERNEL"

static bool has_tracepoint(const char *name)
{
	struct btf *btf = getenv(OLDER) ? NULL : btf__load_vmlinux_btf();
	char type[64];
	bool has;

	snprintf(type, sizeof(type), "btf_trace_%s", name);
	has = btf && btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) > 0;
	btf__free(btf);
	return has;
}

const struct chain_program *event_kind__programs(const struct event_kind *kind)
{
	return kind->newest && !has_tracepoint(kind->newest) ? kind->older_programs
							     : kind->programs;
}
