// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include "core/kernel/cpu_clock.h"

/* Whatever a CPU executes, by its clock: the share of samples is the share of CPU time. */

static int attach(struct event *event, const struct event_place *place, struct err *err)
{
	int n_cpus = libbpf_num_possible_cpus(), code = 0;

	(void)place;
	for (int cpu = 0; !code && cpu < n_cpus; cpu++) {
		struct bpf_link *link = NULL;
		int fd = -1;

		code = cpu_clock__attach_event(event->program, cpu, event->period_ns, event->number,
					       &link, &fd, err);
		if (!code && link)
			code = event__add_link(event, link, fd, err);
	}
	return code;
}

static int slow_down(struct event *event, uint32_t slowdown)
{
	uint64_t period = event->period_ns * slowdown;
	int code = 0;

	for (size_t i = 0; i < event->n_links; i++)
		if (ioctl(event->fds[i], PERF_EVENT_IOC_PERIOD, &period))
			code = -errno;
	return code;
}

/* What perf calls it is the same here, as only targets are sampled. */
static const char *other_name(size_t i)
{
	static const char *const names[] = { "cpu-clock", "task-clock", NULL };

	return names[i];
}

static int parse(struct event_spec *spec, struct err *err)
{
	(void)err;
	snprintf(spec->name, sizeof(spec->name), "%s", event_cpu.name);
	return 0;
}

const struct event_kind event_cpu = {
	.name = "cpu",
	.other_name = other_name,
	.parse = parse,
	.unit = "samples",
	.help = "CPU time, by the clock of each CPU",
	.type = CHAIN_TICK,
	.timed = true,
	.attach = attach,
	.slow_down = slow_down,
};
