// SPDX-License-Identifier: GPL-2.0
#include "bpf/php_code.bpf.h"

/* Walks PHP's frames, innermost first: from executor_globals.current_execute_data on, by
 * prev_execute_data. Functions written in C have frames, too.
 *
 * Calls from PHP to PHP do not nest natively: one execute_ex runs them all, up to a function that C
 * has called (a callback, a destructor, the main script, a generator that goes on). Such a one has
 * ZEND_CALL_TOP and ends the loop. */

#define FRAMES_MAX	(1 << 13)
#define FRAMES_PER_STEP 2

/* zend_execute_data, zend_compile.h, by words */
#define FRAME_WORDS  7
#define FRAME_OPLINE 0
#define FRAME_FUNC   3
#define FRAME_THIS   4
#define FRAME_INFO   5 /* This.u1.type_info, the lower half */
#define FRAME_PREV   6
#define INFO_TOP     (1U << 17) /* ZEND_CALL_TOP */

/* zend_op, zend_compile.h: extended_value, and lineno behind it */
#define OP_BYTES    32
#define OP_EXTENDED 20

/* The interpreter's loop keeps these in registers (zend_execute.c), by DWARF's numbers. */
#define REG_SP	   7
#define REG_FRAME  14
#define REG_OPLINE 15
#define REG_PC	   16

/* What kinds of include there are: the extended_value of the caller's operation (zend_compile.h) */
#define EXTENDED_EVAL	      1
#define EXTENDED_INCLUDE      2
#define EXTENDED_INCLUDE_ONCE 4
#define EXTENDED_REQUIRE      8
#define EXTENDED_REQUIRE_ONCE 16

/* Generators that delegate to one another, one inside the other. */
#define DELEGATES_MAX	16
#define GENERATOR_FRAME 56 /* zend_generator.execute_data, zend_generators.h */

#define GLOBALS_BAILOUT 416 /* zend_executor_globals.bailout, zend_globals.h */
#define BLOCK_THREAD	16  /* tsrm_tls_entry.thread_id, TSRM.c */

struct php_op {
	__u32 extended;
	__u32 line;
};

struct php_state {
	struct php_proc_rec proc;
	__u64 globals; /* executor_globals of the sampled thread; 0: it has none */
	__u64 at;      /* the next frame; 0: there are no more */
	__u64 frame[FRAME_WORDS];
	__u64 function[FUNCTION_WORDS];
	__u64 live_frame, live_opline; /* as the loop's registers say; 0: they do not */
	struct php_op op;
	__u32 n, complete, truncated;
	__u32 mark_due; /* the last frame ends a loop, unless generators that delegate to it follow
			 */
	/* Frames of these generators, outermost first, and the frame that is outside all of them */
	__u32 delegating, n_delegates;
	__u64 outside;
	__u64 delegates[DELEGATES_MAX];
	struct php_call call;
	struct php_slot slots[PHP_SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: number of slots */
	__type(key, __u32);
	__type(value, struct php_state);
} php_states SEC(".maps");

static __always_inline struct php_state *state__get(void)
{
	__u32 key = slot__key();

	return bpf_map_lookup_elem(&php_states, &key);
}

/* --- frames --- */

static __always_inline __u64 function__word(const struct php_state *state, __u32 offset)
{
	return state->function[(offset >> 3) & (FUNCTION_WORDS - 1)];
}

static __always_inline int function__holds(const struct php_state *state, __u64 opline)
{
	__u64 from = function__word(state, state->proc.offsets.opcodes);
	__u32 last = state->proc.offsets.last;
	__u32 n = function__word(state, last) >> 8 * (last & 4);

	return opline >= from && opline - from < (__u64)n * OP_BYTES;
}

/* The operation that the frame is at: state->op. A frame keeps it while it calls; of the one that
 * runs the loop has it in a register, and stores it only where something may go wrong. While an
 * exception is on its way out it is one that stands for this, and where it came from is kept. */
static __noinline int op__load(struct php_state *state)
{
	__u64 opline = state->frame[FRAME_OPLINE];

	if (state->live_frame == state->at && function__holds(state, state->live_opline))
		opline = state->live_opline;
	if (!function__holds(state, opline) &&
	    (!state->proc.offsets.exception_opline ||
	     read_user(&opline, sizeof(opline),
		       state->globals + state->proc.offsets.exception_opline) ||
	     !function__holds(state, opline)))
		opline = 0;
	if (!opline || read_user(&state->op, sizeof(state->op), opline + OP_EXTENDED))
		state->op = (struct php_op) {};
	return 0;
}

/* What has no name: the main script, or what is being included; the caller's operation tells how.
 */
static __noinline __u32 script__kind(struct php_state *state)
{
	__u64 opline;
	__u32 extended;

	if (state->frame[FRAME_INFO] & INFO_TOP)
		return PHP_CODE_MAIN;
	if (read_user(&opline, sizeof(opline), state->frame[FRAME_PREV] + 8 * FRAME_OPLINE) ||
	    read_user(&extended, sizeof(extended), opline + OP_EXTENDED))
		return PHP_CODE_INCLUDE;
	switch (extended) {
	case EXTENDED_EVAL:
		return PHP_CODE_EVAL;
	case EXTENDED_INCLUDE_ONCE:
		return PHP_CODE_INCLUDE_ONCE;
	case EXTENDED_REQUIRE:
		return PHP_CODE_REQUIRE;
	case EXTENDED_REQUIRE_ONCE:
		return PHP_CODE_REQUIRE_ONCE;
	}
	return PHP_CODE_INCLUDE;
}

static __noinline int push(struct php_state *state, struct scratch *scratch, __u32 kind, __u32 line)
{
	struct php_call *call = &state->call;
	__u32 code;

	if (!scratch)
		return 0;
	call->function = state->frame[FRAME_FUNC];
	call->key.kind = kind;
	call->key.name = state->function[FUNCTION_NAME];
	call->key.class = state->function[FUNCTION_CLASS];
	call->key.code =
		function__word(state, kind == PHP_CODE_NATIVE ? state->proc.offsets.handler
							      : state->proc.offsets.opcodes);
	call->is_trampoline = !!(state->function[0] & FUNCTION_VIA);
	code = code__number(call, state->slots);
	if (!code)
		count(COUNT_WALK_CODE);
	scratch__push(scratch, FRAME_KEY(code, line), 0);
	state->n++;
	return 0;
}

/* A fiber begins with a function in C that has no name: what is outside waits on another stack. */
static __always_inline void walk_native(struct php_state *state, struct scratch *scratch)
{
	if (state->function[FUNCTION_NAME])
		push(state, scratch, PHP_CODE_NATIVE, 0);
	else
		scratch__push(scratch, FRAME_APART, 0);
}

static __always_inline void walk_user(struct php_state *state, struct scratch *scratch, __u32 type)
{
	__u32 kind = PHP_CODE_FUNCTION;

	op__load(state);
	if (type == TYPE_EVAL)
		kind = PHP_CODE_EVAL;
	else if (!state->function[FUNCTION_NAME])
		kind = script__kind(state);
	push(state, scratch, kind, state->op.line);
	state->mark_due |= !state->delegating && state->frame[FRAME_INFO] & INFO_TOP;
}

static __always_inline void push_mark(struct php_state *state, struct scratch *scratch)
{
	if (state->mark_due)
		scratch__push(scratch, FRAME_LOOP_END, 0);
	state->mark_due = 0;
}

/* `yield from`: the innermost generator runs, and is called by a frame without a function, which is
 * a part of the outermost one. In between are those on the way from the latter to the former, which
 * has no parent (zend_generator_check_placeholder_frame, zend_generators.c). */
static __noinline int delegates__find(struct php_state *state)
{
	const struct php_offsets *offsets = &state->proc.offsets;
	__u64 generator = state->frame[FRAME_THIS], parent;
	__u32 i;

	state->n_delegates = 0;
	if (!offsets->generator_fake || state->at != generator + offsets->generator_fake)
		return 0;
	for (i = 0; i < DELEGATES_MAX; i++) {
		if (read_user(&parent, sizeof(parent), generator + offsets->generator_parent))
			break;
		if (!parent)
			break;
		if (read_user(&state->delegates[i], sizeof(state->delegates[i]),
			      generator + GENERATOR_FRAME))
			break;
		generator = parent;
	}
	if (i == DELEGATES_MAX)
		state->truncated = 1;
	state->n_delegates = i;
	state->delegating = 1;
	state->outside = state->frame[FRAME_PREV];
	return 0;
}

static __always_inline void frame__next(struct php_state *state)
{
	__u32 n;

	if (!state->frame[FRAME_FUNC])
		delegates__find(state);
	state->at = state->frame[FRAME_PREV];
	if (!state->delegating)
		return;
	n = state->n_delegates - 1;
	state->at = state->outside;
	if (state->n_delegates) {
		state->at = state->delegates[n & (DELEGATES_MAX - 1)];
		state->n_delegates = n;
	} else {
		state->delegating = 0;
	}
}

/* --- the interpreter --- */

/* Without thread safety there is one interpreter. Its innermost place to leave a script from
 * (zend_try) is a variable on the stack of the thread that runs it, between the stack pointer and,
 * if that is not the first thread, the thread's own data. None: the first thread. */
static __noinline int globals__find_single(struct php_state *state, const struct scratch *scratch)
{
	const struct php_proc_rec *proc = &state->proc;
	const struct task_struct *task = bpf_get_current_task_btf();
	int is_first = scratch->sample.tid == scratch->sample.tgid;
	__u64 bailout = 0;

	if (read_user(&bailout, sizeof(bailout), proc->globals + GLOBALS_BAILOUT))
		return -1;
	if (!bailout || !scratch->has_regs)
		state->globals = is_first ? proc->globals : 0;
	else if (bailout >= scratch->interrupted[REG_SP] &&
		 (is_first || bailout < task->thread.fsbase))
		state->globals = proc->globals;
	return 0;
}

/* With thread safety each thread has one, in a block of TSRM's under a thread key: TSRM/TSRM.c,
 * tsrm_get_ls_cache(). The block knows its thread, so that a key which is no more, or not yet,
 * TSRM's does not count. */
static __noinline int globals__find_own(struct php_state *state)
{
	const struct php_proc_rec *proc = &state->proc;
	const struct task_struct *task = bpf_get_current_task_btf();
	__u64 offset, block = 0, owner;
	__u32 key;

	if (read_user(&key, sizeof(key), proc->key_at) ||
	    read_user(&offset, sizeof(offset), proc->globals) ||
	    read_specific(&proc->libc, task->thread.fsbase, key, &block))
		return -1;
	if (offset && block && !read_user(&owner, sizeof(owner), block + BLOCK_THREAD) &&
	    owner == task->thread.fsbase)
		state->globals = block + offset;
	return 0;
}

static __always_inline int globals__find(struct php_state *state, const struct scratch *scratch)
{
	state->globals = 0;
	return state->proc.key_at ? globals__find_own(state) : globals__find_single(state, scratch);
}

/* --- the walk --- */

/* Returns 0 if there is more to walk. */
static __always_inline int walk_frame(struct php_state *state, struct scratch *scratch)
{
	__u32 type;

	if (!state->at) {
		push_mark(state, scratch);
		state->complete = 1;
		return 1;
	}
	if (state->n >= RUNTIME_FRAMES_MAX) {
		state->truncated = 1;
		return 1;
	}
	if (read_user(state->frame, sizeof(state->frame), state->at)) {
		count(COUNT_WALK_READ);
		return 1;
	}
	/* Without a function it stands for generators that delegate, or for nothing. */
	if (state->frame[FRAME_FUNC]) {
		if (!state->delegating)
			push_mark(state, scratch);
		if (read_user(state->function, sizeof(state->function), state->frame[FRAME_FUNC])) {
			count(COUNT_WALK_READ);
			return 1;
		}
		type = state->function[0] & FUNCTION_TYPE;
		if (type == TYPE_INTERNAL) {
			walk_native(state, scratch);
		} else if (type == TYPE_USER || type == TYPE_EVAL) {
			walk_user(state, scratch, type);
		} else {
			count(COUNT_WALK_CODE);
			return 1;
		}
	}
	frame__next(state);
	return 0;
}

static long walk_step(__u32 index, void *unused)
{
	struct php_state *state = state__get();
	struct scratch *scratch = scratch__get();
	__u32 i;

	(void)index, (void)unused;
	if (!state || !scratch)
		return 1;
	for (i = 0; i < FRAMES_PER_STEP; i++)
		if (walk_frame(state, scratch))
			return 1;
	return 0;
}

static __always_inline void registers__read(struct php_state *state, const struct scratch *scratch)
{
	__u64 pc = scratch->interrupted[REG_PC];
	int i;

	state->live_frame = state->live_opline = 0;
	if (!scratch->has_regs)
		return;
	for (i = 0; i < PHP_LOOPS_MAX; i++) {
		if (pc < state->proc.loops[i][0] || pc >= state->proc.loops[i][1])
			continue;
		state->live_frame = scratch->interrupted[REG_FRAME];
		state->live_opline = scratch->interrupted[REG_OPLINE];
	}
}

static __always_inline void walk(struct scratch *scratch, struct php_state *state,
				 struct php_proc_rec *proc)
{
	struct rec_sample *sample = &scratch->sample;
	__u32 first_word = scratch->n_words;

	state->proc = *proc;
	state->call.now_ns = sample->time_ns;
	state->call.tgid = sample->tgid;
	state->call.key.space = scratch->proc.space;
	state->call.offsets = proc->offsets;
	state->n = state->complete = state->truncated = 0;
	state->mark_due = state->delegating = state->n_delegates = 0;
	if (globals__find(state, scratch) ||
	    (state->globals &&
	     read_user(&state->at, sizeof(state->at), state->globals + proc->offsets.current))) {
		count(COUNT_WALK_NO_STATE);
		return;
	}
	if (!state->globals)
		return;
	registers__read(state, scratch);
	if (bpf_loop(FRAMES_MAX / FRAMES_PER_STEP, walk_step, NULL, 0) >=
	    FRAMES_MAX / FRAMES_PER_STEP)
		state->truncated = 1;
	scratch__walked(scratch, WALKER_PHP, first_word, state->complete, state->truncated);
}

SEC("?perf_event")
int walk_php(void *ctx)
{
	struct scratch *scratch = scratch__get();
	struct php_state *state = state__get();
	struct php_proc_rec *proc;

	if (!scratch || !state) {
		scratch__abandon();
		return 0;
	}
	proc = bpf_map_lookup_elem(&php_procs, &scratch->proc.space);
	if (proc)
		walk(scratch, state, proc);
	else
		count(COUNT_WALK_NO_STATE);
	scratch__next(ctx, scratch);
	return 0;
}
