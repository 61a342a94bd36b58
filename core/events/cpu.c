// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <stdio.h>

#include "core/kernel/cpu_clock.h"
#include "core/kernel/sample_rate.h"
#include "core/kernel/varied_clock.h"

/* CPU time, by the clock of each CPU: the share of samples is the share of CPU time. */

int event__attach_clock(struct event *event, const struct bpf_program *program, struct err *err)
{
	int n_cpus = libbpf_num_possible_cpus(), code = 0;
	size_t first = event->n_links;
	struct varied_clock *clock;

	code = sample_rate__check(event->period_ns, err);
	for (int cpu = 0; !code && cpu < n_cpus; cpu++) {
		struct bpf_link *link = NULL;
		int fd = -1;

		code = cpu_clock__attach(program, cpu, event->period_ns, event->number, &link, &fd,
					 err);
		if (!code && link)
			code = event__add_link(event, link, fd, err);
	}
	if (!code)
		code = varied_clock__new(event->fds + first, event->n_links - first,
					 event->period_ns, &clock, err);
	if (!code)
		event->own = clock;
	return code;
}

static int attach(struct event *event, const struct event_place *place, struct err *err)
{
	(void)place;
	return event__attach_clock(event, event->program, err);
}

#define STOPPED_LEAST 0.005 /* fraction of the time; less is not reported */

static void note_stopped(struct event *event)
{
	event->stopped = varied_clock__stopped(event->own);
	if (event->stopped < STOPPED_LEAST)
		return;
	snprintf(event->note, sizeof(event->note),
		 "the kernel stopped the clock for %.2g %% of the time, which has no "
		 "samples: " SAMPLE_RATE_SETTING " is %llu. All times are too short",
		 100 * event->stopped, (unsigned long long)sample_rate__limit());
}

void event__detach_clock(struct event *event)
{
	if (event->own)
		note_stopped(event);
	varied_clock__free(event->own);
}

int event__slow_clock(struct event *event, uint32_t slowdown)
{
	return varied_clock__set_mean(event->own, event->period_ns * slowdown);
}

/* Returns perf's names for the same event; braid samples only targets in any case. */
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
	.help = "CPU time, sampled by a clock on each CPU",
	.type = CHAIN_TICK,
	.timed = true,
	.attach = attach,
	.detach = event__detach_clock,
	.slow_down = event__slow_clock,
};
