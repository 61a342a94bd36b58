// SPDX-License-Identifier: GPL-2.0-or-later
/* Sends the life of processes, as the kernel half would report it, through session's routing to the
 * tracker and to capture. Checks the data that both have of each process, and that they have none
 * of processes that have ended. The parent of all is this process; its children are made up. */
#include "core/record/routing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/kernel/kernel_half.h"
#include "core/kernel/maps.h"
#include "core/kernel/spaces.h"
#include "runtimes/registry.h"
#include "tests/replay/half.h"
#include "tests/tap.h"

#define CHILDREN  20000
#define ROUND	  100	     /* children that end before their last samples are consumed */
#define PID_FIRST 0x40000000 /* above any PID, so that /proc has no data of it */

/* --- a sink that counts --- */

static struct {
	uint32_t processes, samples;
	uint32_t process_of; /* process of the last sample */
	uint32_t image;	     /* image of its innermost frame */
	uint32_t depth, flags;
	char name[64]; /* last name of a frame */
} seen;
static uint32_t image_of_frame[1000], frame_of_node[1000]; /* by id, up to this number */
static uint32_t depth_of_node[1000];
static uint32_t process_of_thread[2 * CHILDREN + 100];

static int take_event(struct sink *sink, uint32_t id, const struct sink_event *event,
		      struct err *err)
{
	(void)sink, (void)id, (void)event, (void)err;
	return 0;
}

static int take_process(struct sink *sink, uint32_t id, const struct sink_process *process,
			struct err *err)
{
	(void)sink, (void)id, (void)process, (void)err;
	seen.processes++;
	return 0;
}

static int take_thread(struct sink *sink, uint32_t id, uint32_t process, uint32_t tid,
		       const char *name, struct err *err)
{
	(void)sink, (void)tid, (void)name, (void)err;
	process_of_thread[id] = process;
	return 0;
}

static int take_image(struct sink *sink, uint32_t id, const char *path, const char *build_id,
		      struct err *err)
{
	(void)sink, (void)id, (void)path, (void)build_id, (void)err;
	return 0;
}

static int take_frame(struct sink *sink, uint32_t id, const struct sink_frame *frame,
		      struct err *err)
{
	(void)sink, (void)err;
	if (id < ARRAY_SIZE(image_of_frame))
		image_of_frame[id] = frame->image;
	return 0;
}

static int take_loop(struct sink *sink, uint32_t id, struct err *err)
{
	(void)sink, (void)id, (void)err;
	return 0;
}

static int take_locations(struct sink *sink, uint32_t frame, const struct sink_location *locations,
			  size_t n, struct err *err)
{
	(void)sink, (void)frame, (void)err;
	snprintf(seen.name, sizeof(seen.name), "%s", locations[n - 1].function);
	return 0;
}

static int take_node(struct sink *sink, uint32_t id, const struct sink_node *node, struct err *err)
{
	(void)sink, (void)err;
	if (id < ARRAY_SIZE(frame_of_node)) {
		frame_of_node[id] = node->frame;
		depth_of_node[id] = 1 + (node->parent ? depth_of_node[node->parent] : 0);
	}
	return 0;
}

static int take_sample(struct sink *sink, const struct sink_sample *sample, struct err *err)
{
	(void)sink, (void)err;
	seen.samples++;
	seen.process_of = process_of_thread[sample->thread];
	seen.image = image_of_frame[frame_of_node[sample->native % ARRAY_SIZE(frame_of_node)]];
	seen.depth = depth_of_node[sample->native % ARRAY_SIZE(depth_of_node)];
	seen.flags = sample->flags;
	return 0;
}

static int take_source(struct sink *sink, const struct sink_source *source, struct err *err)
{
	(void)sink, (void)source, (void)err;
	return 0;
}

static int take_process_is_called(struct sink *to, uint32_t id, const char *name,
				  const char *command, struct err *err)
{
	(void)to, (void)id, (void)name, (void)command, (void)err;
	return 0;
}

static int take_thread_is_called(struct sink *sink, uint32_t id, const char *name, struct err *err)
{
	(void)sink, (void)id, (void)name, (void)err;
	return 0;
}

static const struct sink_ops ops = { .event = take_event,
				     .process = take_process,
				     .process_is_called = take_process_is_called,
				     .thread = take_thread,
				     .thread_is_called = take_thread_is_called,
				     .image = take_image,
				     .frame = take_frame,
				     .frame_is_loop = take_loop,
				     .locations = take_locations,
				     .node = take_node,
				     .sample = take_sample,
				     .source = take_source };
static struct sink sink = { .ops = &ops };

/* --- tested objects --- */

static struct runtime_session *sessions[RUNTIMES_MAX];
static struct images *images;
static struct tracker *tracker;
static struct capture *capture;
static struct routing routing;
static struct process *parent;
static uint32_t program; /* last number that the kernel half assigned */

static bool begin(void)
{
	const struct images_opts of_images = { .files_fd = -1, .runtimes = runtimes };
	struct tracker_opts of_tracker = { .runtimes = runtimes,
					   .sessions = sessions,
					   .enabled = ~0U };
	static const struct capture_event cpu = { { "cpu", SINK_UNIT_SAMPLES }, .timed = true };
	struct capture_opts of_capture = { .sink = &sink,
					   .events = &cpu,
					   .n_events = 1,
					   .runtimes = runtimes,
					   .sessions = sessions,
					   .enabled = ~0U,
					   .kallsyms_path = "/dev/null" };
	struct err err = {};

	half__open();
	if (images__new(&of_images, &images))
		return false;
	of_tracker.images = of_capture.images = images;
	if (tracker__new(&of_tracker, &tracker))
		return false;
	of_capture.tracker = tracker;
	if (capture__new(&of_capture, &capture, &err) ||
	    tracker__add(tracker, getpid(), false, &parent, &err) ||
	    tracker__refresh(tracker, parent))
		return false;
	routing = (struct routing) { tracker, capture };
	return parent->space != NULL;
}

static void end(void)
{
	capture__free(capture);
	tracker__free(tracker);
	images__free(images);
	half__close();
}

/* --- records --- */

static void send(const void *rec, size_t size)
{
	struct err err = {};

	if (routing__record(&routing, rec, size, &err)) {
		printf("Bail out! %s\n", err.text);
		exit(1);
	}
}

/* Sends a sample with one native frame. */
static void sample(uint32_t pid, uint64_t ip)
{
	struct {
		struct rec_sample head;
		uint64_t words[2];
	} rec = { .head = { .type = REC_SAMPLE,
			    .flags = SAMPLE_COMPLETE,
			    .time_ns = now_ns(),
			    .event = 1,
			    .value = 1,
			    .tgid = pid,
			    .tid = pid,
			    .n_native = 1 },
		  .words = { ip | NATIVE_EXACT, 0x7000 } };

	send(&rec, sizeof(rec));
}

/* Sends a sample of this process with two frames, taken at @time_ns. */
static void sample_at(uint64_t time_ns, uint64_t ip, uint64_t caller, uint32_t flags)
{
	struct {
		struct rec_sample head;
		uint64_t words[4];
	} rec = { .head = { .type = REC_SAMPLE,
			    .flags = SAMPLE_COMPLETE | flags,
			    .time_ns = time_ns,
			    .event = 1,
			    .value = 1,
			    .tgid = getpid(),
			    .tid = getpid(),
			    .n_native = 2 },
		  .words = { ip | NATIVE_EXACT, 0x7000, caller, 0x7010 } };

	send(&rec, sizeof(rec));
}

/* Forks as bpf/process.bpf.c reports it. */
static void fork_off(uint32_t pid)
{
	const struct rec_task rec = { .type = REC_FORK,
				      .tgid = pid,
				      .tid = pid,
				      .parent_tgid = parent->pid,
				      .time_ns = now_ns(),
				      .program = ++program };
	const struct proc_rec proc = { .flags = PROC_FOLLOW,
				       .space = parent->space->id,
				       .program = program };

	map__update(kernel_half__map_fd(NULL, "targets"), &pid, &proc);
	send(&rec, sizeof(rec));
}

static void execute(uint32_t pid)
{
	const struct rec_program rec = { .type = REC_EXEC,
					 .tgid = pid,
					 .time_ns = now_ns(),
					 .program = ++program,
					 .command_len = 5,
					 .comm = "true",
					 .command = "true" };
	const struct proc_rec proc = { .flags = PROC_FOLLOW, .program = program };

	map__update(kernel_half__map_fd(NULL, "targets"), &pid, &proc);
	send(&rec, sizeof(rec));
}

static void map(uint32_t pid, const struct mapped *mapped)
{
	const struct rec_mapped rec = { .type = REC_MAPPED,
					.tgid = pid,
					.start = mapped->start,
					.end = mapped->end,
					.offset = mapped->offset,
					.program = program,
					.image = mapped->image->number };

	send(&rec, sizeof(rec));
}

static void exit_of(uint32_t pid)
{
	const struct rec_task rec = {
		.type = REC_EXIT, .tgid = pid, .tid = pid, .time_ns = now_ns()
	};

	send(&rec, sizeof(rec));
}

static bool is_target(uint32_t pid)
{
	struct proc_rec rec;

	return !map__lookup(kernel_half__map_fd(NULL, "targets"), &pid, &rec);
}

/* Consumes all records, as long after they were sent as necessary. */
static void consume_all(void)
{
	if (routing__consumed(&routing, now_ns() + TRACKER_LAST_SAMPLE_NS, NULL))
		exit(1);
}

/* --- tests --- */

/* Runs children one after the other, with samples before and after each executes a program, and at
 * its end. */
static void test_children(void)
{
	const uint64_t here = (uintptr_t)test_children;
	const struct mapped *mapped = process__find(parent, here);
	size_t most = 0;
	uint32_t i;

	sample(parent->pid, here);
	for (i = 0; i < CHILDREN; i++) {
		fork_off(PID_FIRST + i);
		sample(PID_FIRST + i, here);
		execute(PID_FIRST + i);
		map(PID_FIRST + i, mapped);
		sample(PID_FIRST + i, here);
		exit_of(PID_FIRST + i);
		most = max_of(most, tracker__count(tracker));
		if (i % ROUND == ROUND - 1)
			consume_all();
	}
	is_int(seen.samples, 2 * CHILDREN + 1, "all samples are taken");
	is_int(seen.processes, 2 * CHILDREN + 1, "a process for each program that ran");
	is_int(most, 1 + ROUND, "those that may still be sampled are known, and no other");
	is_int(tracker__count(tracker), 1, "the parent alone is left in the tracker");
	is_int(capture__count_processes(capture), 1, "... and in capture");
	is_int(parent->space->refs, 1, "nobody shares its address space");
	ok(!is_target(PID_FIRST) && !is_target(PID_FIRST + CHILDREN - 1) && is_target(parent->pid),
	   "the kernel half samples the parent alone");
	is_int(capture__stats(capture)->unowned, 0, "no sample came too late");
	sample(PID_FIRST, here);
	is_int(capture__stats(capture)->unowned, 1, "one that does is counted");
}

static void test_last_samples(void)
{
	const uint64_t here = (uintptr_t)test_children;
	const uint32_t pid = PID_FIRST + CHILDREN;
	const struct process *process;
	uint32_t before;
	uint64_t ended_ns;

	fork_off(pid);
	sample(pid, here);
	before = seen.process_of;
	exit_of(pid);
	process = tracker__find(tracker, pid);
	ok(process && process__is_ended(process), "a child has ended");
	ended_ns = process->ended_ns;
	routing__consumed(&routing, ended_ns + TRACKER_LAST_SAMPLE_NS - 1, NULL);
	sample(pid, here);
	is_int(seen.process_of, before, "a sample of its last moments is its own");
	routing__consumed(&routing, ended_ns + TRACKER_LAST_SAMPLE_NS, NULL);
	ok(!tracker__find(tracker, pid), "then it is forgotten");
}

/* Tests a PID whose previous process lost its exit record, or is gone but still in the tracker. */
static void test_same_pid(void)
{
	const uint64_t here = (uintptr_t)test_children;
	const uint32_t pid = PID_FIRST + CHILDREN;
	uint32_t first;

	fork_off(pid);
	sample(pid, here);
	first = seen.process_of;
	fork_off(pid);
	sample(pid, here);
	is_int(seen.process_of, first + 1, "another process with the same PID");
	exit_of(pid);
	fork_off(pid);
	sample(pid, here);
	is_int(seen.process_of, first + 2, "and one more, after an exit");
	is_int(tracker__count(tracker), 2, "one is known at a time");
	is_int(capture__count_processes(capture), 2, "... by capture, too");
	consume_all();
	ok(tracker__find(tracker, pid), "it lives: its predecessor's end is not its own");
	exit_of(pid);
	consume_all();
	is_int(tracker__count(tracker), 1, "and ends");
}

static char map_path[64];

static void remove_map(void)
{
	unlink(map_path);
}

static void write_map(const void *code, const char *name)
{
	FILE *file = fopen(map_path, "w");

	if (!file || fprintf(file, "%lx 100 %s\n", (unsigned long)code, name) < 0 || fclose(file))
		exit(1);
}

/* Tests a process that makes code and forks at once, before its memory is read. */
static void test_inherited_names(void)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint32_t pid = PID_FIRST + CHILDREN;

	capture__name_frames(capture, false, NULL); /* frames of earlier tests */
	write_map(code, "inherited");
	fork_off(pid);
	sample(pid, (uintptr_t)code + 1);
	capture__name_frames(capture, false, NULL);
	is_str(seen.name, "inherited", "code of the parent, by its map");
	execute(pid);
	sample(pid, (uintptr_t)code + 1);
	capture__name_frames(capture, false, NULL);
	ok(!strncmp(seen.name, "[anon+0x", 8), "none of it is left after exec: %s", seen.name);
	exit_of(pid);
	consume_all();
	remove_map();
	munmap(code, 4096);
}

/* Tests code without a name until the process ends, when its map is read. The user requested the
 * process itself. */
static void test_names_at_the_end(void)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint32_t pid = parent->pid;

	tracker__refresh(tracker, parent);
	sample(pid, (uintptr_t)code + 1);
	capture__name_frames(capture, false, NULL);
	ok(!strncmp(seen.name, "[anon+0x", 8), "shown by its place: %s", seen.name);
	write_map(code, "at the end");
	exit_of(pid);
	is_str(seen.name, "at the end", "named by what its map says at its end");
	is_int(parent->state, PROCESS_ENDING, "watched until it is gone");
	is_int(tracker__count_requested(tracker), 1, "until then the recording goes on");
	if (routing__end(&routing, parent, NULL))
		exit(1);
	is_int(tracker__count_requested(tracker), 0, "gone");
	is_int(tracker__count(tracker), 1, "its last samples may come");
	consume_all();
	is_int(tracker__count(tracker), 0, "nobody is left in the tracker");
	is_int(capture__count_processes(capture), 0, "nor in capture");
	munmap(code, 4096);
}

/* Maps another file over this program's own code, as the kernel would report it. Each sample is
 * placed by the mapping of its time, whenever it is processed. */
static void test_replaced_library(void)
{
	const uint64_t here = (uintptr_t)test_replaced_library, time_ns = now_ns();
	const uint64_t caller = (uintptr_t)printf;
	struct mmap_event event = { .pid = getpid(), .time_ns = time_ns, .path = "/bin/true" };
	const struct mapped *mapped = process__find(parent, here);
	uint64_t unsure = capture__stats(capture)->unsure;
	uint32_t own, other, n;
	struct stat status;
	bool urgent = false;

	if (stat(event.path, &status))
		exit(1);
	event.inode = status.st_ino;
	event.start = mapped->start;
	event.end = mapped->end;
	event.offset = mapped->offset;
	sample_at(time_ns - 10, here, caller, 0);
	own = seen.image;
	ok(own && seen.depth == 2 && seen.flags & SAMPLE_COMPLETE, "before: both frames");
	if (tracker__on_mmap(tracker, &event, &urgent))
		exit(1);
	sample_at(time_ns - 10, here, caller, 0);
	ok(seen.image == own && seen.depth == 2 && seen.flags & SAMPLE_COMPLETE,
	   "of the time before, looked at later: the old library still");
	sample_at(time_ns + 10, here, caller, 0);
	other = seen.image;
	ok(other && other != own, "of the time after: the new one");
	ok(seen.depth == 1 && !(seen.flags & SAMPLE_COMPLETE),
	   "the old library's table was in use: the stack ends there");
	is_int(capture__stats(capture)->unsure - unsure, 1, "which is counted");
	sample_at(time_ns + 11, here, caller, SAMPLE_REMAPPED);
	ok(seen.image == other && seen.depth == 2 && seen.flags & SAMPLE_COMPLETE,
	   "unless the kernel half had noticed");
	sample_at(time_ns + 12, caller, here, 0);
	ok(seen.depth == 2 && seen.flags & SAMPLE_COMPLETE,
	   "nothing is lost of a stack that only begins there");
	for (n = 0; n < 3; n++) {
		sample_at(time_ns - 9 + n, here, caller, 0);
		ok(seen.image == own, "in any order: the old one,");
		sample_at(time_ns + 13 + n, here, caller, SAMPLE_REMAPPED);
		ok(seen.image == other, "the new one");
	}
	if (tracker__refresh(tracker, parent)) /* the made-up library does not exist */
		exit(1);
	sample_at(now_ns(), here, caller, 0);
	ok(seen.image == own && seen.depth == 2, "read again: what is there now");
}

int main(void)
{
	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", getpid());
	atexit(remove_map);
	if (!ok(begin(), "begins"))
		return tap__done();
	test_children();
	test_last_samples();
	test_same_pid();
	test_inherited_names();
	test_replaced_library();
	test_names_at_the_end();
	end();
	return tap__done();
}
