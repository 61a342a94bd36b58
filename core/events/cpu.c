// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include "core/kernel/cpu_clock.h"
#include "core/kernel/varied_clock.h"

/* Whatever a CPU executes, by its clock: the share of samples is the share of CPU time. */

static int attach(struct event *event, const struct event_place *place, struct err *err)
{
	int n_cpus = libbpf_num_possible_cpus(), code = 0;
	struct varied_clock *clock;

	(void)place;
	for (int cpu = 0; !code && cpu < n_cpus; cpu++) {
		struct bpf_link *link = NULL;
		int fd = -1;

		code = cpu_clock__attach_event(event->program, cpu, event->period_ns, event->number,
					       &link, &fd, err);
		if (!code && link)
			code = event__add_link(event, link, fd, err);
	}
	if (!code)
		code = varied_clock__new(event->fds, event->n_links, event->period_ns, &clock, err);
	if (!code)
		event->own = clock;
	return code;
}

static void detach(struct event *event)
{
	varied_clock__free(event->own);
}

static int slow_down(struct event *event, uint32_t slowdown)
{
	return varied_clock__set_mean(event->own, event->period_ns * slowdown);
}

const struct event_kind event_cpu = {
	.name = "cpu",
	.unit = "samples",
	.help = "CPU time, by the clock of each CPU",
	.type = CHAIN_TICK,
	.timed = true,
	.attach = attach,
	.detach = detach,
	.slow_down = slow_down,
};
