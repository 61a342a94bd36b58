// SPDX-License-Identifier: GPL-2.0-or-later
/* The step from one sink to the next. No sample is lost, and none is in both. Ids, and all data
 * made of them, are valid for one sink only; data that the kernel half refers to stay. */
#include <errno.h>

#include "core/capture/capture_state.h"

int capture__complete(struct capture *capture, struct err *err)
{
	int ret = naming__run(capture->naming, true, err);

	if (!ret) /* false: must not wait for requests to processes */
		ret = naming_compiled__run(capture->compiled, false, err);
	capture->stats.kernel_unnamed = naming__kernel_unnamed(capture->naming);
	if (!ret)
		ret = stack_nodes__name_threads(capture->nodes, &capture->processes, err);
	if (ret)
		return ret;
	capture->carried = pending_values__take(capture->pending);
	return 0;
}

/* Records a pending sample in the new sink, if its process still runs the same program. The stack
 * is that of its time. */
static int record_again(struct capture *capture, const struct pending_record *record,
			struct err *err)
{
	const struct rec_sample *rec = (const struct rec_sample *)record->data;
	const struct process *process = tracker__find(capture->opts.tracker, rec->tgid);

	if (process && process->serial == record->serial)
		return capture__sample(capture, rec, record->size, NULL, err);
	capture__lose_record(capture, rec);
	return 0;
}

int capture__renew(struct capture *capture, struct sink *sink, struct err *err)
{
	struct pending_record *carried = capture->carried, *record;
	int ret;

	capture->carried = NULL;
	capture->opts.sink = sink;
	capture->stats = (struct capture_stats) {};
	ids__renew(capture->ids, sink);
	captured_set__renew(&capture->processes);
	place_frames__renew(capture->place_frames);
	sent_stacks__forget_results(capture->sent);
	naming__renew(capture->naming);
	naming_compiled__renew(capture->compiled);
	ret = stack_nodes__renew(capture->nodes) || copied_frames__renew(capture->copier)
		      ? err__set(err, -ENOMEM, "out of memory")
		      : capture__begin_events(capture, err);
	for (record = carried; !ret && record; record = record->next)
		ret = record_again(capture, record, err);
	pending_records__free(carried);
	return ret;
}
