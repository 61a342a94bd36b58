// SPDX-License-Identifier: GPL-2.0-or-later
/* Occurrences without a sample: those that the kernel half counted (bpf/budget.bpf.h), and those of
 * samples that were lost in this half. */
#include <string.h>

#include "core/base/util.h"
#include "core/capture/capture_state.h"

void capture__lose(struct capture *capture, const struct lost_sample *lost)
{
	const struct capture_event *event;
	uint64_t ticks = 1;
	struct rest_rec *rest;

	if (!lost->event || lost->event > capture->opts.n_events)
		return;
	event = &capture->opts.events[lost->event - 1];
	rest = &capture->lost[lost->event - 1];
	if (event->outstanding) /* the memory may have been freed */
		return;
	if (event->timed && lost->state <= STATE_RUNS)
		ticks = tick_weight__at(&capture->weight, lost->time_ns);
	rest->weight += lost->weight * ticks;
	rest->total += event->pending ? lost->object * lost->weight : lost->total * ticks;
}

/* Multiplies @rest by the weight of a tick. The kernel half counts ticks, whose weights differ. */
static void add_weight_of_ticks(const struct capture *capture, uint32_t event, uint64_t time_ns,
				struct rest_rec *rest)
{
	const struct capture_event *sampled = &capture->opts.events[event - 1];
	uint32_t ticks = tick_weight__at(&capture->weight, time_ns);

	if (!sampled->timed || strcmp(sampled->event.unit, SINK_UNIT_SAMPLES) != 0)
		return;
	rest->weight *= ticks;
	rest->total *= ticks;
}

/* Records the occurrences of an event with pending values, whose values are unknown. Two rows give
 * the exact sum of the objects. */
static int record_pending(struct capture *capture, struct sink_sample *row,
			  const struct rest_rec *rest, struct err *err)
{
	uint64_t over = rest->total % rest->weight;
	int ret = 0;

	row->value = row->total = 0;
	row->object = rest->total / rest->weight;
	row->weight = rest->weight - over;
	ret = ids__sample(capture->ids, row, err);
	if (ret || !over)
		return ret;
	row->object++;
	row->weight = over;
	return ids__sample(capture->ids, row, err);
}

int capture__rest(struct capture *capture, uint32_t event, const struct capture_rest *of,
		  struct err *err)
{
	const struct capture_event *sampled = &capture->opts.events[event - 1];
	struct rest_rec rest = of->kernel, *lost = &capture->lost[event - 1];
	struct sink_sample row = { .time_ns = of->time_ns,
				   .event = event,
				   .flags = SAMPLE_COMPLETE | SAMPLE_REST,
				   .condition = { .state = of->state, .syscall = NO_SYSCALL } };

	add_weight_of_ticks(capture, event, of->time_ns, &rest);
	pending_values__give_back(capture->pending, event, of->last, lost);
	rest.weight += lost->weight;
	rest.total += lost->total;
	*lost = (struct rest_rec) {};
	if (!rest.weight && !rest.total)
		return 0;
	if (sampled->pending && of->minimum) { /* the values may or may not reach the minimum */
		capture->stats.untimed += rest.weight;
		return 0;
	}
	capture->stats.rests[event - 1] = rest;
	if (sampled->pending && rest.weight)
		return record_pending(capture, &row, &rest, err);
	row.value = rest.total / max_of(rest.weight, (__u64)1);
	row.weight = rest.weight;
	row.total = rest.total;
	capture->stats.sums[event - 1][of->state] += rest.total;
	return ids__sample(capture->ids, &row, err);
}
