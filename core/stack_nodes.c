// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/stack_nodes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/profile.h"
#include "core/spaces.h"
#include "core/stack_memo.h"

struct stack_nodes {
	struct stack_nodes_opts opts;
	struct stack_memo *memo;
	struct u64map kernel_frames; /* address -> frame id */
};

_Static_assert(sizeof(struct native_frame) == sizeof(struct memo_pair) &&
		       sizeof(struct runtime_pair) == sizeof(struct memo_pair),
	       "frames are pairs");

int stack_nodes__new(const struct stack_nodes_opts *opts, struct stack_nodes **ret)
{
	struct stack_nodes *nodes = calloc(1, sizeof(*nodes));

	if (!nodes)
		return -ENOMEM;
	nodes->opts = *opts;
	nodes->memo = stack_memo__new();
	if (!nodes->memo) {
		free(nodes);
		return -ENOMEM;
	}
	*ret = nodes;
	return 0;
}

void stack_nodes__free(struct stack_nodes *nodes)
{
	if (!nodes)
		return;
	stack_memo__free(nodes->memo);
	u64map__done(&nodes->kernel_frames);
	free(nodes);
}

int stack_nodes__thread(struct stack_nodes *nodes, const struct stack_owner *owner,
			uint32_t *ret_id, struct err *err)
{
	struct memo_thread *thread = stack_memo__thread(nodes->memo, owner->process_id, owner->tid);
	char name[THREAD_NAME_BYTES + 1] = "";
	int code = 0;

	if (!thread->row || memcmp(thread->name, owner->name, THREAD_NAME_BYTES) != 0) {
		memcpy(name, owner->name, THREAD_NAME_BYTES);
		code = recording__thread(nodes->opts.recording, owner->process_id, owner->tid, name,
					 &thread->row, err);
		memcpy(thread->name, owner->name, THREAD_NAME_BYTES);
	}
	*ret_id = thread->row;
	return code;
}

static int kernel_frame(struct stack_nodes *nodes, uint64_t address, uint32_t *ret_id,
			struct err *err)
{
	struct recording_frame frame = { .kind = KIND_KERNEL, .address = address };
	int code;

	*ret_id = u64map__get(&nodes->kernel_frames, address);
	if (*ret_id)
		return 0;
	code = recording__frame(nodes->opts.recording, &frame, ret_id, NULL, err);
	if (!code)
		code = u64map__put(&nodes->kernel_frames, address, *ret_id);
	if (!code)
		code = naming__add_kernel(nodes->opts.naming, *ret_id, address);
	return code;
}

static int image_id(struct stack_nodes *nodes, struct image *image, struct err *err)
{
	char hex[2 * ELF_BUILD_ID_MAX + 1] = "";
	size_t i;

	if (image->recording_id)
		return 0;
	for (i = 0; i < image->file->build_id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", image->file->build_id[i]);
	return recording__image(nodes->opts.recording, image->file->path, hex, &image->recording_id,
				err);
}

/* Is the code an interpreter loop of any runtime of the process? */
static bool in_loop(const struct stack_nodes *nodes, const struct process *process,
		    uint64_t address)
{
	enum runtime_loops how;

	for (int i = 0; nodes->opts.runtimes[i]; i++)
		if (nodes->opts.sessions[i] &&
		    pairing__in_loop(process, nodes->opts.runtimes[i], i, address, &how))
			return true;
	return false;
}

/* First sight of an ip of an image in this process. */
static int new_image_frame(struct stack_nodes *nodes, struct process *process,
			   const struct mapped *mapped, uint64_t address, uint32_t *ret_id,
			   struct err *err)
{
	struct recording_frame frame = { .kind = KIND_NATIVE,
					 .address = address - mapped->bias,
					 .loop = in_loop(nodes, process, address) };
	int code = image_id(nodes, mapped->image, err);
	bool is_new;

	frame.image = mapped->image->recording_id;
	if (!code)
		code = recording__frame(nodes->opts.recording, &frame, ret_id, &is_new, err);
	if (code || !is_new)
		return code;
	return naming__add_native(nodes->opts.naming, *ret_id, mapped->image, frame.address,
				  process->pid, address);
}

/* What code is at an address that no image holds may change with each sample: `ret_moving`. */
static int native_frame(struct stack_nodes *nodes, const struct stack_owner *owner,
			const struct native_frame *from, uint32_t *ret_id, bool *ret_moving,
			struct err *err)
{
	struct process *process = owner->process;
	uint64_t address = native_frame__address(from);
	const struct mapped *mapped;
	int code;

	*ret_id = u64map__get(&process->frames, from->ip);
	if (*ret_id)
		return 0;
	mapped = process__find(process, address);
	if (mapped && mapped->image) {
		code = new_image_frame(nodes, process, mapped, address, ret_id, err);
		return code ? code : u64map__put(&process->frames, from->ip, *ret_id);
	}
	*ret_moving = true;
	return jit_frames__get(nodes->opts.jit, process, owner->process_id, mapped, address,
			       owner->time_ns, ret_id, err);
}

/* On what the nodes of the thread's native stack depend, now. */
static int native_basis(const struct stack_owner *owner, const struct memo_stack *stack,
			struct memo_basis *ret, struct err *err)
{
	const struct process *process = owner->process;

	*ret = (struct memo_basis) { .process = owner->process_id,
				     .changed_ns = process->changed_ns,
				     .runtimes = process->space ? process->space->attached : 0 };
	return stack->moving
		       ? jit_frames__version(owner->process, owner->time_ns, &ret->version, err)
		       : 0;
}

/* The frames inside the `n_known` outermost ones, which end at `*node`. */
static int inner_nodes(struct stack_nodes *nodes, const struct stack_owner *owner,
		       struct memo_stack *stack, const struct native_frame *frames, size_t n,
		       size_t n_known, uint32_t *node, struct err *err)
{
	bool moving = false;
	uint32_t frame;
	int code = 0;
	size_t i;

	for (i = n - n_known; !code && i-- > 0;) {
		const struct memo_pair *pair = (const struct memo_pair *)&frames[i];
		struct memo_frame kept = { .first = pair->first,
					   .offset = memo_pair__offset(pair, owner->base, 0) };

		code = native_frame(nodes, owner, &frames[i], &frame, &moving, err);
		if (!code)
			code = recording__node(nodes->opts.recording, *node, frame, kept.offset,
					       node, err);
		kept.node = *node;
		if (!code)
			memo_stack__add(stack, n - 1 - i, &kept);
	}
	if (code || !moving)
		return code;
	stack->moving = true;
	return jit_frames__version(owner->process, owner->time_ns, &stack->basis.version, err);
}

int stack_nodes__native(struct stack_nodes *nodes, const struct stack_owner *owner,
			const struct native_frame *frames, size_t n, const uint64_t *kernel,
			size_t n_kernel, uint32_t *ret_node, struct err *err)
{
	struct memo_stack *stack = stack_memo__native(nodes->memo, owner->tid);
	struct memo_basis basis;
	uint32_t node = 0, frame;
	int code = native_basis(owner, stack, &basis, err);
	size_t known, i;

	if (code)
		return code;
	known = memo_stack__common(stack, &basis, (const struct memo_pair *)frames, n, owner->base,
				   0, &node);
	if (known < n) {
		memo_stack__begin(stack, &basis, known);
		code = inner_nodes(nodes, owner, stack, frames, n, known, &node, err);
	}
	for (i = n_kernel; !code && i-- > 0;) {
		code = kernel_frame(nodes, kernel[i], &frame, err);
		if (!code)
			code = recording__node(nodes->opts.recording, node, frame,
					       RECORDING_NO_OFFSET, &node, err);
	}
	*ret_node = node;
	return code;
}

static int runtime_frame(struct stack_nodes *nodes, uint32_t process, int runtime, uint64_t key,
			 uint32_t *ret_id, struct err *err)
{
	struct recording_frame frame = { .kind = KIND_RUNTIME + runtime,
					 .process = process,
					 .address = key };
	const struct runtime *of = nodes->opts.runtimes[runtime];
	bool is_new;
	int code = recording__frame(nodes->opts.recording, &frame, ret_id, &is_new, err);

	if (code || !is_new)
		return code;
	if (of->seen)
		of->seen(nodes->opts.sessions[runtime], key);
	return naming__add_runtime(nodes->opts.naming, *ret_id, runtime, key);
}

int stack_nodes__runtime(struct stack_nodes *nodes, const struct stack_owner *owner, int runtime,
			 const struct runtime_pair *pairs, size_t n, uint32_t *ret_node,
			 struct err *err)
{
	struct memo_stack *stack = stack_memo__runtime(nodes->memo, owner->tid);
	struct memo_basis basis = { .process = owner->process_id, .runtimes = runtime };
	uint32_t node = 0, frame;
	size_t known, i;
	int code = 0;

	known = memo_stack__common(stack, &basis, (const struct memo_pair *)pairs, n, owner->base,
				   ANCHOR_APART, &node);
	if (known < n)
		memo_stack__begin(stack, &basis, known);
	for (i = n - known; !code && i-- > 0;) {
		const struct memo_pair *pair = (const struct memo_pair *)&pairs[i];
		struct memo_frame kept = { .first = pair->first,
					   .offset = memo_pair__offset(pair, owner->base,
								       ANCHOR_APART) };

		code = runtime_frame(nodes, owner->process_id, runtime, pairs[i].key, &frame, err);
		if (!code)
			code = recording__node(nodes->opts.recording, node, frame, kept.offset,
					       &node, err);
		kept.node = node;
		if (!code)
			memo_stack__add(stack, n - 1 - i, &kept);
	}
	*ret_node = node;
	return code;
}
