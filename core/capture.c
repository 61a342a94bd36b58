// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "core/jit_frames.h"
#include "core/naming.h"
#include "core/pairing.h"
#include "core/stack_copies.h"
#include "core/stack_nodes.h"
#include "core/unwind_copy.h"
#include "core/util.h"

struct capture_weight { /* of samples taken since then, CLOCK_MONOTONIC */
	uint64_t since_ns;
	uint32_t value;
};

struct capture {
	struct capture_opts opts;
	struct capture_stats stats;
	struct naming *naming;
	struct jit_frames *jit;
	struct stack_nodes *nodes;
	struct unwind_copy *copier;
	struct process *copied; /* whose stack the copier unwinds */
	struct stack_copies *stacks;
	struct native_frame frames[NATIVE_FRAMES_MAX];
	size_t n_frames;
	struct runtime_pair pairs[RUNTIME_PAIRS_MAX];
	struct pairing *pairing;
	struct capture_weight weight, weight_before;
	bool skips_copies;
};

static const struct elf_file *find_image(void *ctx, uint64_t ip, uint64_t *ret_bias)
{
	struct capture *capture = ctx;
	const struct mapped *mapped = process__find(capture->copied, ip);

	if (!mapped || !mapped->image)
		return NULL;
	*ret_bias = mapped->bias;
	return mapped->image->file;
}

static bool hurries(const struct capture *capture)
{
	return capture->opts.hurries && capture->opts.hurries(capture->opts.ctx);
}

void capture__skip_copies(struct capture *capture)
{
	capture->skips_copies = true;
}

int capture__new(const struct capture_opts *opts, struct capture **ret, struct err *err)
{
	struct capture *capture = calloc(1, sizeof(*capture));
	int code = -ENOMEM;

	if (!capture)
		return err__set(err, -ENOMEM, "out of memory");
	capture->opts = *opts;
	capture->weight.value = 1;
	capture->stacks = stack_copies__new(libbpf_num_possible_cpus());
	capture->pairing = pairing__new();
	if (capture->stacks && capture->pairing)
		code = naming__new(&(struct naming_opts) { opts->recording, opts->runtimes,
							   opts->sessions, opts->kallsyms_path,
							   opts->hurries, opts->ctx },
				   &capture->naming, err);
	if (!code)
		code = jit_frames__new(&(struct jit_frames_opts) { opts->recording, opts->tracker,
								   capture->naming, opts->runtimes,
								   opts->sessions, opts->enabled,
								   opts->on_source, opts->ctx },
				       &capture->jit);
	if (!code)
		code = stack_nodes__new(
			&(struct stack_nodes_opts) { opts->recording, capture->naming, capture->jit,
						     opts->runtimes, opts->sessions },
			&capture->nodes);
	if (!code)
		code = unwind_copy__new(find_image, capture, &capture->copier);
	if (code)
		capture__free(capture);
	else
		*ret = capture;
	return code;
}

void capture__free(struct capture *capture)
{
	if (!capture)
		return;
	jit_frames__free(capture->jit);
	naming__free(capture->naming);
	unwind_copy__free(capture->copier);
	pairing__free(capture->pairing);
	stack_nodes__free(capture->nodes);
	stack_copies__free(capture->stacks);
	free(capture);
}

void capture__weigh(struct capture *capture, uint64_t since_ns, uint32_t value)
{
	capture->weight_before = capture->weight;
	capture->weight = (struct capture_weight) { since_ns, value };
}

static uint32_t weight_at(const struct capture *capture, uint64_t time_ns)
{
	return time_ns < capture->weight.since_ns ? capture->weight_before.value
						  : capture->weight.value;
}

const struct capture_stats *capture__stats(const struct capture *capture)
{
	return &capture->stats;
}

int capture__name_frames(struct capture *capture, bool last, struct err *err)
{
	int code = naming__run(capture->naming, last, err);

	capture->stats.kernel_unnamed = naming__kernel_unnamed(capture->naming);
	return code || hurries(capture) ? code : jit_frames__run(capture->jit, last, err);
}

int capture__process_ended(struct capture *capture, struct process *process, struct err *err)
{
	int code = process->jit ? naming__process_ended(capture->naming, process->pid, err) : 0;

	return code ? code : jit_frames__ended(capture->jit, process, err);
}

struct jit_frames *capture__jit(const struct capture *capture)
{
	return capture->jit;
}

int capture__process_id(struct capture *capture, struct process *process, uint32_t *ret_id,
			struct err *err)
{
	struct recording_process row = { process->info.pid, process->info.parent_pid,
					 process->info.start_ticks, process->info.name,
					 process->info.command };
	int code = 0;

	if (!process->recording_id)
		code = recording__process(capture->opts.recording, &row, &process->recording_id,
					  err);
	*ret_id = process->recording_id;
	return code;
}

static int runtime_of_walker(const struct capture *capture, uint32_t walker)
{
	int i;

	for (i = 0; capture->opts.runtimes[i]; i++)
		if (capture->opts.runtimes[i]->walker == (int)walker && capture->opts.sessions[i])
			return i;
	return -1;
}

static uint64_t stack_base(const struct capture *capture)
{
	size_t i;

	for (i = capture->n_frames; i-- > 0;)
		if (capture->frames[i].cfa)
			return capture->frames[i].cfa;
	return 0;
}

static int runtime_nodes(struct capture *capture, const struct stack_owner *owner,
			 const struct rec_sample *rec, const void *words, bool native_complete,
			 uint32_t *ret_node, struct err *err)
{
	int runtime = runtime_of_walker(capture, rec->walker);
	struct runtime_pair *pairs = capture->pairs;
	size_t n = min_of(rec->n_runtime, ARRAY_SIZE(capture->pairs));

	if (runtime < 0 || !n)
		return 0;
	memcpy(pairs, words, n * sizeof(*pairs));
	n = pairing__run(capture->pairing,
			 &(struct pairing_sample) { .process = owner->process,
						    .runtime = capture->opts.runtimes[runtime],
						    .session = capture->opts.sessions[runtime],
						    .index = runtime,
						    .natives = capture->frames,
						    .n_natives = capture->n_frames,
						    .native_complete = native_complete,
						    .flags = rec->flags },
			 pairs, n);
	capture->stats.runtime_frames[runtime] += n;
	return stack_nodes__runtime(capture->nodes, owner, runtime, pairs, n, ret_node, err);
}

/* Counts how far the tables' frames equal the copy's. Where the copy ended too early only the
 * frames that it reached count, and where the tables were not there yet (`stop`) none. */
static void compare(struct capture *capture, const struct unwind_copy_frame *frames, size_t n,
		    bool complete, uint16_t stop)
{
	struct capture_stats *stats = &capture->stats;
	size_t most = complete ? max_of(n, capture->n_frames) : min_of(n, capture->n_frames);
	size_t i, equal = 0;

	if (stop == COUNT_NO_MAPPINGS || stop == COUNT_UNMAPPED_PC || stop == COUNT_TRUNCATED)
		return;
	for (i = 0; i < n && i < capture->n_frames; i++)
		equal += frames[i].ip == (capture->frames[i].ip & ~NATIVE_EXACT) &&
			 frames[i].exact == !!(capture->frames[i].ip & NATIVE_EXACT) &&
			 (!frames[i].cfa || frames[i].cfa == capture->frames[i].cfa);
	stats->copy_stacks++;
	stats->copy_stacks_equal += equal == most;
	stats->copy_frames += most;
	stats->copy_frames_equal += equal;
}

/* Of code that a compiler made libunwind knows nothing, and may take it to return anywhere: frames
 * up to the first that is outside of all code. */
static int count_frames_in_code(const struct process *process,
				const struct unwind_copy_frame *frames, int n)
{
	int i;

	for (i = 1; i < n; i++)
		if (!process__find(process, frames[i].ip))
			return i;
	return n;
}

/* Unwinds the stack copy that came with a sample, and takes the result if it is complete or
 * reaches further than the tables did. */
static void unwind_stack_copy(struct capture *capture, struct process *process,
			      const struct rec_stack *stack, uint16_t stop, uint32_t *flags)
{
	static struct unwind_copy_frame frames[NATIVE_FRAMES_MAX];
	struct unwind_copy_input input = { .stack_start = stack->start,
					   .stack = stack->data,
					   .stack_size = stack->size };
	bool complete = false;
	int n, in_code, i;

	memcpy(input.regs, stack->regs, sizeof(input.regs));
	if (capture->copied != process)
		unwind_copy__flush(capture->copier);
	capture->copied = process;
	n = unwind_copy__run(capture->copier, &input, frames, NATIVE_FRAMES_MAX, &complete);
	if (n <= 0)
		return;
	in_code = count_frames_in_code(process, frames, n);
	complete = complete && in_code == n;
	n = in_code;
	/* Mappings that changed since may not be those that the kernel half unwound with. */
	if (capture->opts.unwind == UNWIND_MODE_COPY && process->changed_ns < stack->time_ns)
		compare(capture, frames, n, complete, stop);
	if (!complete && (*flags & SAMPLE_COMPLETE || (size_t)n <= capture->n_frames))
		return;
	capture->stats.copies_used += !(*flags & SAMPLE_COMPLETE);
	capture->stats.recovered[stop < COUNTERS_N ? stop : 0] += complete;
	for (i = 0; i < n; i++)
		capture->frames[i] =
			(struct native_frame) { frames[i].ip | (frames[i].exact ? NATIVE_EXACT : 0),
						frames[i].cfa };
	capture->n_frames = n;
	*flags = (*flags & ~SAMPLE_COMPLETE) | (complete ? SAMPLE_COMPLETE : 0);
}

/* Do frames of code that the walker alone knows lie between those that the tables found? */
static bool ran_own_code(const struct capture *capture, const struct rec_sample *rec)
{
	int runtime = rec->n_runtime ? runtime_of_walker(capture, rec->walker) : -1;

	return runtime >= 0 && capture->opts.runtimes[runtime]->runs_own_code;
}

static bool sample_is_sane(const struct rec_sample *rec, size_t size)
{
	size_t words = rec->n_kernel + 2 * (size_t)rec->n_native + 2 * (size_t)rec->n_runtime;

	return rec->n_native <= NATIVE_FRAMES_MAX && size >= sizeof(*rec) + 8 * words;
}

static int on_sample(struct capture *capture, const struct rec_sample *rec, size_t size,
		     struct err *err)
{
	struct process *process = tracker__find(capture->opts.tracker, rec->tgid);
	const uint64_t *words = (const uint64_t *)(rec + 1), *native = words + rec->n_kernel;
	struct recording_sample row = {
		.time_ns = rec->time_ns,
		.cpu = rec->cpu,
		.flags = rec->flags,
		.weight = weight_at(capture, rec->time_ns),
	};
	struct stack_owner owner = {
		.process = process, .tid = rec->tid, .name = rec->comm, .time_ns = rec->time_ns
	};
	const struct rec_stack *stack = NULL;
	int code;

	if (!process || !sample_is_sane(rec, size))
		return 0;
	if (rec->flags & SAMPLE_HAS_STACK)
		stack = stack_copies__take(capture->stacks, rec);
	capture->n_frames = rec->n_native;
	memcpy(capture->frames, native, rec->n_native * sizeof(*capture->frames));
	if (stack && !ran_own_code(capture, rec) && !capture->skips_copies && !hurries(capture))
		unwind_stack_copy(capture, process, stack, rec->stop, &row.flags);
	owner.base = stack_base(capture);
	code = capture__process_id(capture, process, &owner.process_id, err);
	if (!code)
		code = stack_nodes__thread(capture->nodes, &owner, &row.thread, err);
	if (!code)
		code = stack_nodes__native(capture->nodes, &owner, capture->frames,
					   capture->n_frames, words, rec->n_kernel, &row.native,
					   err);
	if (!code)
		code = runtime_nodes(capture, &owner, rec, native + 2 * rec->n_native,
				     row.flags & SAMPLE_COMPLETE, &row.runtime, err);
	if (!code)
		code = recording__sample(capture->opts.recording, &row, err);
	capture->stats.samples++;
	capture->stats.complete += !!(row.flags & SAMPLE_COMPLETE);
	capture->stats.kernel_frames += rec->n_kernel;
	capture->stats.native_frames += capture->n_frames;
	return code;
}

static int on_fork(struct capture *capture, const struct rec_task *rec, struct err *err)
{
	struct process *parent, *child;
	int code = tracker__on_fork(capture->opts.tracker, rec);

	parent = tracker__find(capture->opts.tracker, rec->parent_tgid);
	child = tracker__find(capture->opts.tracker, rec->tgid);
	if (code || !parent || !child)
		return code;
	return jit_frames__forked(capture->jit, parent, child, rec->time_ns, err);
}

/* The process, or what had its PID before, is no more. */
static int end(struct capture *capture, struct process *process, struct err *err)
{
	if (process && process == capture->copied)
		capture->copied = NULL; /* what the copier has cached is wrong now */
	return process ? capture__process_ended(capture, process, err) : 0;
}

static int on_task(struct capture *capture, const struct rec_task *rec, struct err *err)
{
	struct process *process = tracker__find(capture->opts.tracker, rec->tgid);
	int code = end(capture, process, err);

	if (code)
		return code;
	if (rec->type == REC_FORK)
		return on_fork(capture, rec, err);
	if (process)
		tracker__on_exit(capture->opts.tracker, process);
	return 0;
}

static int on_exec(struct capture *capture, const struct rec_exec *rec, struct err *err)
{
	struct process *process = tracker__find(capture->opts.tracker, rec->tgid);
	int code = end(capture, process, err);

	return code || !process ? code : tracker__on_exec(capture->opts.tracker, process, rec);
}

static int on_unmapped(struct capture *capture, const struct rec_unmapped *rec)
{
	struct process *process = tracker__find(capture->opts.tracker, rec->tgid);
	int code;

	if (!process)
		return 0;
	if (process == capture->copied)
		capture->copied = NULL;
	process->program = max_of(process->program, rec->program);
	code = tracker__on_unmapped(capture->opts.tracker, process, rec->time_ns);
	tracker__learn_file(capture->opts.tracker, process, rec);
	return code;
}

static int on_mapped(struct capture *capture, const struct rec_mapped *rec)
{
	struct process *process = tracker__find(capture->opts.tracker, rec->tgid);

	return process ? tracker__on_mapped(capture->opts.tracker, process, rec) : 0;
}

static void before_reaping(void *ctx, struct process *process)
{
	struct err err = {};

	end(ctx, process, &err); /* for the second time, if there were samples since */
}

void capture__reap(struct capture *capture)
{
	tracker__reap(capture->opts.tracker, before_reaping, capture);
}

static int on_code(struct capture *capture, const struct rec_code *rec, size_t size)
{
	int runtime = size >= REC_CODE_HEADER ? runtime_of_walker(capture, rec->walker) : -1;
	int code;

	if (runtime < 0)
		return 0;
	code = capture->opts.runtimes[runtime]->on_code(capture->opts.sessions[runtime], rec, size);
	return code == -ENOMEM ? code : 0;
}

/* Of a process. */
static int on_event(struct capture *capture, const void *data, size_t size, struct err *err)
{
	switch (*(const uint32_t *)data) {
	case REC_FORK:
	case REC_EXIT:
		return size >= sizeof(struct rec_task) ? on_task(capture, data, err) : 0;
	case REC_EXEC:
		return size >= sizeof(struct rec_exec) ? on_exec(capture, data, err) : 0;
	case REC_UNMAPPED:
		return size >= sizeof(struct rec_unmapped) ? on_unmapped(capture, data) : 0;
	case REC_MAPPED:
		return size >= sizeof(struct rec_mapped) ? on_mapped(capture, data) : 0;
	default:
		return 0;
	}
}

int capture__record(struct capture *capture, const void *data, size_t size, struct err *err)
{
	const uint32_t *type = data;
	int code = 0;

	if (size >= sizeof(struct rec_sample) && *type == REC_SAMPLE)
		code = on_sample(capture, data, size, err);
	else if (size >= REC_STACK_HEADER && *type == REC_STACK)
		stack_copies__keep(capture->stacks, data, size);
	else if (size >= sizeof(*type) && *type == REC_CODE)
		code = on_code(capture, data, size);
	else if (size >= sizeof(*type))
		code = on_event(capture, data, size, err);
	return code == -ENOMEM ? err__set(err, code, "out of memory") : code;
}
