// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/live/live_profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text_ids.h"
#include "core/base/util.h"
#include "core/live/live_waits.h"
#include "core/live/live_window.h"

struct live_profile {
	struct sink sink; /* the first member: see live_of() */
	struct recorded recorded;
	struct text_ids functions; /* ids of recorded.functions */
	struct live_window window;
	struct live_waits waits;
	struct live_queue queue;
	struct queued_sample *taken; /* by live_profile__next(); owned */
	size_t bytes_max, evict_at;
	uint64_t samples, evicted;
};

static const struct sink_ops live_ops;

static struct live_profile *live_of(struct sink *sink)
{
	return (struct live_profile *)sink;
}

int live_profile__new(size_t bytes_max, struct live_profile **ret)
{
	struct live_profile *live = calloc(1, sizeof(*live));

	if (!live)
		return -ENOMEM;
	live->sink.ops = &live_ops;
	live_waits__init(&live->waits);
	live_queue__init(&live->queue, 0);
	live->bytes_max = live->evict_at = bytes_max;
	if (recorded__init(&live->recorded)) {
		live_profile__free(live);
		return -ENOMEM;
	}
	*ret = live;
	return 0;
}

void live_profile__free(struct live_profile *live)
{
	if (!live)
		return;
	live_window__done(&live->window);
	live_waits__done(&live->waits);
	live_queue__done(&live->queue);
	free(live->taken);
	recorded__done(&live->recorded);
	text_ids__done(&live->functions);
	free(live);
}

struct sink *live_profile__sink(struct live_profile *live)
{
	return &live->sink;
}

int live_profile__kind(struct live_profile *live, int kind, const char *name, const char *suffix)
{
	return recorded__add_kind(&live->recorded, kind, name, suffix);
}

int live_profile__window(struct live_profile *live, unsigned slots, uint64_t now_ns)
{
	return live_window__init(&live->window, slots, now_ns);
}

void live_profile__advance(struct live_profile *live, uint64_t now_ns)
{
	live_window__advance(&live->window, &live->recorded, now_ns);
}

int live_profile__get(const struct live_profile *live, const struct profile_filter *filter,
		      struct profile **ret, struct merge_report *report, struct err *err)
{
	struct profile *profile;
	int code = build__profile(&live->recorded, "the profile", filter, &profile, report, err);

	if (code)
		return code;
	if (profile__add_loss(profile, "samples of stacks evicted to save memory", live->evicted)) {
		profile__free(profile);
		return err__set(err, -ENOMEM, "out of memory");
	}
	*ret = profile;
	return 0;
}

static size_t bytes_of(const struct live_profile *live)
{
	return recorded__bytes(&live->recorded) + live_window__bytes(&live->window);
}

void live_profile__stats(const struct live_profile *live, struct live_profile_stats *ret)
{
	*ret = (struct live_profile_stats) { .samples = live->samples,
					     .evicted = live->evicted,
					     .dropped = live->queue.dropped,
					     .stacks = live->recorded.stacks.n,
					     .bytes = bytes_of(live) };
}

/* --- eviction --- */

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Marks the half of the stacks with the newest samples; NULL: out of memory. */
static bool *newer_half(const struct recorded *recorded)
{
	size_t n = recorded->stacks.n;
	uint64_t *last = malloc((n + 1) * sizeof(*last));
	bool *newer = calloc(n + 1, sizeof(*newer));

	for (size_t i = 0; last && i < n; i++)
		last[i] = recorded->stacks.rows[i].last;
	if (last && newer) {
		qsort(last, n, sizeof(*last), compare_numbers);
		for (size_t i = 0; i < n; i++)
			newer[i] = recorded->stacks.rows[i].last >= last[n / 2];
	}
	if (!last) {
		free(newer);
		newer = NULL;
	}
	free(last);
	return newer;
}

static int evict_half(struct live_profile *live)
{
	bool *newer = newer_half(&live->recorded);
	struct recorded retained = {};
	int ret = newer ? recorded__init(&retained) : -ENOMEM;

	if (!ret)
		ret = recorded__keep(&live->recorded, newer, &retained);
	for (size_t i = 0; !ret && i < live->recorded.stacks.n; i++)
		live->evicted += newer[i] ? 0 : live->recorded.stacks.rows[i].samples;
	if (!ret && live->window.n)
		ret = live_window__keep(&live->window, newer, live->recorded.stacks.n);
	free(newer);
	if (ret) {
		recorded__done(&retained);
		return ret;
	}
	recorded__done(&live->recorded);
	live->recorded = retained;
	text_ids__forget(&live->functions);
	live->sink.forgot = true;
	return 0;
}

/* Evicts stacks until half of the limit is free, if possible, so that the next eviction is not
 * soon. */
static int make_room(struct live_profile *live)
{
	int ret = 0;

	if (bytes_of(live) <= live->evict_at)
		return 0;
	do {
		ret = evict_half(live);
	} while (!ret && live->recorded.stacks.n > 1 && bytes_of(live) > live->bytes_max / 2);
	/* Rows that cannot be evicted, mainly threads, must not cause one eviction per sample. */
	live->evict_at = max_of(live->bytes_max, 2 * bytes_of(live));
	return ret;
}

/* --- the sink --- */

static int result(int code, struct err *err)
{
	if (code == -EBADMSG)
		return err__set(err, code, "a stack is too deep");
	return code ? err__set(err, code, "out of memory") : 0;
}

static int take_event(struct sink *sink, uint32_t id, const struct sink_event *event,
		      struct err *err)
{
	return result(recorded__add_event(&live_of(sink)->recorded, id, event->name, event->unit),
		      err);
}

static int take_process(struct sink *sink, uint32_t id, const struct sink_process *process,
			struct err *err)
{
	struct recorded *recorded = &live_of(sink)->recorded;

	return result(recorded__add_process(recorded, id, process->pid, process->name,
					    process->cgroup, process->container)
			      ?: recorded__set_command(recorded, id, process->command ?: ""),
		      err);
}

static int take_process_is_called(struct sink *sink, uint32_t id, const char *name,
				  const char *command, struct err *err)
{
	struct recorded *recorded = &live_of(sink)->recorded;

	return result(recorded__name_process(recorded, id, name)
			      ?: recorded__set_command(recorded, id, command),
		      err);
}

static int take_thread(struct sink *sink, uint32_t id, uint32_t process, uint32_t tid,
		       const char *name, struct err *err)
{
	return result(recorded__add_thread(&live_of(sink)->recorded, id, process, tid, name), err);
}

static int take_thread_is_called(struct sink *sink, uint32_t id, const char *name, struct err *err)
{
	return result(recorded__name_thread(&live_of(sink)->recorded, id, name), err);
}

static int take_image(struct sink *sink, uint32_t id, const char *path, const char *build_id,
		      struct err *err)
{
	(void)build_id;
	return result(recorded__add_image(&live_of(sink)->recorded, id, path, build_id), err);
}

static int take_frame(struct sink *sink, uint32_t id, const struct sink_frame *frame,
		      struct err *err)
{
	return result(recorded__add_frame(&live_of(sink)->recorded, id, frame, !frame->image), err);
}

static int take_frame_is_loop(struct sink *sink, uint32_t id, struct err *err)
{
	struct recorded *recorded = &live_of(sink)->recorded;
	uint32_t frame = recorded__find(&recorded->frames, id);

	(void)err;
	if (frame != RECORDED_NONE)
		recorded->frames.rows[frame].loop = true;
	return 0;
}

static int add_location(struct live_profile *live, uint32_t frame,
			const struct sink_location *location)
{
	const char *file = location->file ? location->file : "";
	uint32_t function;
	bool is_new;

	if (text_ids__at(&live->functions, 0, 0, location->function, file, &function, &is_new))
		return -ENOMEM;
	if (is_new && recorded__add_function(&live->recorded, function, location->function, file))
		return -ENOMEM;
	return recorded__add_location(&live->recorded, frame, location->kind, function,
				      location->line);
}

static int take_locations(struct sink *sink, uint32_t id, const struct sink_location *locations,
			  size_t n, struct err *err)
{
	struct live_profile *live = live_of(sink);
	uint32_t frame = recorded__find(&live->recorded.frames, id);
	int ret = 0;

	if (frame == RECORDED_NONE)
		return 0; /* the frame was evicted */
	live->recorded.frames.rows[frame].n_locations = 0;
	for (size_t i = 0; !ret && i < n; i++)
		ret = add_location(live, frame, &locations[i]);
	return result(ret, err);
}

/* Returns true for a node that was offered and is evicted. */
static bool went(const struct recorded *recorded, uint32_t node)
{
	return node && recorded__find(&recorded->nodes, node) == RECORDED_NONE;
}

static int take_node(struct sink *sink, uint32_t id, const struct sink_node *node, struct err *err)
{
	struct recorded *recorded = &live_of(sink)->recorded;

	if (went(recorded, node->parent) ||
	    recorded__find(&recorded->frames, node->frame) == RECORDED_NONE)
		return 0;
	return result(recorded__add_node(recorded, id, node), err);
}

static bool is_interval(const struct recorded *recorded, uint32_t id)
{
	uint32_t event = recorded__find(&recorded->events, id);

	return event != RECORDED_NONE &&
	       !strcmp(recorded__text(recorded, recorded->events.rows[event].unit), SINK_UNIT_NS);
}

static int add_to_window(struct live_profile *live, const struct sink_sample *sample)
{
	struct recorded *recorded = &live->recorded;
	struct recorded_stack *row;
	int ret = recorded__stack(recorded, sample, &row);

	if (ret)
		return ret;
	row->last = ++recorded->n_samples;
	if (sample->flags & SAMPLE_UNDER_WAY)
		return live_window__add_under_way(&live->window, recorded,
						  row - recorded->stacks.rows, sample);
	return live_window__add(&live->window, recorded, row - recorded->stacks.rows, sample,
				is_interval(recorded, sample->event));
}

/* Returns true if a row that the sample needs is evicted. */
static bool lacks(const struct recorded *recorded, const struct sink_sample *sample)
{
	return went(recorded, sample->native) || went(recorded, sample->runtime) ||
	       (sample->thread &&
		recorded__find(&recorded->threads, sample->thread) == RECORDED_NONE);
}

void live_profile__look(struct live_profile *live)
{
	live_window__drop_under_way(&live->window, &live->recorded);
	live_waits__advance(&live->waits);
}

int live_profile__waits(struct live_profile *live, uint32_t tid, uint64_t since_ns, uint64_t now_ns)
{
	const struct sink_sample *before = live_waits__find(&live->waits, tid, since_ns);
	struct sink_sample sample;

	if (!before || lacks(&live->recorded, before))
		return 0;
	sample = *before;
	sample.time_ns = now_ns;
	sample.value = sample.total = now_ns - since_ns;
	sample.weight = 1;
	return add_to_window(live, &sample) || live_waits__add(&live->waits, tid, &sample) ? -ENOMEM
											   : 1;
}

/* Adds a wait that has not ended, up to now. */
static int take_under_way(struct live_profile *live, const struct sink_sample *sample)
{
	uint32_t thread = recorded__find(&live->recorded.threads, sample->thread);
	int ret;

	if (!live->window.n || thread == RECORDED_NONE || lacks(&live->recorded, sample))
		return 0;
	ret = add_to_window(live, sample);
	return ret ? ret
		   : live_waits__add(&live->waits, live->recorded.threads.rows[thread].tid, sample);
}

static int take_sample(struct sink *sink, const struct sink_sample *sample, struct err *err)
{
	struct live_profile *live = live_of(sink);
	int ret;

	if (sample->flags & SAMPLE_UNDER_WAY)
		return result(take_under_way(live, sample), err);
	live->samples++;
	if (live->queue.max)
		return sample->flags & SAMPLE_REST
			       ? 0
			       : result(live_queue__add(&live->queue, sample), err);
	if (lacks(&live->recorded, sample)) {
		live->evicted++;
		return 0;
	}
	ret = live->window.n ? add_to_window(live, sample)
			     : recorded__add_sample(&live->recorded, sample);
	return result(ret ? ret : make_room(live), err);
}

static int take_context(struct sink *sink, uint32_t id, const struct sink_context *context,
			struct err *err)
{
	struct live_profile *live = live_of(sink);

	return live->queue.max ? result(live_queue__context(&live->queue, id, context), err) : 0;
}

void live_profile__queue(struct live_profile *live, size_t max)
{
	live_queue__init(&live->queue, max);
}

int live_profile__next(struct live_profile *live, bool stack, struct live_sample *ret)
{
	struct recorded *recorded = &live->recorded;
	const struct sink_sample *sample;
	uint32_t event;
	int code = 0;

	free(live->taken);
	live->taken = live_queue__take(&live->queue);
	if (!live->taken)
		return 0;
	sample = &live->taken->sample;
	event = recorded__find(&recorded->events, sample->event);
	if (event == RECORDED_NONE)
		return -ENOENT;
	if (stack) {
		recorded__clear_samples(recorded);
		if (!lacks(recorded, sample))
			code = recorded__add_sample(recorded, sample);
		else
			live->evicted++;
		code = code ? code : make_room(live);
	}
	*ret = (struct live_sample) {
		.queued = live->taken,
		.event = recorded__text(recorded, recorded->events.rows[event].name),
		.unit = recorded__text(recorded, recorded->events.rows[event].unit),
		.thread =
			group__thread(recorded, recorded__find(&recorded->threads, sample->thread)),
	};
	return code ? code : 1;
}

static int take_source(struct sink *sink, const struct sink_source *source, struct err *err)
{
	(void)sink, (void)source, (void)err; /* profiles do not show sources */
	return 0;
}

static bool has_frame(const struct sink *sink, uint32_t id)
{
	const struct live_profile *live = (const struct live_profile *)sink;

	return recorded__find(&live->recorded.frames, id) != RECORDED_NONE;
}

static bool has_node(const struct sink *sink, uint32_t id)
{
	const struct live_profile *live = (const struct live_profile *)sink;

	return recorded__find(&live->recorded.nodes, id) != RECORDED_NONE;
}

static const struct sink_ops live_ops = {
	.event = take_event,
	.process = take_process,
	.thread = take_thread,
	.process_is_called = take_process_is_called,
	.thread_is_called = take_thread_is_called,
	.image = take_image,
	.frame = take_frame,
	.frame_is_loop = take_frame_is_loop,
	.locations = take_locations,
	.node = take_node,
	.next_context = take_context,
	.sample = take_sample,
	.source = take_source,
	.has_frame = has_frame,
	.has_node = has_node,
};
