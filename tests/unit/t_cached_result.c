// SPDX-License-Identifier: GPL-2.0-or-later
/* The result of a stack is cached for its next samples. Two users get the same samples: one gets
 * each stack once, the other gets every sample whole. Both must send the same data to the sink, for
 * any event in the process between samples. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/capture/capture.h"
#include "core/kernel/spaces.h"
#include "core/target/compiled_code.h"
#include "core/target/jit_source.h"
#include "core/target/tracker_state.h"
#include "tests/tap.h"

#define WALKS	 0 /* a runtime with frames of its own */
#define COMPILES 1 /* one that compiles to anonymous memory and reports names */

#define FILE_AT	     0x400000
#define OTHER_AT     0x600000
#define GENERATED_AT 0x900000
#define NOWHERE	     0xc00000
#define KERNEL_IP    0xffffffff81000010
#define SLOT	     3

struct runtime_session {
	uint64_t queried, shift;
};

/* Computes addresses of frames from a native frame, and from all other data that a runtime may
 * read. */
static size_t anchors(struct runtime_session *session, const struct runtime_sample *sample,
		      struct runtime_pair *pairs, size_t n)
{
	struct runtime_natives natives = sample->natives(sample, false);

	session->queried++;
	for (size_t i = 0; i < n; i++)
		pairs[i].address = natives.list[0].cfa + 16 * natives.n + session->shift +
				   (natives.image ? 0x1000 : 0) + (natives.list[0].loop ? 1 : 0);
	for (size_t i = 0; i < natives.n; i++)
		n -= n > 1 && natives.list[i].compiled;
	return n;
}

static int on_code(struct runtime_session *session, const struct rec_code_object *rec, size_t size)
{
	(void)rec, (void)size;
	session->shift += 8;
	return 0;
}

static int symbolize(struct runtime_session *session, uint64_t key,
		     struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX])
{
	(void)session, (void)key;
	ret[0] = (struct runtime_symbol) { .function = "f" };
	return 1;
}

static bool label(const char *symbol, char *buf, size_t size, struct runtime_label *ret)
{
	(void)buf, (void)size;
	ret->symbol.function = symbol;
	return true;
}

static size_t loops(const struct runtime_image *image, const struct runtime_range **ret)
{
	static const struct runtime_range range = { 0x100, 0x200 };

	(void)image;
	*ret = &range;
	return 1;
}

static int detect(const struct elf_file *file)
{
	(void)file;
	return 1;
}

static const struct runtime_files looping = { .loops = loops }, detected = { .detect = detect };
static const struct runtime_walker walker = { .slot = 0 };
static const struct runtime_names names = { .anchors = anchors,
					    .on_code = on_code,
					    .symbolize = symbolize };
static const struct runtime_jit jit = { .code = "[code]", .label = label };
static const struct runtime walks = {
	.name = "walks", .files = &looping, .walker = &walker, .names = &names
};
static const struct runtime compiles = { .name = "compiles", .files = &detected, .jit = &jit };
static const struct runtime *const list[] = { &walks, &compiles, NULL };

static struct elf_file file = { .path = "/one" }, other_file = { .path = "/two" };
static struct image one = { .file = &file, .number = 1, .runtimes[WALKS].image = (void *)&one };
static struct image two = { .file = &other_file, .number = 2 };

/* --- one of the two users --- */

struct user {
	struct sink sink;
	char *text; /* all data sent to the sink */
	size_t size;
	FILE *out;
	struct tracker tracker;
	struct process process;
	struct jit_sources *jit_sources;
	struct space space;
	struct mapped mapped[3];
	struct runtime_session walker;
	struct runtime_session *sessions[3];
	struct capture *capture;
};

static struct user users[2]; /* the first one receives references to cached stacks */

static FILE *out_of(struct sink *sink)
{
	return ((struct user *)sink)->out; /* `out` is its first member */
}

static int take_event(struct sink *sink, uint32_t id, const struct sink_event *event,
		      struct err *err)
{
	(void)err;
	fprintf(out_of(sink), "event %u %s\n", id, event->name);
	return 0;
}

static int take_process(struct sink *sink, uint32_t id, const struct sink_process *process,
			struct err *err)
{
	(void)process, (void)err;
	fprintf(out_of(sink), "process %u\n", id);
	return 0;
}

static int take_thread(struct sink *sink, uint32_t id, uint32_t process, uint32_t tid,
		       const char *name, struct err *err)
{
	(void)err;
	fprintf(out_of(sink), "thread %u %u %u %s\n", id, process, tid, name);
	return 0;
}

static int take_thread_is_called(struct sink *sink, uint32_t id, const char *name, struct err *e)
{
	(void)e;
	fprintf(out_of(sink), "thread %u is called %s\n", id, name);
	return 0;
}

static int take_image(struct sink *sink, uint32_t id, const char *path, const char *build_id,
		      struct err *err)
{
	(void)build_id, (void)err;
	fprintf(out_of(sink), "image %u %s\n", id, path);
	return 0;
}

static int take_frame(struct sink *sink, uint32_t id, const struct sink_frame *frame,
		      struct err *err)
{
	(void)err;
	fprintf(out_of(sink), "frame %u %d %u %u %lx %d\n", id, frame->kind, frame->image,
		frame->process, frame->address, frame->loop);
	return 0;
}

static int take_loop(struct sink *sink, uint32_t id, struct err *err)
{
	(void)err;
	fprintf(out_of(sink), "loop %u\n", id);
	return 0;
}

static int take_locations(struct sink *sink, uint32_t frame, const struct sink_location *locations,
			  size_t n, struct err *err)
{
	(void)err;
	fprintf(out_of(sink), "locations %u %zu %s\n", frame, n, locations[0].function);
	return 0;
}

static int take_node(struct sink *sink, uint32_t id, const struct sink_node *node, struct err *err)
{
	(void)err;
	fprintf(out_of(sink), "node %u %u %u %ld\n", id, node->parent, node->frame, node->offset);
	return 0;
}

static int take_sample(struct sink *sink, const struct sink_sample *sample, struct err *err)
{
	(void)err;
	fprintf(out_of(sink), "sample %lu %lu %u %u %u %u %u %x %u %u %lu %lu\n", sample->time_ns,
		sample->value, sample->event, sample->thread, sample->cpu, sample->native,
		sample->runtime, sample->flags, sample->condition.state, sample->peer,
		sample->object, sample->link);
	return 0;
}

static int take_source(struct sink *sink, const struct sink_source *source, struct err *err)
{
	(void)sink, (void)source, (void)err;
	return 0;
}

static const struct sink_ops ops = {
	.event = take_event,
	.process = take_process,
	.thread = take_thread,
	.thread_is_called = take_thread_is_called,
	.image = take_image,
	.frame = take_frame,
	.frame_is_loop = take_loop,
	.locations = take_locations,
	.node = take_node,
	.sample = take_sample,
	.source = take_source,
};

static bool begin(struct user *user)
{
	static const struct capture_event events[] = {
		{ { "cpu", SINK_UNIT_SAMPLES }, .timed = true },
		{ { "wait", SINK_UNIT_NS }, .timed = false }
	};

	user->jit_sources = jit_sources__new();
	user->sink.ops = &ops;
	user->out = open_memstream(&user->text, &user->size);
	user->sessions[WALKS] = user->sessions[COMPILES] = &user->walker;
	user->tracker.opts.runtimes = list;
	user->tracker.runtimes = (struct runtime_set) { .list = list, .enabled = 3 };
	user->mapped[0] = (struct mapped) { .start = FILE_AT,
					    .end = FILE_AT + 0x10000,
					    .bias = FILE_AT,
					    .image = &one,
					    .path = "/one" };
	user->mapped[1] = (struct mapped) { .start = OTHER_AT,
					    .end = OTHER_AT + 0x10000,
					    .bias = OTHER_AT,
					    .image = &two,
					    .path = "/two" };
	user->mapped[2] = (struct mapped) { .start = GENERATED_AT,
					    .end = GENERATED_AT + 0x10000,
					    .bias = GENERATED_AT,
					    .path = "" };
	user->process = (struct process) { .serial = 1,
					   .jit_sources = user->jit_sources,
					   .pidfd = -1,
					   .runtimes = &user->tracker.runtimes,
					   .space = &user->space,
					   .mapped = user->mapped,
					   .n_mapped = ARRAY_SIZE(user->mapped),
					   .changed_ns = 1 };
	if (!user->out || procfs__info(getpid(), &user->process.info, NULL))
		return false;
	user->process.pid = user->process.info.pid;
	HASH_ADD(hh, user->tracker.processes, pid, sizeof(user->process.pid), &user->process);
	return !capture__new(&(struct capture_opts) { .sink = &user->sink,
						      .events = events,
						      .n_events = ARRAY_SIZE(events),
						      .tracker = &user->tracker,
						      .runtimes = list,
						      .sessions = user->sessions,
						      .kallsyms_path = "/dev/null" },
			     &user->capture, NULL);
}

static void end(struct user *user)
{
	capture__free(user->capture);
	HASH_DEL(user->tracker.processes, &user->process);
	process__forget_code(&user->process);
	jit_sources__free(user->jit_sources);
	fclose(user->out);
	free(user->text);
}

/* --- the records --- */

static struct stack {
	struct rec_sample head;
	uint64_t words[1 + 2 * 3 + 2 * 4];
} stack;

/* Makes a stack of a kernel frame, three native ones of which the innermost is at @ip, and four of
 * the runtime. */
static void draw(uint64_t ip)
{
	static uint32_t generation;
	const uint64_t words[] = { KERNEL_IP, ip,
				   0x7000,    OTHER_AT + 0x300,
				   0x7100,    FILE_AT + 0x150,
				   0x7200,    11,
				   0,	      12,
				   0,	      13,
				   0,	      14,
				   0 };

	stack.head = (struct rec_sample) { .type = REC_SAMPLE,
					   .slot = SLOT,
					   .generation = generation += 2,
					   .flags = SAMPLE_COMPLETE,
					   .event = 1,
					   .value = 1,
					   .tgid = users[0].process.pid,
					   .n_kernel = 1,
					   .n_native = 3,
					   .n_sections = 1,
					   .sections = { { 4, 0, 0 } },
					   .comm = "thread" };
	memcpy(stack.words, words, sizeof(words));
}

static uint64_t n_taken;

/* Takes the next sample of the stack. @first: both users receive it whole. */
static void take(bool first, uint32_t state, uint32_t tid)
{
	struct rec_sample *rec = &stack.head;
	struct rec_repeat repeat = { .type = REC_REPEAT,
				     .slot = SLOT,
				     .generation = rec->generation };
	struct err err;

	n_taken++;
	rec->time_ns = repeat.time_ns = now_ns();
	rec->tid = repeat.tid = tid;
	rec->cpu = repeat.cpu = n_taken % 3;
	rec->event = repeat.event = 1 + n_taken % 2;
	rec->value = repeat.value = 1 + n_taken % 5;
	rec->condition.state = repeat.condition.state = state;
	if (capture__record(users[0].capture, first ? (void *)rec : &repeat,
			    first ? sizeof(stack) : sizeof(repeat), &err) ||
	    capture__record(users[1].capture, rec, sizeof(stack), &err))
		exit(1);
}

/* Returns the number of requests of the first user to the runtime since the last call. */
static uint64_t queried(void)
{
	static uint64_t before;
	uint64_t n = users[0].walker.queried - before;

	before = users[0].walker.queried;
	return n;
}

static void are_same(const char *what)
{
	fflush(users[0].out);
	fflush(users[1].out);
	is_str(users[0].text, users[1].text, "%s: the sink is told the same", what);
	ok(!memcmp(capture__stats(users[0].capture), capture__stats(users[1].capture),
		   sizeof(struct capture_stats)),
	   "%s: the same is counted", what);
}

/* Takes three more samples after a change. The first one may be computed anew. */
static void take_three(const char *what, uint64_t made)
{
	queried();
	for (int i = 0; i < 3; i++)
		take(false, STATE_UNKNOWN, 77);
	is_int(queried(), made, "%s: made anew", what);
	are_same(what);
}

static void change(const char *what, void (*act)(struct user *user), uint64_t made)
{
	act(&users[0]);
	act(&users[1]);
	take_three(what, made);
}

static void map_other(struct user *user)
{
	user->mapped[0].image = user->mapped[0].image == &one ? &two : &one;
	user->process.changed_ns++;
}

static void attach(struct user *user)
{
	user->space.attached ^= 1 << WALKS;
}

static void attach_compiler(struct user *user)
{
	user->space.attached |= 1 << COMPILES;
}

static void send_code(struct user *user)
{
	struct rec_code_object rec = { .type = REC_CODE_OBJECT };

	capture__record(user->capture, &rec, sizeof(rec), NULL);
}

static void execute(struct user *user)
{
	capture__forget_process(user->capture, &user->process, NULL);
	process__forget_code(&user->process);
	user->process.serial++;
	user->mapped[1].image = &one;
}

/* --- names that its compiler writes --- */

static char map_path[64];

static void write_map(const char *mode, const char *name)
{
	FILE *map = fopen(map_path, mode);

	if (!map || fprintf(map, "%x 100 %s\n", GENERATED_AT, name) < 0 || fclose(map))
		exit(1);
}

static void read_all(struct user *user)
{
	if (compiled_code__read(&user->process, JIT_LOOK_ALL))
		exit(1);
}

static void nothing(struct user *user)
{
	(void)user;
}

static void test_file_code(void)
{
	draw(FILE_AT + 0x500);
	take(true, STATE_UNKNOWN, 77);
	take_three("a stack that came before", 1);
	change("again", nothing, 0);
	change("another file is mapped", map_other, 1);
	change("the first one again", map_other, 1);
	change("a runtime is attached", attach, 1);
	change("and detached", attach, 1);
	change("code is announced", send_code, 1);
	change("another program is executed", execute, 1);
	queried();
	take(false, STATE_BLOCKED, 77);
	take(false, STATE_BLOCKED, 77);
	take(false, STATE_UNKNOWN, 0);
	is_int(queried(), 2, "a waiting thread's, and that of none: made anew");
	are_same("others' states");
	take_three("a thread's again", 1);
	for (uint32_t tid = 100; tid < 150; tid++)
		take(false, STATE_UNKNOWN, tid);
	is_int(queried(), 0, "of other threads: not made anew");
	are_same("threads");
	draw(OTHER_AT + 0x40);
	take(true, STATE_UNKNOWN, 77);
	take_three("another stack in its place", 1);
}

static void test_generated_code(void)
{
	draw(GENERATED_AT + 0x10);
	take(true, STATE_UNKNOWN, 77);
	take_three("code of no file", 1);
	change("a compiler is attached", attach_compiler, 1);
	write_map("w", "first");
	change("it gets a name", read_all, 1);
	change("nothing is written", nothing, 0);
	write_map("a", "second");
	change("other code is written in its place", nothing, 1);
	unlink(map_path);
	write_map("w", "third");
	change("and by another file", read_all, 1);
	draw(NOWHERE);
	take(true, STATE_UNKNOWN, 77);
	take_three("nothing is mapped there", 1);
	write_map("a", "fourth");
	change("a map is written on", nothing, 1);
}

int main(void)
{
	if (!ok(begin(&users[0]) && begin(&users[1]), "begins"))
		return tap__done();
	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", getpid());
	unlink(map_path);
	test_file_code();
	test_generated_code();
	unlink(map_path);
	end(&users[0]);
	end(&users[1]);
	return tap__done();
}
