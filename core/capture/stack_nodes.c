// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/stack_nodes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/lock_calls.h"
#include "bpf/shared.h"
#include "core/base/u64map.h"
#include "core/capture/stack_cache.h"
#include "core/profile/profile.h"
#include "core/target/compiled_code.h"
#include "core/target/data_symbol.h"
#include "core/target/mapping_times.h"

#define GIVEN_NAME_BYTES 256

struct stack_nodes {
	struct stack_nodes_opts opts;
	struct stack_cache *cache;
	struct u64map kernel_frames; /* address -> frame id */
};

_Static_assert(sizeof(struct native_frame) == sizeof(struct cached_pair) &&
		       sizeof(struct runtime_pair) == sizeof(struct cached_pair),
	       "frames are pairs");

static int no_memory(struct err *err)
{
	return err__set(err, -ENOMEM, "out of memory");
}

int stack_nodes__new(const struct stack_nodes_opts *opts, struct stack_nodes **ret)
{
	struct stack_nodes *nodes = calloc(1, sizeof(*nodes));

	if (!nodes)
		return -ENOMEM;
	nodes->opts = *opts;
	nodes->cache = stack_cache__new();
	if (!nodes->cache) {
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
	stack_cache__free(nodes->cache);
	u64map__done(&nodes->kernel_frames);
	free(nodes);
}

void stack_nodes__forget(struct stack_nodes *nodes)
{
	stack_cache__forget(nodes->cache);
	u64map__done(&nodes->kernel_frames);
}

int stack_nodes__renew(struct stack_nodes *nodes)
{
	struct stack_cache *cache = stack_cache__new();

	if (!cache)
		return -ENOMEM;
	stack_cache__free(nodes->cache);
	nodes->cache = cache;
	u64map__done(&nodes->kernel_frames);
	return 0;
}

/* Returns the attached runtimes that have not received a request for the thread's name. */
static uint32_t to_ask(const struct captured *captured, const struct cached_thread *thread)
{
	return thread->settled ? 0 : process__attached(captured->process) & ~thread->requested;
}

/* Requests the name from these runtimes. Returns 0; -ENOENT if they have none; -EAGAIN if a runtime
 * must get a later request; or -ENOMEM. */
static int ask_name(struct stack_nodes *nodes, const struct captured *captured, const char *kernel,
		    struct cached_thread *thread, char name[GIVEN_NAME_BYTES])
{
	uint32_t asks = to_ask(captured, thread);
	int ret = -ENOENT, code;

	for (int i = 0; nodes->opts.runtimes[i]; i++) {
		const struct runtime *runtime = nodes->opts.runtimes[i];

		if (!(asks & 1U << i))
			continue;
		code = runtime__has(runtime, names, thread_name)
			       ? runtime->names->thread_name(nodes->opts.sessions[i],
							     captured->process->pid, thread->tid,
							     kernel, name, GIVEN_NAME_BYTES)
			       : -ENOENT;
		if (code == -EAGAIN) {
			ret = code;
			continue;
		}
		thread->requested |= 1U << i;
		if (code == -ENOMEM || (!code && name[0]))
			return code;
	}
	return ret;
}

/* Gives the thread's row the program's own name, if there is one. @kernel is as in the runtimes'
 * hook. */
static int name_thread(struct stack_nodes *nodes, const struct captured *captured,
		       const char *kernel, struct cached_thread *thread, struct err *err)
{
	char given[GIVEN_NAME_BYTES] = "";
	int ret = ask_name(nodes, captured, kernel, thread, given);

	if (ret == -ENOMEM)
		return no_memory(err);
	if (!ret)
		ret = thread->row ? ids__thread_is_called(nodes->opts.ids, thread->row, given, err)
				  : ids__thread(nodes->opts.ids, captured->id, thread->tid, given,
						&thread->row, err);
	else if (ret == -EAGAIN || ret == -ENOENT)
		return 0;
	thread->given = thread->settled = !ret;
	return ret;
}

int stack_nodes__thread(struct stack_nodes *nodes, const struct stack_owner *owner,
			uint32_t *ret_id, struct err *err)
{
	struct cached_thread *thread =
		stack_cache__thread(nodes->cache, owner->captured->id, owner->tid);
	bool changed = !thread->row || memcmp(thread->name, owner->name, THREAD_NAME_BYTES) != 0;
	char kernel[THREAD_NAME_BYTES + 1] = "";
	int ret = 0;

	if (changed)
		process_names__see(owner->captured, owner->tid, owner->name);
	memcpy(kernel, owner->name, THREAD_NAME_BYTES);
	memcpy(thread->name, owner->name, THREAD_NAME_BYTES);
	thread->serial = owner->captured->serial;
	/* A program that renames a thread mostly gives the new name to the kernel, too. */
	if (thread->given && changed) {
		thread->requested = 0;
		thread->settled = false;
	}
	if (to_ask(owner->captured, thread))
		ret = name_thread(nodes, owner->captured, kernel, thread, err);
	if (!ret && !thread->given && changed)
		ret = ids__thread(nodes->opts.ids, owner->captured->id, owner->tid, kernel,
				  &thread->row, err);
	*ret_id = thread->row;
	return ret;
}

int stack_nodes__name_threads(struct stack_nodes *nodes, const struct captured_set *processes,
			      struct err *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < STACK_CACHE_THREADS; i++) {
		struct cached_thread *thread = stack_cache__nth_thread(nodes->cache, i);
		const struct captured *captured =
			thread->row ? captured__find(processes, thread->serial) : NULL;

		if (captured && to_ask(captured, thread))
			ret = name_thread(nodes, captured, NULL, thread, err);
	}
	return ret;
}

static int kernel_frame(struct stack_nodes *nodes, uint64_t address, uint32_t *ret_id,
			struct err *err)
{
	struct ids_frame frame = { .kind = KIND_KERNEL, .address = address };
	bool is_new;
	int ret;

	*ret_id = u64map__get(&nodes->kernel_frames, address);
	if (*ret_id)
		return 0;
	ret = ids__frame(nodes->opts.ids, &frame, ret_id, &is_new, err);
	if (!ret)
		ret = u64map__put(&nodes->kernel_frames, address, *ret_id);
	if (!ret && is_new)
		ret = naming__add_kernel(nodes->opts.naming, *ret_id, address);
	return ret;
}

/* Returns true for a word that is a mutex of one process (bpf/lock_calls.h) instead of a kernel
 * frame. */
static bool is_lock(uint64_t word)
{
	return word >= BLOCK_KINDS_N && !(word >> 63);
}

static int lock_frame(struct stack_nodes *nodes, const struct stack_owner *owner, uint64_t word,
		      uint32_t *ret_id, struct err *err)
{
	const struct process *process = owner->captured->process;
	struct ids_frame frame = { .kind = KIND_KERNEL,
				   .process = owner->captured->id,
				   .address = word };
	uint32_t life = LOCK_NODE_LIFE(word);
	char symbol[150] = "", number[16] = "", text[220];
	bool is_new = false;
	int ret = ids__frame(nodes->opts.ids, &frame, ret_id, &is_new, err);

	if (ret || !is_new)
		return ret;
	if (life) /* not the first mutex at this address */
		snprintf(number, sizeof(number), " #%u", life);
	if (!data_symbol__of(process, LOCK_NODE_ADDRESS(word), symbol, sizeof(symbol)))
		strcat(symbol, " ");
	snprintf(text, sizeof(text), "[mutex %s0x%" PRIx64 "%s of pid %u]", symbol,
		 (uint64_t)LOCK_NODE_ADDRESS(word), number, process->pid);
	return naming__add_lock(nodes->opts.naming, *ret_id, text);
}

/* Computes the present basis of the thread's native stack. */
static int native_basis(const struct stack_owner *owner, const struct cached_stack *stack,
			struct cached_basis *ret)
{
	struct process *process = owner->captured->process;

	*ret = (struct cached_basis) { .process = owner->captured->id,
				       .changed_ns = process->changed_ns,
				       .span_ns = mapping_times__span(process, owner->time_ns),
				       .runtimes = process__attached(process) };
	return stack->moving ? compiled_code__version(process, owner->time_ns, &ret->version) : 0;
}

/* Finds the frame of a native address. Sets *@ret_moving if the address is in no image: its code
 * may then change between two samples. */
static int native_frame(struct stack_nodes *nodes, const struct stack_owner *owner,
			const struct native_frame *from, uint32_t *ret_id, bool *ret_moving,
			struct err *err)
{
	const struct place *place;

	if (place__at(owner->captured->process, native_frame__address(from), owner->time_ns,
		      &place))
		return no_memory(err);
	*ret_moving = *ret_moving || !place->image;
	return place_frames__get(nodes->opts.frames, owner->captured, place, ret_id, err);
}

/* Adds the nodes inside the @n_cached outermost frames. *@node is the node of the innermost of
 * these, and then of the whole stack. */
static int inner_nodes(struct stack_nodes *nodes, const struct stack_owner *owner,
		       struct cached_stack *stack, const struct stack_natives *natives,
		       size_t n_cached, uint32_t *node, struct err *err)
{
	bool moving = false;
	uint32_t frame;
	int ret = 0;
	size_t i;

	for (i = natives->n - n_cached; !ret && i-- > 0;) {
		const struct cached_pair *pair = (const struct cached_pair *)&natives->frames[i];
		struct cached_frame cached = { .first = pair->first,
					       .offset =
						       cached_pair__offset(pair, owner->base, 0) };

		ret = native_frame(nodes, owner, &natives->frames[i], &frame, &moving, err);
		if (!ret)
			ret = ids__node_of(nodes->opts.ids,
					   &(struct sink_node) { *node, frame, cached.offset,
								 NATIVE_EVIDENCE(pair->first) },
					   node, err);
		cached.node = *node;
		if (!ret)
			cached_stack__add(stack, natives->n - 1 - i, &cached);
	}
	if (ret || !moving)
		return ret;
	stack->moving = true;
	return compiled_code__version(owner->captured->process, owner->time_ns,
				      &stack->basis.version)
		       ? no_memory(err)
		       : 0;
}

int stack_nodes__native(struct stack_nodes *nodes, const struct stack_owner *owner,
			const struct stack_natives *natives, uint32_t *ret_node, struct err *err)
{
	struct cached_stack *stack = stack_cache__native(nodes->cache, owner->tid);
	const struct cached_query query = { .pairs = (const struct cached_pair *)natives->frames,
					    .n = natives->n,
					    .base = owner->base };
	uint32_t node = 0, frame;
	struct cached_basis basis;
	size_t n_cached, i;
	int ret;

	if (native_basis(owner, stack, &basis))
		return no_memory(err);
	ret = place_frames__see_runtimes(nodes->opts.frames, owner->captured, err);
	if (ret)
		return ret;
	n_cached = cached_stack__common(stack, &basis, &query, &node);
	if (n_cached < natives->n) {
		cached_stack__begin(stack, &basis, n_cached);
		ret = inner_nodes(nodes, owner, stack, natives, n_cached, &node, err);
	}
	for (i = natives->n_kernel; !ret && i-- > 0;) {
		ret = is_lock(natives->kernel[i])
			      ? lock_frame(nodes, owner, natives->kernel[i], &frame, err)
			      : kernel_frame(nodes, natives->kernel[i], &frame, err);
		if (!ret)
			ret = ids__node(nodes->opts.ids, node, frame, SINK_NO_OFFSET, &node, err);
	}
	*ret_node = node;
	return ret;
}

bool stack_nodes__is_moving(const struct stack_nodes *nodes, const struct stack_owner *owner)
{
	return stack_cache__native(nodes->cache, owner->tid)->moving;
}

static int runtime_frame(struct stack_nodes *nodes, uint32_t process, int runtime, uint64_t key,
			 uint32_t *ret_id, struct err *err)
{
	struct ids_frame frame = { .kind = KIND_RUNTIME + runtime,
				   .process = process,
				   .address = key };
	const struct runtime *of = nodes->opts.runtimes[runtime];
	bool is_new;
	int ret = ids__frame(nodes->opts.ids, &frame, ret_id, &is_new, err);

	if (ret || !is_new)
		return ret;
	if (runtime__has(of, names, seen))
		of->names->seen(nodes->opts.sessions[runtime], key);
	return naming__add_runtime(nodes->opts.naming, *ret_id, runtime, key);
}

int stack_nodes__runtime(struct stack_nodes *nodes, const struct stack_owner *owner,
			 const struct runtime_stack *frames, uint32_t *ret_node, struct err *err)
{
	struct cached_stack *stack = stack_cache__runtime(nodes->cache, owner->tid);
	struct cached_basis basis = { .process = owner->captured->id };
	struct cached_query query = { .pairs = (const struct cached_pair *)frames->pairs,
				      .runtimes = frames->runtimes,
				      .evidence = frames->evidence,
				      .n = frames->n,
				      .base = owner->base,
				      .apart = RUNTIME_APART };
	uint32_t node = 0, frame;
	size_t n_cached, i;
	int ret = 0;

	n_cached = cached_stack__common(stack, &basis, &query, &node);
	if (n_cached < query.n)
		cached_stack__begin(stack, &basis, n_cached);
	for (i = query.n - n_cached; !ret && i-- > 0;) {
		const struct cached_pair *pair = &query.pairs[i];
		struct cached_frame cached = { .first = pair->first,
					       .offset = cached_pair__offset(pair, owner->base,
									     RUNTIME_APART),
					       .runtime = frames->runtimes[i],
					       .evidence = frames->evidence[i] };

		ret = runtime_frame(nodes, owner->captured->id, cached.runtime, pair->first, &frame,
				    err);
		if (!ret)
			ret = ids__node_of(nodes->opts.ids,
					   &(struct sink_node) { node, frame, cached.offset,
								 cached.evidence },
					   &node, err);
		cached.node = node;
		if (!ret)
			cached_stack__add(stack, query.n - 1 - i, &cached);
	}
	*ret_node = node;
	return ret;
}
