// SPDX-License-Identifier: GPL-2.0-or-later
/* A frame that capture offers repeatedly reaches its sink once, under dense IDs. */
#include "core/capture/ids.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/profile/profile.h"
#include "tests/tap.h"

/* A sink that writes down its calls. */
static struct {
	struct sink sink;
	char text[2000];
	uint32_t n_frames, last_frame;
	bool dense;	   /* true: the IDs of frames are dense */
	int fails;	   /* return value of each call */
	uint32_t retained; /* frames and nodes with IDs up to this still exist */
} taker;
static struct err err;

#define TAKE(...)                                                                           \
	(snprintf(taker.text + strlen(taker.text), sizeof(taker.text) - strlen(taker.text), \
		  __VA_ARGS__),                                                             \
	 taker.fails)

static int take_event(struct sink *sink, uint32_t id, const struct sink_event *event, struct err *e)
{
	(void)sink, (void)e;
	return TAKE("event %u %s %s\n", id, event->name, event->unit);
}

static int take_process(struct sink *sink, uint32_t id, const struct sink_process *process,
			struct err *e)
{
	(void)sink, (void)e;
	return TAKE("process %u %u\n", id, process->pid);
}

static int take_thread(struct sink *sink, uint32_t id, uint32_t process, uint32_t tid,
		       const char *name, struct err *e)
{
	(void)sink, (void)e;
	return TAKE("thread %u %u %u %s\n", id, process, tid, name);
}

static int take_thread_is_called(struct sink *sink, uint32_t id, const char *name, struct err *e)
{
	(void)sink, (void)e;
	return TAKE("thread %u is called %s\n", id, name);
}

static int take_image(struct sink *sink, uint32_t id, const char *path, const char *build_id,
		      struct err *e)
{
	(void)sink, (void)e;
	return TAKE("image %u %s %s\n", id, path, build_id);
}

static int take_frame(struct sink *sink, uint32_t id, const struct sink_frame *frame, struct err *e)
{
	(void)sink, (void)e;
	taker.dense = taker.dense && id == ++taker.n_frames;
	return taker.n_frames > 10
		       ? taker.fails
		       : TAKE("frame %u %d %u %u %llx %d\n", id, frame->kind, frame->image,
			      frame->process, (unsigned long long)frame->address, frame->loop);
}

static int take_frame_is_loop(struct sink *sink, uint32_t id, struct err *e)
{
	(void)sink, (void)e;
	return TAKE("loop %u\n", id);
}

static int take_locations(struct sink *sink, uint32_t frame, const struct sink_location *locations,
			  size_t n, struct err *e)
{
	(void)sink, (void)e;
	return TAKE("locations %u %s %zu\n", frame, locations->function, n);
}

static int take_node(struct sink *sink, uint32_t id, const struct sink_node *node, struct err *e)
{
	(void)sink, (void)e;
	return TAKE("node %u %u %u %lld\n", id, node->parent, node->frame, (long long)node->offset);
}

static int take_sample(struct sink *sink, const struct sink_sample *sample, struct err *e)
{
	(void)sink, (void)e;
	return TAKE("sample %u %llu\n", sample->event, (unsigned long long)sample->value);
}

static int take_source(struct sink *sink, const struct sink_source *source, struct err *e)
{
	(void)sink, (void)e;
	return TAKE("source %u %s\n", source->process, source->source);
}

static bool is_retained(const struct sink *sink, uint32_t id)
{
	(void)sink;
	return id <= taker.retained;
}

static const struct sink_ops ops = {
	.has_frame = is_retained,
	.has_node = is_retained,
	.event = take_event,
	.process = take_process,
	.thread = take_thread,
	.thread_is_called = take_thread_is_called,
	.image = take_image,
	.frame = take_frame,
	.frame_is_loop = take_frame_is_loop,
	.locations = take_locations,
	.node = take_node,
	.sample = take_sample,
	.source = take_source,
};

static struct ids *begin(void)
{
	struct ids *ids = NULL;

	memset(&taker, 0, sizeof(taker));
	taker.sink.ops = &ops;
	taker.dense = true;
	ok(!ids__new(&taker.sink, &ids, &err), "begins");
	return ids;
}

/* Returns the calls since the last call of taken(). */
static const char *taken(void)
{
	static char text[sizeof(taker.text)];

	snprintf(text, sizeof(text), "%s", taker.text);
	taker.text[0] = '\0';
	return text;
}

static void test_texts(void)
{
	static const struct sink_event event = { "cpu", "samples" };
	static const struct sink_process app = { .pid = 42 };
	struct ids *ids = begin();
	uint32_t id, again, thread;

	ids__event(ids, &event, &id, &err);
	is_int(id, 1, "the first event is 1");
	ids__process(ids, &app, &id, &err);
	ids__process(ids, &app, &id, &err);
	is_str(taken(), "event 1 cpu samples\nprocess 1 42\nprocess 2 42\n",
	       "a process is a new one each time");
	ids__thread(ids, 2, 43, "worker", &thread, &err);
	ids__thread(ids, 2, 43, "renamed", &id, &err);
	ids__thread(ids, 1, 43, "worker", &id, &err);
	ids__thread(ids, 2, 43, "worker", &again, &err);
	is_int(again, thread, "a thread is known again");
	is_str(taken(), "thread 1 2 43 worker\nthread 2 2 43 renamed\nthread 3 1 43 worker\n",
	       "by process, number and name");
	ids__thread_is_called(ids, thread, "the worker", &err);
	is_str(taken(), "thread 1 is called the worker\n", "the program's name for it");
	ids__image(ids, "/bin/app", "ab", &id, &err);
	ids__image(ids, "/bin/ap", "pab", &again, &err);
	ids__image(ids, "/bin/app", "ab", &again, &err);
	is_int(again, id, "an image is known again");
	is_str(taken(), "image 1 /bin/app ab\nimage 2 /bin/ap pab\n",
	       "texts that only run together alike are two");
	ids__free(ids);
}

static void test_stacks(void)
{
	struct ids_frame frame = { .kind = KIND_NATIVE, .process = 1, .address = 0x10 };
	static const struct sink_location name = { KIND_NATIVE, "f", NULL, 0 };
	struct ids *ids = begin();
	struct sink_sample sample = {
		.event = 1, .value = UINT64_MAX, .weight = UINT64_MAX, .total = UINT64_MAX
	};
	uint32_t id, first, again;
	bool is_new;

	ids__process(ids, &(struct sink_process) { .pid = 42 }, &id, &err);
	taken();
	ids__frame(ids, &frame, &first, &is_new, &err);
	ok(is_new, "a new frame");
	frame.loop = true;
	ids__frame(ids, &frame, &again, &is_new, &err);
	ok(!is_new && again == first, "is new once, whatever is found out of its loop");
	frame.generation = 1;
	ids__frame(ids, &frame, &again, &is_new, &err);
	ok(is_new && again == 2, "other code at its address is another frame");
	is_str(taken(), "frame 1 1 0 1 10 0\nframe 2 1 0 1 10 1\n", "frames");
	ids__node(ids, 0, 1, 16, &id, &err);
	ids__node(ids, 0, 1, 24, &again, &err);
	ids__node(ids, id, 1, 16, &again, &err);
	ids__node(ids, id, 1, 16, &again, &err);
	ids__node_of(ids, &(struct sink_node) { id, 1, 16, EVIDENCE_INFERRED }, &again, &err);
	is_int(again, 4, "evidence makes another node");
	ids__node(ids, id, 1, 16, &again, &err);
	is_int(again, 3, "a node is known again");
	is_str(taken(), "node 1 0 1 16\nnode 2 0 1 24\nnode 3 1 1 16\nnode 4 1 1 16\n",
	       "by parent, frame, offset and evidence");
	ids__frame_is_loop(ids, first, &err);
	ids__locations(ids, first, &name, 1, &err);
	ids__source(ids, &(struct sink_source) { .process = 1, .source = "walk" }, &err);
	ids__sample(ids, &sample, &err);
	ids__sample(ids, &sample, &err);
	is_str(taken(),
	       "loop 1\nlocations 1 f 1\nsource 1 walk\nsample 1 18446744073709551615\n"
	       "sample 1 18446744073709551615\n",
	       "what has no id goes through");
	ids__free(ids);
}

static void test_bounds(void)
{
	struct ids_frame frame = { .kind = KIND_KERNEL };
	struct ids *ids = begin();
	uint32_t id = 0, want = 0;

	for (frame.address = 0; frame.address < 400000 && id == want; frame.address++, want++)
		ids__frame(ids, &frame, &id, NULL, &err);
	is_int(id, 400000, "more frames than are remembered");
	frame.address = 0;
	ids__frame(ids, &frame, &id, NULL, &err);
	is_int(id, 400001, "the first one gets a second id");
	ok(taker.dense && taker.n_frames == 400001, "which are dense");
	ids__free(ids);
}

static void test_forgetting(void)
{
	struct ids_frame frame = { .kind = KIND_KERNEL };
	const struct sink_sample sample = { .event = 1, .value = 1, .weight = 1, .total = 1 };
	struct ids *ids = begin();
	uint32_t node, retained, removed;
	bool is_new;

	for (frame.address = 1; frame.address <= 2; frame.address++) {
		ids__frame(ids, &frame, &node, NULL, &err);
		ids__node(ids, 0, node, 8, &node, &err);
	}
	ids__sample(ids, &sample, &err);
	is_int(ids__forgotten(ids), 0, "nothing was forgotten");
	taker.retained = 1;
	taker.sink.forgot = true;
	ids__sample(ids, &sample, &err);
	ok(ids__forgotten(ids) == 1 && !taker.sink.forgot, "something was, once");
	ok(ids__has_frame(ids, 1) && !ids__has_frame(ids, 2), "which is known");
	taken();
	for (frame.address = 1; frame.address <= 2; frame.address++) {
		ids__frame(ids, &frame, &node, &is_new, &err);
		ok(is_new == (frame.address == 2), "frame %u", (unsigned)frame.address);
		ids__node(ids, 0, frame.address, 8, frame.address == 1 ? &retained : &removed,
			  &err);
	}
	is_int(retained, 1, "what is there has its id");
	is_int(removed, 3, "what went gets another one");
	is_str(taken(), "frame 3 0 0 0 2 0\nnode 3 0 2 8\n", "and is offered again");
	ids__free(ids);
}

static void test_failures(void)
{
	static const struct ids_frame too_many = { .kind = KIND_NATIVE, .image = 1U << 28 };
	struct ids *ids = begin();
	uint32_t id = 0;

	is_int(ids__frame(ids, &too_many, &id, NULL, &err), -EOVERFLOW, "no id is left");
	taker.fails = -ENOSPC;
	is_int(ids__image(ids, "/bin/app", "", &id, &err), -ENOSPC, "what the sink returned");
	ids__free(ids);
	ids__free(NULL);
}

int main(void)
{
	test_texts();
	test_stacks();
	test_bounds();
	test_forgetting();
	test_failures();
	return tap__done();
}
