// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "core/naming.h"
#include "core/profile.h"
#include "core/unwind_copy.h"
#include "core/util.h"

struct native_frame {
	uint64_t ip; /* with NATIVE_EXACT */
	uint64_t cfa;
};

struct capture {
	struct capture_opts opts;
	struct capture_stats stats;
	struct naming *naming;
	struct u64map kernel_frames; /* address -> frame id */
	struct unwind_copy *copier;
	struct process *copied;	  /* whose stack the copier unwinds */
	struct rec_stack *stacks; /* per CPU: the copy that belongs to its next sample */
	int n_cpus;
	struct native_frame frames[NATIVE_FRAMES_MAX];
	size_t n_frames;
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

int capture__new(const struct capture_opts *opts, struct capture **ret, struct err *err)
{
	struct capture *capture = calloc(1, sizeof(*capture));
	int code = -ENOMEM;

	if (!capture)
		return err__set(err, -ENOMEM, "out of memory");
	capture->opts = *opts;
	capture->n_cpus = libbpf_num_possible_cpus();
	capture->stacks = calloc(capture->n_cpus, sizeof(*capture->stacks));
	if (capture->stacks)
		code = naming__new(&(struct naming_opts) { opts->recording, opts->runtimes,
							   opts->sessions, opts->kallsyms_path },
				   &capture->naming, err);
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
	naming__free(capture->naming);
	unwind_copy__free(capture->copier);
	u64map__done(&capture->kernel_frames);
	free(capture->stacks);
	free(capture);
}

const struct capture_stats *capture__stats(const struct capture *capture)
{
	return &capture->stats;
}

int capture__name_frames(struct capture *capture, struct err *err)
{
	return naming__run(capture->naming, err);
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

static int kernel_frame(struct capture *capture, uint64_t address, uint32_t *ret_id,
			struct err *err)
{
	struct recording_frame frame = { .kind = KIND_KERNEL, .address = address };
	int code;

	*ret_id = u64map__get(&capture->kernel_frames, address);
	if (*ret_id)
		return 0;
	code = recording__frame(capture->opts.recording, &frame, ret_id, NULL, err);
	if (!code)
		code = u64map__put(&capture->kernel_frames, address, *ret_id);
	if (!code)
		code = naming__add_kernel(capture->naming, *ret_id, address);
	return code;
}

static int image_id(struct capture *capture, struct image *image, struct err *err)
{
	char hex[2 * ELF_BUILD_ID_MAX + 1] = "";
	size_t i;

	if (image->recording_id)
		return 0;
	for (i = 0; i < image->file->build_id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", image->file->build_id[i]);
	return recording__image(capture->opts.recording, image->file->path, hex,
				&image->recording_id, err);
}

/* First sight of an ip of this process. A return address is looked up one byte before: the call
 * may be the last instruction of its function. */
static int new_native_frame(struct capture *capture, struct process *process, uint64_t ip,
			    uint32_t *ret_id, struct err *err)
{
	uint64_t address = (ip & ~NATIVE_EXACT) - !(ip & NATIVE_EXACT);
	const struct mapped *mapped = process__find(process, address);
	struct recording_frame frame = { .kind = KIND_NATIVE };
	bool is_new;
	int code = 0;

	frame.address = address - (mapped ? mapped->bias : 0);
	if (mapped && mapped->image) {
		code = image_id(capture, mapped->image, err);
		frame.image = mapped->image->recording_id;
	} else {
		code = capture__process_id(capture, process, &frame.process, err);
	}
	if (!code)
		code = recording__frame(capture->opts.recording, &frame, ret_id, &is_new, err);
	if (!code)
		code = u64map__put(&process->frames, ip, *ret_id);
	if (code || !is_new)
		return code;
	if (frame.image)
		return naming__add_native(capture->naming, *ret_id, mapped->image, frame.address);
	return naming__add_anonymous(capture->naming, *ret_id, mapped ? mapped->path : "",
				     frame.address);
}

static int native_frame(struct capture *capture, struct process *process, uint64_t ip,
			uint32_t *ret_id, struct err *err)
{
	*ret_id = u64map__get(&process->frames, ip);
	return *ret_id ? 0 : new_native_frame(capture, process, ip, ret_id, err);
}

static int runtime_of_walker(const struct capture *capture, uint32_t walker)
{
	int i;

	for (i = 0; capture->opts.runtimes[i]; i++)
		if (capture->opts.runtimes[i]->walker == (int)walker && capture->opts.sessions[i])
			return i;
	return -1;
}

static int runtime_frame(struct capture *capture, uint32_t process, int runtime, uint64_t key,
			 uint32_t *ret_id, struct err *err)
{
	struct recording_frame frame = { .kind = KIND_RUNTIME + runtime,
					 .process = process,
					 .address = key };
	bool is_new;
	int code = recording__frame(capture->opts.recording, &frame, ret_id, &is_new, err);

	if (!code && is_new)
		code = naming__add_runtime(capture->naming, *ret_id, runtime, key);
	return code;
}

/* The native stack as tree nodes, outermost first, then the kernel's on top of it. */
static int native_nodes(struct capture *capture, struct process *process, const uint64_t *kernel,
			size_t n_kernel, uint64_t base, uint32_t *ret_node, struct err *err)
{
	uint32_t node = 0, frame;
	int code = 0;
	size_t i;

	for (i = capture->n_frames; !code && i-- > 0;) {
		const struct native_frame *from = &capture->frames[i];

		code = native_frame(capture, process, from->ip, &frame, err);
		if (!code)
			code = recording__node(capture->opts.recording, node, frame,
					       from->cfa ? (int64_t)(base - from->cfa)
							 : RECORDING_NO_OFFSET,
					       &node, err);
	}
	for (i = n_kernel; !code && i-- > 0;) {
		code = kernel_frame(capture, kernel[i], &frame, err);
		if (!code)
			code = recording__node(capture->opts.recording, node, frame,
					       RECORDING_NO_OFFSET, &node, err);
	}
	*ret_node = node;
	return code;
}

static int runtime_nodes(struct capture *capture, uint32_t process, const struct rec_sample *rec,
			 const uint64_t *pairs, uint64_t base, uint32_t *ret_node, struct err *err)
{
	int runtime = runtime_of_walker(capture, rec->walker), code = 0;
	uint32_t node = 0, frame;
	size_t i;

	if (runtime < 0)
		return 0;
	capture->stats.runtime_frames[runtime] += rec->n_runtime;
	for (i = rec->n_runtime; !code && i-- > 0;) {
		code = runtime_frame(capture, process, runtime, pairs[2 * i], &frame, err);
		if (!code)
			code = recording__node(capture->opts.recording, node, frame,
					       pairs[2 * i + 1] ? (int64_t)(base - pairs[2 * i + 1])
								: RECORDING_NO_OFFSET,
					       &node, err);
	}
	*ret_node = node;
	return code;
}

static const struct rec_stack *take_stack(struct capture *capture, const struct rec_sample *rec)
{
	int i;

	for (i = 0; i < capture->n_cpus; i++)
		if (capture->stacks[i].type && capture->stacks[i].tid == rec->tid &&
		    capture->stacks[i].time_ns == rec->time_ns) {
			capture->stacks[i].type = 0;
			return &capture->stacks[i];
		}
	return NULL;
}

static int keep_stack(struct capture *capture, const struct rec_stack *rec, size_t size)
{
	int i, slot = 0;

	if (size < REC_STACK_HEADER || rec->size > size - REC_STACK_HEADER)
		return 0;
	for (i = 0; i < capture->n_cpus; i++) {
		if (!capture->stacks[i].type) {
			slot = i;
			break;
		}
		if (capture->stacks[i].time_ns < capture->stacks[slot].time_ns)
			slot = i; /* its sample was lost */
	}
	memcpy(&capture->stacks[slot], rec, REC_STACK_HEADER + rec->size);
	return 0;
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
	int n, i;

	memcpy(input.regs, stack->regs, sizeof(input.regs));
	if (capture->copied != process)
		unwind_copy__flush(capture->copier);
	capture->copied = process;
	n = unwind_copy__run(capture->copier, &input, frames, NATIVE_FRAMES_MAX, &complete);
	if (n <= 0)
		return;
	if (capture->opts.unwind == UNWIND_MODE_COPY)
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

static uint64_t stack_base(const struct capture *capture)
{
	size_t i;

	for (i = capture->n_frames; i-- > 0;)
		if (capture->frames[i].cfa)
			return capture->frames[i].cfa;
	return 0;
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
		.time_ns = rec->time_ns, .cpu = rec->cpu, .flags = rec->flags, .weight = 1
	};
	const struct rec_stack *stack = NULL;
	char name[THREAD_NAME_BYTES + 1] = "";
	uint32_t process_id;
	int code;

	if (!process || !sample_is_sane(rec, size))
		return 0;
	if (rec->flags & SAMPLE_HAS_STACK)
		stack = take_stack(capture, rec);
	capture->n_frames = rec->n_native;
	memcpy(capture->frames, native, rec->n_native * sizeof(*capture->frames));
	if (stack)
		unwind_stack_copy(capture, process, stack, rec->stop, &row.flags);
	memcpy(name, rec->comm, THREAD_NAME_BYTES);
	code = capture__process_id(capture, process, &process_id, err);
	if (!code)
		code = recording__thread(capture->opts.recording, process_id, rec->tid, name,
					 &row.thread, err);
	if (!code)
		code = native_nodes(capture, process, words, rec->n_kernel, stack_base(capture),
				    &row.native, err);
	if (!code)
		code = runtime_nodes(capture, process_id, rec, native + 2 * rec->n_native,
				     stack_base(capture), &row.runtime, err);
	if (!code)
		code = recording__sample(capture->opts.recording, &row, err);
	capture->stats.samples++;
	capture->stats.complete += !!(row.flags & SAMPLE_COMPLETE);
	capture->stats.kernel_frames += rec->n_kernel;
	capture->stats.native_frames += capture->n_frames;
	return code;
}

static int on_task(struct capture *capture, const struct rec_task *rec)
{
	struct process *process = tracker__find(capture->opts.tracker, rec->tgid);

	if (rec->type == REC_FORK)
		return tracker__on_fork(capture->opts.tracker, rec->parent_tgid, rec->tgid);
	if (!process)
		return 0;
	if (process == capture->copied)
		capture->copied = NULL; /* what the copier has cached may be wrong now */
	return rec->type == REC_EXEC
		       ? tracker__on_exec(capture->opts.tracker, process)
		       : tracker__on_unmapped(capture->opts.tracker, process, rec->time_ns);
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

int capture__record(struct capture *capture, const void *data, size_t size, struct err *err)
{
	const uint32_t *type = data;
	int code = 0;

	if (size >= sizeof(struct rec_sample) && *type == REC_SAMPLE)
		code = on_sample(capture, data, size, err);
	else if (size >= REC_STACK_HEADER && *type == REC_STACK)
		code = keep_stack(capture, data, size);
	else if (size >= sizeof(*type) && *type == REC_CODE)
		code = on_code(capture, data, size);
	else if (size >= sizeof(struct rec_task))
		code = on_task(capture, data);
	return code == -ENOMEM ? err__set(err, code, "out of memory") : code;
}
