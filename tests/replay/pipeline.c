// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/replay/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/cached_unwind.h"
#include "bpf/host/host.h"
#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/capture/capture.h"
#include "core/elf/insn_padding.h"
#include "core/insn/insn_ranges.h"
#include "core/kernel/table_arena.h"
#include "core/live/live_profile.h"
#include "core/record/routing.h"
#include "core/store/load.h"
#include "core/store/recording.h"
#include "core/target/images.h"
#include "runtimes/registry.h"
#include "tests/replay/half.h"
#include "tests/tee.h"

struct record { /* a record of the ring */
	void *data;
	size_t size;
};

struct pipeline {
	struct table_arena *table_arena;
	struct images *images;
	uint32_t enabled; /* bit n: runtimes[n] */
};

struct run {
	const struct pipeline *pipeline;
	struct runtime_session *sessions[RUNTIMES_MAX];
	struct tracker *tracker;
	struct recording *recording;
	struct live_profile *live; /* receives the same data as the recording */
	struct tee tee;
	struct capture *capture;
	struct process *process;
	struct record *records;
	size_t n_records, cap_records;
	char path[4096]; /* path of the recording */
};

/* Stores a record. The user half reads records later than the kernel half writes them. */
static void keep_record(void *ctx, const void *data, size_t size)
{
	struct run *run = ctx;
	void *copy = malloc(size);

	if (!copy || array__reserve(&run->records, &run->cap_records, run->n_records + 1,
				    sizeof(*run->records)))
		abort();
	memcpy(copy, data, size);
	run->records[run->n_records++] = (struct record) { copy, size };
}

/* The linker redirects the calls to here (Makefile). */
int __real_insn_ranges__find(const struct elf_file *file, struct insn_ranges *ret);
int __wrap_insn_ranges__find(const struct elf_file *file, struct insn_ranges *ret);

int __wrap_insn_ranges__find(const struct elf_file *file, struct insn_ranges *ret)
{
	int code = __real_insn_ranges__find(file, ret);

	if (!ret->named)
		ret->n = 0;
	return code;
}

/* Extracts do not contain the bytes between functions. */
bool __wrap_insn_padding__has_code(struct insn_padding *padding, const struct cfi_fde *fde);

bool __wrap_insn_padding__has_code(struct insn_padding *padding, const struct cfi_fde *fde)
{
	(void)padding;
	(void)fde;
	return false;
}

int pipeline__new(struct pipeline **ret)
{
	struct pipeline *pipeline = calloc(1, sizeof(*pipeline));
	struct images_opts images = { .files_fd = -1, .runtimes = runtimes };
	int code = -ENOMEM;

	if (!pipeline)
		return -ENOMEM;
	half__open();
	for (int i = 0; runtimes[i]; i++)
		pipeline->enabled |= 1U << i;
	pipeline->table_arena = table_arena__new(kernel_half__map_fd(NULL, "chunks"), 0);
	images.table_arena = pipeline->table_arena;
	images.enabled = pipeline->enabled;
	if (pipeline->table_arena)
		code = images__new(&images, &pipeline->images);
	if (code)
		pipeline__free(pipeline);
	else
		*ret = pipeline;
	return code;
}

void pipeline__free(struct pipeline *pipeline)
{
	if (!pipeline)
		return;
	images__free(pipeline->images);
	table_arena__free(pipeline->table_arena);
	half__close();
	free(pipeline);
}

/* Returns runtimes that do not read names of threads. A bundle has only the memory that a walk
 * reads. */
static const struct runtime *const *without_thread_names(void)
{
	static const struct runtime *list[RUNTIMES_MAX + 1];
	static struct runtime copies[RUNTIMES_MAX];
	static struct runtime_names names[RUNTIMES_MAX];

	for (int i = 0; runtimes[i] && i < RUNTIMES_MAX; i++) {
		memcpy(&copies[i], runtimes[i], sizeof(copies[i]));
		if (runtimes[i]->names) {
			names[i] = *runtimes[i]->names;
			names[i].thread_name = NULL;
			copies[i].names = &names[i];
		}
		list[i] = &copies[i];
	}
	return list;
}

static int open_runtimes(struct run *run, struct err *err)
{
	int code = 0;

	for (int i = 0; !code && runtimes[i]; i++)
		if (runtimes[i]->open)
			code = runtimes[i]->open(NULL, &run->sessions[i], err);
	return code;
}

static int write_kinds(struct run *run, struct err *err)
{
	int code = recording__kind(run->recording, KIND_KERNEL, "kernel", "_[k]", err);

	if (!code)
		code = recording__kind(run->recording, KIND_NATIVE, "native", "_[n]", err);
	if (!code)
		code = recording__kind(run->recording, KIND_INLINED, "inlined", "_[i]", err);
	for (int i = 0; !code && runtimes[i]; i++) {
		code = recording__kind(run->recording, KIND_RUNTIME + i, runtimes[i]->name,
				       runtimes[i]->suffix, err);
		if (!code)
			code = live_profile__kind(run->live, KIND_RUNTIME + i, runtimes[i]->name,
						  runtimes[i]->suffix);
	}
	return code;
}

/* Opens a run as core/record/session.c does. */
static int open_run(struct run *run, const struct pipeline_input *input, struct err *err)
{
	static const struct capture_event cpu = { { "cpu", SINK_UNIT_SAMPLES }, .timed = true };
	struct tracker_opts tracker = { .runtimes = runtimes,
					.sessions = run->sessions,
					.images = run->pipeline->images,
					.enabled = run->pipeline->enabled };
	int code = open_runtimes(run, err);

	if (code)
		return code;
	code = tracker__new(&tracker, &run->tracker);
	if (code)
		return err__set(err, code, "cannot begin: %s", strerror(-code));
	snprintf(run->path, sizeof(run->path), "%s/replay.db", input->work);
	code = recording__create(run->path, false, &run->recording, err);
	if (!code)
		code = live_profile__new(SIZE_MAX, &run->live);
	if (!code)
		run->tee = tee__of(recording__sink(run->recording), live_profile__sink(run->live));
	if (!code)
		code = write_kinds(run, err);
	if (!code)
		code = capture__new(&(struct capture_opts) { .sink = &run->tee.sink,
							     .events = &cpu,
							     .n_events = 1,
							     .tracker = run->tracker,
							     .images = run->pipeline->images,
							     .runtimes = without_thread_names(),
							     .sessions = run->sessions,
							     .kallsyms_path = "/dev/null",
							     .enabled = run->pipeline->enabled },
				    &run->capture, err);
	if (!code)
		code = tracker__add(run->tracker, input->thread.tgid, false, &run->process, err);
	if (!code && tracker__refresh(run->tracker, run->process))
		code = err__set(err, -ENOMEM, "out of memory");
	if (!code)
		code = capture__read_code(run->capture, run->process, err);
	return code;
}

extern const volatile uint32_t cfg_cached; /* bpf/unwind.bpf.c */

static int take_sample(struct run *run, const struct pipeline_input *input, struct err *err)
{
	const struct routing routing = { run->tracker, run->capture };
	int code = 0;

	host.on_record = keep_record;
	host.record_ctx = run;
	host_programs__sample(&input->thread, now_ns());
	host.on_record = NULL;
	for (size_t i = 0; !code && i < run->n_records; i++)
		code = routing__record(&routing, run->records[i].data, run->records[i].size, err);
	if (!code)
		code = capture__name_frames(run->capture, true, err);
	return code;
}

/* Returns all frames of the thread, native ones first, and the number of words. */
static size_t sample_again(const struct host_thread *thread, uint64_t ret_words[SAMPLE_WORDS_MAX])
{
	const struct rec_sample *rec = &host.sample.head;
	size_t n;

	host_programs__sample(thread, now_ns());
	n = (host.sample_bytes - sizeof(*rec)) / sizeof(uint64_t) - rec->n_kernel;
	memcpy(ret_words, host.sample.words + rec->n_kernel, n * sizeof(uint64_t));
	return n;
}

/* Takes the same sample again, after others of the same thread that were interrupted further out.
 * Cached frames from these must be equal to the frames that unwinding finds. */
static int check_cached(const struct pipeline_input *input, struct err *err)
{
	static uint64_t want[SAMPLE_WORDS_MAX], got[SAMPLE_WORDS_MAX];
	static struct cached_unwind_frame frames[CACHED_FRAMES_MAX];
	struct host_thread other = input->thread;
	const uint32_t zero = input->thread.tid % CACHED_WAYS;
	const struct cached_unwind *cached =
		host_map__lookup(host_map__named("cached_unwinds")->map, &zero);
	size_t n = sample_again(&input->thread, want);
	bool same;
	int code = 0;
	uint32_t n_cached;

	host__set(&cfg_cached, 1);
	sample_again(&input->thread, got);
	n_cached = cached->n;
	memcpy(frames, cached->frames, sizeof(frames));
	for (uint32_t i = 0; !code && i <= n_cached; i++) {
		same = sample_again(&input->thread, got) == n &&
		       !memcmp(got, want, n * sizeof(uint64_t));
		if (!same || cached->n != n_cached)
			code = err__set(err, -EBADMSG, "with kept frames the stack is another one");
		if (i == n_cached)
			break;
		other.regs[UNWIND_REG_PC] = frames[i].pc;
		other.regs[UNWIND_REG_RSP] = frames[i].sp;
		other.regs[UNWIND_REG_RBP] = frames[i].rbp;
		other.regs[UNWIND_REG_RBX] = frames[i].rbx;
		sample_again(&other, got);
	}
	host__set(&cfg_cached, 0);
	return code;
}

static void close_run(struct run *run)
{
	capture__free(run->capture);
	recording__close(run->recording, NULL);
	live_profile__free(run->live);
	tracker__free(run->tracker);
	for (int i = 0; runtimes[i]; i++)
		if (run->sessions[i])
			runtimes[i]->close(run->sessions[i]);
	for (size_t i = 0; i < run->n_records; i++)
		free(run->records[i].data);
	free(run->records);
	if (run->path[0])
		unlink(run->path);
}

/* --- results --- */

static int add_native(struct pipeline_stack *stack, const struct process *process, uint64_t ip,
		      uint64_t cfa)
{
	uint64_t address = NATIVE_ADDRESS(ip) - !(ip & NATIVE_EXACT);
	const struct mapped *mapped = process__find(process, address);
	const struct elf_file *file = mapped && mapped->image ? mapped->image->file : NULL;
	struct pipeline_native native = { .vaddr = NATIVE_ADDRESS(ip),
					  .address = address,
					  .cfa = cfa };
	const char *path = file ? file->path : "", *slash = strrchr(path, '/');

	native.image = strdup(slash ? slash + 1 : path);
	if (file)
		native.vaddr -= mapped->bias;
	if (!native.image || array__reserve(&stack->natives, &stack->cap_natives,
					    stack->n_natives + 1, sizeof(*stack->natives))) {
		free(native.image);
		return -ENOMEM;
	}
	stack->natives[stack->n_natives++] = native;
	return 0;
}

static int take_natives(struct run *run, struct pipeline_stack *stack)
{
	const struct rec_sample *rec = &host.sample.head;
	const uint64_t *words = host.sample.words + rec->n_kernel;
	uint32_t key;
	int code = 0;

	stack->flags = rec->flags;
	for (int i = 0; !code && i < rec->n_native; i++)
		code = add_native(stack, run->process, words[2 * i], words[2 * i + 1]);
	for (key = 0; key < COUNTERS_N; key++)
		memcpy(&stack->counters[key],
		       host_map__lookup(host_map__named("counters")->map, &key), sizeof(uint64_t));
	return code;
}

static int add_frame(struct pipeline_stack *stack, const struct profile *profile, uint32_t number)
{
	const struct profile_frame *from = &profile->frames[number];
	struct pipeline_frame frame = { .line = from->line, .kind = from->kind };
	char label[4096];

	profile__label(profile, from, 1, label, sizeof(label));
	escape__printable(label);
	frame.label = strdup(label);
	frame.name = strdup(strtab__get(profile->strings, from->name));
	frame.file = strdup(strtab__get(profile->strings, from->file));
	if (!frame.label || !frame.name || !frame.file ||
	    array__reserve(&stack->frames, &stack->cap_frames, stack->n_frames + 1,
			   sizeof(*stack->frames)))
		return -ENOMEM;
	stack->frames[stack->n_frames++] = frame;
	return 0;
}

/* Loads the only stack of a profile, outermost frame first. */
static int load_stack(const char *path, bool keep_vm, struct pipeline_stack *ret, struct err *err)
{
	struct profile_filter filter = { .lines = true, .keep_vm = keep_vm };
	struct profile *profile;
	uint32_t node = 0, *nodes;
	size_t n = 0;
	int code = load__profile(path, &filter, &profile, NULL, err);

	if (code)
		return code;
	nodes = calloc(profile->n_nodes, sizeof(*nodes));
	for (size_t i = 1; i < profile->n_nodes; i++)
		node = profile->nodes[i].self ? i : node;
	for (; nodes && node; node = profile->nodes[node].parent)
		nodes[n++] = node;
	if (!nodes || profile->total != 1)
		code = err__set(err, -EBADMSG, "%llu samples are recorded, not one",
				(unsigned long long)profile->total);
	while (!code && n--)
		code = add_frame(ret, profile, profile->nodes[nodes[n]].frame);
	free(nodes);
	profile__free(profile);
	return code;
}

/* Checks that the live profile equals that of the recording, frame for frame. */
static int check_live(const struct run *run, bool keep_vm, struct err *err)
{
	struct profile_filter filter = { .lines = true, .keep_vm = keep_vm };
	struct profile *loaded = NULL, *live = NULL;
	char *want, *got;
	int code = load__profile(run->path, &filter, &loaded, NULL, err);

	if (!code)
		code = live_profile__get(run->live, &filter, &live, NULL, err);
	if (!code) {
		want = tee__text(loaded);
		got = tee__text(live);
		if (strcmp(want, got) != 0)
			code = err__set(err, -EBADMSG, "the live profile differs: %.400s", got);
		free(want);
		free(got);
	}
	profile__free(loaded);
	profile__free(live);
	return code;
}

/* Marks the frames that only --keep-vm shows, which the shorter stack lacks. */
static int hide_frames(const char *path, struct pipeline_stack *stack, struct err *err)
{
	struct pipeline_stack shown = {};
	int code = load_stack(path, false, &shown, err);
	size_t at = 0;

	for (size_t i = 0; !code && i < stack->n_frames; i++) {
		struct pipeline_frame *frame = &stack->frames[i];

		frame->hidden =
			at == shown.n_frames || strcmp(frame->label, shown.frames[at].label) != 0;
		at += !frame->hidden;
	}
	if (!code && at < shown.n_frames)
		code = err__set(err, -EBADMSG, "a frame is shown only without --keep-vm: %s",
				shown.frames[at].label);
	pipeline__done(&shown);
	return code;
}

int pipeline__run(struct pipeline *pipeline, const struct pipeline_input *input,
		  struct pipeline_stack *ret, struct err *err)
{
	struct run run = { .pipeline = pipeline };
	int code;

	*ret = (struct pipeline_stack) {};
	host.memory = input->memory;
	code = open_run(&run, input, err);
	if (!code)
		code = take_sample(&run, input, err);
	if (!code)
		code = take_natives(&run, ret);
	if (!code && input->on_repeat) {
		input->on_repeat(input->ctx, true);
		code = check_cached(input, err);
		input->on_repeat(input->ctx, false);
	}
	if (!code)
		code = recording__commit(run.recording, err);
	if (!code)
		code = load_stack(run.path, true, ret, err);
	if (!code)
		code = hide_frames(run.path, ret, err);
	if (!code)
		code = check_live(&run, false, err);
	if (!code)
		code = check_live(&run, true, err);
	if (!code && input->inspect)
		input->inspect(input->ctx, run.process, ret);
	close_run(&run);
	host.memory = NULL;
	half__reset();
	return code;
}

void pipeline__done(struct pipeline_stack *stack)
{
	for (size_t i = 0; i < stack->n_frames; i++) {
		free(stack->frames[i].label);
		free(stack->frames[i].name);
		free(stack->frames[i].file);
	}
	for (size_t i = 0; i < stack->n_natives; i++)
		free(stack->natives[i].image);
	free(stack->frames);
	free(stack->natives);
	*stack = (struct pipeline_stack) {};
}
