// SPDX-License-Identifier: GPL-2.0
#include "bpf/php_frame.bpf.h"

/* Walks PHP's frames, innermost first: from executor_globals.current_execute_data on, by
 * prev_execute_data. Functions written in C have frames, too.
 *
 * Calls from PHP to PHP do not nest natively. One execute_ex runs them all, up to a function that C
 * has called (a callback, a destructor, the main script, a resumed generator). Such a function has
 * ZEND_CALL_TOP and ends the loop. */

#define FRAMES_MAX	(1 << 13)
#define FRAMES_PER_STEP 2

/* Registers of the interpreter's loop (zend_execute.c), by DWARF's numbers. */
#define REG_SP	   7
#define REG_FRAME  14
#define REG_OPLINE 15
#define REG_PC	   16

#define GENERATOR_FRAME 56 /* zend_generator.execute_data, zend_generators.h */

#define GLOBALS_BAILOUT 416 /* zend_executor_globals.bailout, zend_globals.h */

/* Operations that call a function in C without a frame, by the number in extended_value:
 * ZEND_FRAMELESS_ICALL_0 to _3, zend_vm_opcodes.h of 8.4 and 8.5 */
#define OP_FRAMELESS   204
#define OP_FRAMELESS_N 4

/* --- frames --- */

static __always_inline void push(struct php_state *state, struct scratch *scratch, __u32 code,
				 __u32 line)
{
	if (!code)
		count(COUNT_WALK_CODE);
	scratch__push(scratch, FRAME_KEY(code, line), 0);
	state->n++;
}

/* Pushes the C function of a call that has no frame of its own. The current frame is at such a
 * call, was at one when it last stored its position, or is destroying the arguments. The native
 * stack shows whether the function runs. */
static __noinline int push_frameless(struct php_state *state, struct scratch *scratch)
{
	const struct php_proc_rec *proc = &state->proc;
	struct php_call *call = &state->call;
	__u64 at = 8 * (__u64)state->op.extended, functions, function, handlers;

	if (!scratch)
		return 0;
	if (read_user(&functions, sizeof(functions), proc->frameless) ||
	    read_user(&handlers, sizeof(handlers), proc->frameless_handlers) ||
	    read_user(&function, sizeof(function), functions + at) ||
	    read_user(&call->key.code, sizeof(call->key.code), handlers + at) ||
	    function__load(call, function)) {
		count(COUNT_WALK_CODE);
		return 0;
	}
	call__intern(call, PHP_CODE_FRAMELESS);
	push(state, scratch, call->code, 0);
	return 0;
}

/* Finds the function of the frame, and sets state->code and the fields after it. Returns 0; 1 if
 * the frame has no function to show; -1 if it is not a frame. */
static __noinline int function__find(struct php_state *state, struct scratch *scratch,
				     struct php_slot *slot)
{
	struct php_call *call = &state->call;
	__u32 kind;

	if (!scratch || !slot)
		return -1;
	if (function__load(call, call->frame[FRAME_FUNC])) {
		count(COUNT_WALK_READ);
		return -1;
	}
	kind = function__kind(call);
	if (kind == PHP_CODE_KINDS_N) {
		count(COUNT_WALK_CODE);
		return -1;
	}
	/* A fiber begins with a function in C that has no name: outer frames wait on another stack.
	 * A trampoline loses its name when its call ends, before its frame is removed. */
	if (kind == PHP_CODE_NATIVE && !call->function[FUNCTION_NAME]) {
		if (!(call->function[0] & FUNCTION_VIA))
			scratch__push(scratch, FRAME_APART, 0);
		return 1;
	}
	state->is_native = kind == PHP_CODE_NATIVE;
	state->op = (struct php_op) {};
	if (!state->is_native)
		op__load(state);
	call__intern(call, kind);
	state->code = call->code;
	slot__set(state, slot, kind);
	return 0;
}

static __always_inline void push_mark(struct php_state *state, struct scratch *scratch)
{
	if (state->mark_due)
		scratch__push(scratch, FRAME_LOOP_END, 0);
	state->mark_due = 0;
}

/* Finds the generators that delegate by `yield from`. The innermost generator runs. Its caller is a
 * placeholder frame without a function, which belongs to the outermost generator. The generators in
 * between are found by their parents, from the outermost one to the innermost one, which has no
 * parent (zend_generator_check_placeholder_frame, zend_generators.c). */
static __noinline int delegates__find(struct php_state *state)
{
	const struct php_offsets *offsets = &state->proc.offsets;
	__u64 generator = state->call.frame[FRAME_THIS], parent;
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
	state->outside = state->call.frame[FRAME_PREV];
	return 0;
}

static __always_inline void frame__next(struct php_state *state)
{
	__u32 n;

	if (!state->call.frame[FRAME_FUNC])
		delegates__find(state);
	state->at = state->call.frame[FRAME_PREV];
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

/* Finds the executor_globals of the thread in a PHP without thread safety, where one interpreter
 * exists. Its innermost zend_try has a variable on the stack of the thread that runs it. The
 * sampled thread is that thread if the variable is above its stack pointer and, except in the first
 * thread, below the thread's own data. If there is no variable, or the thread's registers are
 * unavailable, the first thread is assumed. */
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
		 (is_first || bailout < arch__thread_pointer(task)))
		state->globals = proc->globals;
	return 0;
}

static __always_inline int globals__find(struct php_state *state, const struct scratch *scratch)
{
	state->globals = 0;
	return state->proc.key_at ? globals__of_thread(&state->proc, &state->globals)
				  : globals__find_single(state, scratch);
}

/* --- the walk --- */

/* Pushes the function of the frame. Returns 0 if there is more to walk. */
static __always_inline int walk_function(struct php_state *state, struct scratch *scratch)
{
	struct php_slot *slot = slot__at(state, state->call.frame[FRAME_FUNC]);
	__u32 is_top = state->call.frame[FRAME_INFO] & INFO_TOP;
	int ret = 0;

	if (!state->delegating)
		push_mark(state, scratch);
	if (!slot__holds(state, slot))
		ret = function__find(state, scratch, slot);
	if (ret)
		return ret < 0;
	if (state->proc.frameless && (state->op.code & OP_CODE) - OP_FRAMELESS < OP_FRAMELESS_N)
		push_frameless(state, scratch);
	push(state, scratch, state->code, state->op.line);
	state->mark_due |= !state->is_native && !state->delegating && is_top;
	return 0;
}

/* Walks one frame. Returns 0 if there is more to walk. */
static __always_inline int walk_frame(struct php_state *state, struct scratch *scratch)
{
	if (!state->at) {
		push_mark(state, scratch);
		/* A resumed generator is linked to its caller a little later. */
		state->complete = !state->n || !(state->call.frame[FRAME_INFO] & INFO_GENERATOR);
		return 1;
	}
	if (state->n >= RUNTIME_FRAMES_MAX) {
		state->truncated = 1;
		return 1;
	}
	if (frame__load(state)) {
		count(COUNT_WALK_READ);
		return 1;
	}
	/* A frame without a function represents generators that delegate, or is unused. */
	if (state->call.frame[FRAME_FUNC] && walk_function(state, scratch))
		return 1;
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
	state->call.replaces = process__replaces(sample->time_ns, proc->replaced_ns);
	state->call.tgid = sample->tgid;
	state->call.key.space = scratch->proc.space;
	state->call.offsets = proc->offsets;
	state->n = state->complete = state->truncated = 0;
	state->block_bytes = 0;
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
