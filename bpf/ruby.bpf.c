// SPDX-License-Identifier: GPL-2.0
#include "bpf/ruby_code.bpf.h"
#include "bpf/ruby_ec.bpf.h"
#include "bpf/ruby_gvl.bpf.h"
#include "bpf/ruby_yjit.bpf.h"
#include "bpf/ruby_zjit.bpf.h"

/* Walks CRuby's control frames of the interrupted thread, C methods included. The walk begins at
 * the thread's own execution context, so threads without the GVL are walked, too. The frames of the
 * running fiber come first. The frames of the fibers that resumed it follow. */

#define BLOCK_WORDS_RUBY 512 /* 4 KiB; frames lie side by side, so that one read serves many */
#define BLOCK_BYTES_RUBY (BLOCK_WORDS_RUBY * 8)

#define ENV_LEVELS_MAX 16

/* rb_objspace_t.flags.during_gc (gc.c) */
#define DURING_GC_BIT 5

#define FRAMES_PER_STEP 2
#define STEPS_MAX	RUNTIME_PAIRS_MAX
#define FIBERS_MAX	16 /* fibers that wait for each other */

/* The cached code of a frame. */
struct ruby_slot {
	__u64 iseq, method;
	__u64 start, since_ns, checked_ns;
	__u32 size, space;
	__u32 code, by_block;
};
#define RUBY_SLOTS_LOG2 12
#define RUBY_SLOTS	(1 << RUBY_SLOTS_LOG2)

struct ruby_block {
	__u64 start; /* address of words[0] */
	__u32 bytes; /* valid */
	__u32 pad;
	__u64 words[BLOCK_WORDS_RUBY];
};

struct ruby_state {
	struct ruby_proc_rec proc;
	__u64 now_ns;
	__u64 ec, thread;	 /* addresses */
	__u64 stack, stack_end;	 /* the VM stack */
	__u64 cfp, cfp_end;	 /* the next control frame, and the end of the last */
	__u64 env[3];		 /* last words of the environment read last */
	struct zjit_record zjit; /* record of the frame read last */
	struct zjit_call zjit_call;
	__u32 n, fibers;
	__u32 complete, truncated;
	__u64 base, top; /* the machine stack of `ec`; 0: unknown */
	__u32 coroutine; /* that stack is not a native thread's */
	__u32 flags;	 /* flags of the section, SECTION_* */
	__u32 apart;	 /* no frame has a native frame in this stack */
	__u32 in_c;	 /* the innermost frame is a method in C */
	__u32 rooted;	 /* the outermost fiber is the thread's first */
	struct ruby_block frames, envs;
	struct ruby_call call;
	struct ruby_slot slots[RUBY_SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: number of slots */
	__type(key, __u32);
	__type(value, struct ruby_state);
} ruby_states SEC(".maps");

static __always_inline struct ruby_state *state__get(void)
{
	__u32 key = slot__key();

	return bpf_map_lookup_elem(&ruby_states, &key);
}

/* --- memory --- */

static __always_inline int block__has(const struct ruby_block *block, __u64 at, __u32 bytes)
{
	return bytes <= block->bytes && at - block->start <= block->bytes - bytes;
}

static __always_inline __u64 block__word(const struct ruby_block *block, __u64 at)
{
	return block->words[(at - block->start) >> 3 & (BLOCK_WORDS_RUBY - 1)];
}

/* Reads [start, end), or as much of it as fits. */
static __noinline int block__load(struct ruby_block *block, __u64 start, __u64 end)
{
	__u64 bytes = end - start;

	if (!block)
		return -1;
	if (bytes > BLOCK_BYTES_RUBY)
		bytes = BLOCK_BYTES_RUBY;
	block->start = start;
	block->bytes = 0;
	if (read_user(block->words, bytes, start))
		return -1;
	block->bytes = bytes;
	return 0;
}

/* Reads the environment that ends at `ep` into state->env. Outer environments lie at lower
 * addresses of the VM stack. So a block of memory that ends with this environment probably contains
 * the next ones, too. */
static __noinline int env__load(struct ruby_state *state, __u64 ep, int ahead)
{
	__u64 first = ep - ENV_BYTES + 8, start;

	if (!state || ep & 7)
		return -1;
	if (!block__has(&state->envs, first, ENV_BYTES)) {
		if (!ahead || first < state->stack || ep >= state->stack_end)
			return read_user(state->env, ENV_BYTES, first);
		start = ep + 8 - BLOCK_BYTES_RUBY;
		if (start < state->stack || start > ep)
			start = state->stack;
		if (block__load(&state->envs, start, ep + 8))
			return -1;
	}
	state->env[0] = block__word(&state->envs, first);
	state->env[1] = block__word(&state->envs, first + 8);
	state->env[2] = block__word(&state->envs, first + 16);
	return 0;
}

/* --- code --- */

static __always_inline struct ruby_slot *slot__of(struct ruby_state *state, __u64 iseq,
						  __u64 method)
{
	__u64 hash = (iseq + method * 31) * 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */

	return &state->slots[hash >> (64 - RUBY_SLOTS_LOG2) & (RUBY_SLOTS - 1)];
}

/* Returns the index of the instruction after the current one. */
static __always_inline __u32 slot__index(const struct ruby_slot *slot, __u64 pc)
{
	__u64 index = (pc - slot->start) >> 3;

	return index <= slot->size ? index : RUBY_INDEX_UNKNOWN;
}

/* Returns the number and index of a frame's code, as a key; 0: unreadable. */
__weak __noinline __u64 ruby_frame__key(struct ruby_state *state, __u64 iseq, __u64 method,
					__u64 pc, __u32 by_block)
{
	struct ruby_slot *slot;
	__u32 index;

	if (!state)
		return 0;
	slot = slot__of(state, iseq, method);
	index = slot__index(slot, pc);
	if (slot->iseq == iseq && slot->method == method && slot->by_block == by_block &&
	    slot->space == state->call.space &&
	    call__is_fresh(&state->call, slot->since_ns, slot->checked_ns, RUBY_RECHECK_NS(iseq)) &&
	    (!iseq || index != RUBY_INDEX_UNKNOWN))
		return FRAME_KEY(slot->code, iseq ? index : 0);
	state->call.iseq = iseq;
	state->call.method = method;
	state->call.by_block = by_block;
	ruby_call__intern(&state->call);
	slot->code = state->call.code;
	if (!slot->code) {
		slot->iseq = slot->method = 0;
		return 0;
	}
	slot->iseq = iseq;
	slot->method = method;
	slot->by_block = by_block;
	slot->space = state->call.space;
	slot->start = state->call.start;
	slot->size = state->call.size;
	slot->since_ns = state->call.since_ns;
	slot->checked_ns = state->call.checked_ns;
	return FRAME_KEY(slot->code, iseq ? slot__index(slot, pc) : 0);
}

/* --- frames --- */

/* Returns the entry of the method that the frame is in. It is in the frame's environment, or in
 * one around that (rb_vm_frame_method_entry, vm_insnhelper.c). state->env is the frame's own
 * environment. */
__weak __noinline __u64 env__method(struct ruby_state *state)
{
	__u64 ep;
	__u32 i;

	if (!state)
		return 0;
	for (i = 0; i < ENV_LEVELS_MAX; i++) {
		if (state->env[2] & (ENV_LOCAL | FRAME_BY_BLOCK))
			return state->env[0];
		ep = state->env[1] & ENV_PREVIOUS;
		if (env__load(state, ep, 0))
			return 0;
	}
	return 0;
}

static __always_inline int is_fiber_of(const struct ruby_state *state, __u64 fiber)
{
	__u64 thread;

	return is_object(fiber) &&
	       !read_user(&thread, sizeof(thread),
			  fiber + state->proc.offsets.fiber_ec + state->proc.offsets.ec_thread) &&
	       thread == state->thread;
}

/* Returns the fiber that resumed the one of state->ec; 0: none. Some builds have a jmp_buf of
 * 200 bytes instead of 40 before the field. In these, configure has chosen setjmp over
 * __builtin_setjmp (-fcf-protection: Debian's from 3.3 on). */
#define FIBER_JMP_BUF 160

__weak __noinline __u64 fiber__previous(struct ruby_state *state)
{
	__u64 fiber, at;
	__u32 i;

	if (!state)
		return 0;
	at = state->ec - state->proc.offsets.fiber_ec + state->proc.offsets.fiber_prev;
	for (i = 0; i < 2; i++) {
		if (read_user(&fiber, sizeof(fiber), at + FIBER_JMP_BUF * i))
			return 0;
		if (is_fiber_of(state, fiber))
			return fiber;
	}
	return 0;
}

/* --- machine stack --- */

/* rb_execution_context_t.machine (vm_core.h): stack_start, the outer end of the stack, stack_end
 * and stack_maxsize. */
#define MACHINE_WORDS 3
#define MACHINE_START 0
#define MACHINE_BYTES 2

#define STACK_PAGE_BYTES 4096

/* Reads the bounds of the machine stack that state->ec runs on, and sets state->coroutine if it
 * was made for a coroutine. A fiber's VM stack begins at the end of its machine stack, which
 * begins with a page. Up to 3.1 the former is true of native threads as well. A thread that
 * shares native threads has its machine stack after its VM stack and a guard page
 * (thread_pthread_mn.c). Unknown bounds: both are 0. */
__weak __noinline int machine__load(struct ruby_state *state)
{
	__u64 words[MACHINE_WORDS];

	if (!state)
		return 0;
	state->base = state->top = 0;
	state->coroutine = 0;
	if (!state->proc.offsets.ec_machine)
		return 0;
	if (read_user(words, sizeof(words), state->ec + state->proc.offsets.ec_machine)) {
		count(COUNT_WALK_READ);
		return 0;
	}
	if (!words[MACHINE_BYTES] || words[MACHINE_BYTES] > words[MACHINE_START])
		return 0;
	state->top = words[MACHINE_START];
	state->base = state->top - words[MACHINE_BYTES];
	state->coroutine =
		(state->top == state->stack && !(state->base & (STACK_PAGE_BYTES - 1))) ||
		state->base == state->stack_end + STACK_PAGE_BYTES;
	return 0;
}

static __always_inline int machine__has(const struct ruby_state *state, __u64 cfa)
{
	return cfa > state->base && cfa <= state->top;
}

/* Judges whether the native frames are on the machine stack of state->ec. While a thread changes
 * fibers they are not: coroutine_transfer() has changed the stack, and the context is still the
 * other fiber's (from 3.0 on fiber_restore_thread() comes last). Threads that share a native thread
 * change the context first (thread_sched_switch0()).
 *
 *   | native frames                   | state->ec's stack | its frames                            |
 *   |---------------------------------|-------------------|---------------------------------------|
 *   | return to 0 at the stack's end  | a coroutine's     | are paired; the stack's end is proven |
 *   | end on the stack                | any               | are paired as usual                   |
 *   | are cut, and rsp is on it       | any               | are paired as usual                   |
 *   | end at another stack's end      | a coroutine's     | are left out: returns -1              |
 *   | return to 0 on another stack    | a native thread's | are apart and inferred                |
 *   | reach the native thread's entry | a native thread's | are paired as usual                   |
 *   | are cut on another stack        | any               | are inferred                          |
 *   | return to 0                     | unknown           | are inferred                          |
 */
__weak __noinline int machine__judge(struct ruby_state *state)
{
	struct scratch *scratch = scratch__get();
	__u32 last, returns_to_0, whole;
	__u64 end = 0;

	if (!state || !scratch)
		return 0;
	machine__load(state);
	last = scratch->sample.n_kernel + 2 * scratch->sample.n_native - 1;
	if (scratch->sample.n_native)
		end = scratch->words[last & (SAMPLE_WORDS_MAX - 1)];
	returns_to_0 = scratch->sample.stop == COUNT_ZERO_RETURN;
	/* coroutine_initialize() aligns it */
	if (returns_to_0 && state->coroutine && end == (state->top & ~15ULL)) {
		state->flags = SECTION_WHOLE;
		return 0;
	}
	if (!state->top) {
		state->flags = returns_to_0 ? SECTION_INFERRED : 0;
		return 0;
	}
	whole = returns_to_0 || scratch->sample.flags & SAMPLE_COMPLETE;
	if (machine__has(state, end) ||
	    (!whole && machine__has(state, scratch->interrupted[UNWIND_REG_RSP])))
		return 0;
	if (state->coroutine && whole) {
		count(COUNT_WALK_FIBER);
		return -1;
	}
	state->apart = returns_to_0;
	if (!(scratch->sample.flags & SAMPLE_COMPLETE))
		state->flags = SECTION_INFERRED;
	return 0;
}

/* Moves to the fiber that resumed this one and waits. Returns 1 if the walk ends. */
static __always_inline int fiber__next(struct ruby_state *state, struct scratch *scratch)
{
	const struct ruby_offsets *offsets = &state->proc.offsets;
	__u64 fiber = fiber__previous(state), words[EC_WORDS];

	if (!fiber) {
		if (state->fibers)
			machine__load(state);
		state->rooted = state->top && (!state->coroutine || state->top != state->stack);
		state->complete = 1;
		return 1;
	}
	if (++state->fibers >= FIBERS_MAX) {
		state->truncated = 1;
		return 1;
	}
	state->ec = fiber + offsets->fiber_ec;
	if (read_user(words, sizeof(words), state->ec)) {
		count(COUNT_WALK_READ);
		return 1;
	}
	state->stack = words[0];
	state->stack_end = words[0] + words[1] * VALUE_BYTES;
	state->cfp = words[2];
	state->cfp_end = state->stack_end - offsets->cfp_size;
	state->frames.bytes = state->envs.bytes = 0;
	if (state->fibers == 1)
		scratch__push(scratch, FRAME_APART, 0);
	return 0;
}

/* Returns true if the flags may be a frame's. A frame that is being pushed now may not have its
 * flags yet. */
static __always_inline int is_frame(__u64 flags)
{
	__u32 type = flags & FRAME_TYPE;

	return flags & 1 && type &&
	       (type % 0x11110000 == 0 || type == 0x78880000 || type == FRAME_DUMMY);
}

static long zjit__on_byte(__u32 i, void *unused)
{
	struct ruby_state *state = state__get();

	(void)unused;
	if (!state)
		return 1;
	zjit__step(&state->zjit_call, i);
	return 0;
}

/* Returns 1 if the compiled code of the innermost frame stored @record for the call that
 * executes. Reads the code before the return address: the record's address is loaded there, and
 * no other call lies in between. */
static __noinline int zjit__is_fresh(struct ruby_state *state)
{
	const struct scratch *scratch = scratch__get();
	struct zjit_call *call;

	if (!state || !scratch)
		return 0;
	call = &state->zjit_call;
	call->returns = zjit__returns(scratch, &state->proc);
	call->entry_at = state->proc.zjit_at;
	call->code_start = state->proc.jit_start;
	call->code_end = state->proc.jit_end;
	call->last_bytes = call->stores = 0;
	if (!call->returns ||
	    read_user(call->code, sizeof(call->code), call->returns - ZJIT_BEFORE))
		return 0;
	bpf_loop(ZJIT_BEFORE, zjit__on_byte, NULL, 0);
	return call->stores;
}

static long yjit__on_byte(__u32 i, void *unused)
{
	struct ruby_state *state = state__get();

	(void)unused;
	if (!state)
		return 1;
	yjit__step(&state->zjit_call, i);
	return 0;
}

/* Returns 1 if the pc of the innermost control frame is the current one: an interpreter loop
 * runs the frame, or YJIT's code stored this pc for the call that executes. */
static __noinline int yjit__is_fresh(struct ruby_state *state)
{
	const struct scratch *scratch = scratch__get();
	struct zjit_call *call;
	int kind;

	if (!state || !scratch)
		return 0;
	call = &state->zjit_call;
	kind = yjit__find(scratch, &state->proc, call);
	if (kind != YJIT_CALLS)
		return kind == YJIT_NONE;
	call->record = state->zjit.pc;
	call->code_start = state->proc.jit_start;
	call->code_end = state->proc.jit_end;
	call->last_bytes = call->stores = 0;
	if (read_user(call->code, sizeof(call->code), call->returns - ZJIT_BEFORE))
		return 0;
	bpf_loop(ZJIT_BEFORE, yjit__on_byte, NULL, 0);
	return call->stores;
}

/* Reads the record of a frame with this `jit_return` into the state. A separate function, so
 * that its words are not in the frame of the whole walk: Linux 6.1 has 512 bytes for all frames. */
static __noinline int zjit__load(struct ruby_state *state, __u64 jit_return)
{
	if (!state)
		return ZJIT_UNREADABLE;
	return zjit__read(jit_return, &state->zjit, &state->zjit_call.record);
}

/* Returns 1 if the recorded position of the innermost frame is the current one. @kind: kind of the
 * frame's ZJIT record. */
static __always_inline int frame__is_fresh(struct ruby_state *state, int kind)
{
	if (kind != ZJIT_NONE)
		return zjit__is_fresh(state);
	return state->proc.zjit || yjit__is_fresh(state);
}

/* Returns the key of the frame of an iseq at @at in the block of control frames, or 0 if its
 * code is unreadable. If the innermost frame of compiled code is at another place than in its
 * record, its line is unknown. */
static __always_inline __u64 iseq_frame__key(struct ruby_state *state, __u64 at)
{
	int kind = ZJIT_NONE;
	__u32 by_block;
	__u64 method, key;

	by_block = !!(state->env[2] & FRAME_BY_BLOCK);
	state->zjit.pc = block__word(&state->frames, at + CFP_PC);
	state->zjit.iseq = block__word(&state->frames, at + CFP_ISEQ);
	if (state->proc.zjit && state->proc.offsets.jit_return)
		kind = zjit__load(state,
				  block__word(&state->frames, at + state->proc.offsets.jit_return));
	if (kind == ZJIT_UNREADABLE)
		return 0;
	method = env__method(state);
	key = ruby_frame__key(state, state->zjit.iseq, method, state->zjit.pc, by_block);
	if (!key)
		return 0;
	if (kind != ZJIT_NONE && FRAME_KEY_INDEX(key) == RUBY_INDEX_UNKNOWN)
		return 0; /* a record always names an instruction of its iseq */
	if (state->n || frame__is_fresh(state, kind))
		return key;
	return FRAME_KEY(FRAME_KEY_CODE(key), RUBY_INDEX_UNKNOWN);
}

/* Returns 0 if there is more to walk. */
static __always_inline int walk_frame(struct ruby_state *state, struct scratch *scratch)
{
	__u64 at = state->cfp, flags, type, key;

	if (at >= state->cfp_end)
		return fiber__next(state, scratch);
	if (!block__has(&state->frames, at, state->proc.offsets.cfp_size) &&
	    block__load(&state->frames, at, state->cfp_end)) {
		count(COUNT_WALK_READ);
		return 1;
	}
	state->cfp = at + state->proc.offsets.cfp_size;
	if (env__load(state, block__word(&state->frames, at + CFP_ENVIRONMENT), 1) ||
	    !is_frame(state->env[2])) {
		count(COUNT_WALK_READ);
		return state->n > 0; /* the innermost frame is being made */
	}
	flags = state->env[2];
	type = flags & FRAME_TYPE;
	if (type == FRAME_DUMMY || type == FRAME_C_BLOCK)
		return 0;
	if (state->n >= RUNTIME_FRAMES_MAX) {
		state->truncated = 1;
		return 1;
	}
	key = type == FRAME_C
		      ? ruby_frame__key(state, 0, env__method(state), 0, !!(flags & FRAME_BY_BLOCK))
		      : iseq_frame__key(state, at);
	if (!key)
		count(COUNT_WALK_CODE);
	scratch__push(scratch, key, 0);
	if (!state->n++)
		state->in_c = type == FRAME_C;
	if (flags & FRAME_FINISH)
		scratch__push(scratch, FRAME_LOOP_END, 0);
	return 0;
}

static long walk_step(__u32 index, void *unused)
{
	struct ruby_state *state = state__get();
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

/* --- the thread --- */

/* Checks that the thread of @ec has @ec as its own execution context. Otherwise it is not walked.
 * Returns 0 or -1. */
static __always_inline int check_ec(const struct ruby_proc_rec *proc, __u64 ec, __u64 *ret_thread)
{
	__u64 thread, its;

	if (read_user(&thread, sizeof(thread), ec + proc->offsets.ec_thread) ||
	    read_user(&its, sizeof(its), thread + proc->offsets.thread_ec) || its != ec)
		return -1;
	*ret_thread = thread;
	return 0;
}

static __always_inline int collects_garbage(struct ruby_proc_rec *proc, __u64 thread)
{
	__u64 vm, flags;

	if (!proc->objspace &&
	    (read_user(&vm, sizeof(vm), thread + proc->offsets.thread_vm) ||
	     read_user(&proc->objspace, sizeof(vm), vm + proc->offsets.vm_objspace)))
		return 0;
	if (read_user(&flags, sizeof(flags), proc->objspace + proc->offsets.objspace_flags))
		return 0;
	return flags >> DURING_GC_BIT & 1;
}

static __always_inline int walk__start(struct ruby_state *state, struct ruby_proc_rec *proc)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 words[EC_WORDS];

	if (read_ec(proc, arch__thread_pointer(task), &state->ec)) {
		count(COUNT_WALK_NO_STATE);
		return -1;
	}
	if (!state->ec)
		return -1; /* not a thread of Ruby */
	if (check_ec(proc, state->ec, &state->thread) ||
	    read_user(words, sizeof(words), state->ec)) {
		count(COUNT_WALK_NO_STATE);
		return -1;
	}
	state->stack = words[0];
	state->stack_end = words[0] + words[1] * VALUE_BYTES;
	state->cfp = words[2];
	state->cfp_end = state->stack_end - proc->offsets.cfp_size;
	state->frames.bytes = state->envs.bytes = 0;
	state->n = state->fibers = state->complete = state->truncated = 0;
	state->flags = state->apart = state->in_c = state->rooted = 0;
	return 0;
}

/* Sets the stop reason of native frames that reach the end of a coroutine's stack. Fiber.yield, a
 * method in C, clears the link to the previous fiber before it leaves the stack. The stack of a
 * fiber in a method in C is therefore complete only if the fibers around it lead to the thread's
 * first fiber. */
static __always_inline void machine__end(struct scratch *scratch, const struct ruby_state *state)
{
	int alone = !state->rooted && !state->fibers && (state->in_c || !state->n);

	if (state->flags & SECTION_WHOLE && state->complete)
		scratch__stop(scratch, alone ? COUNT_FIBER_ALONE : 0);
}

static __always_inline void walk(struct scratch *scratch, struct ruby_state *state,
				 struct ruby_proc_rec *proc)
{
	struct rec_sample *sample = &scratch->sample;
	__u32 first_word = scratch->n_words;

	ruby__zjit(proc);
	state->proc = *proc;
	state->now_ns = state->call.now_ns = sample->time_ns;
	state->call.replaces = process__replaces(sample->time_ns, proc->replaced_ns);
	state->call.space = scratch->proc.space;
	state->call.tgid = sample->tgid;
	if (walk__start(state, proc))
		return;
	if (cfg_locks)
		note_gvl(proc, state->thread, sample);
	if (machine__judge(state)) {
		sample->flags |= SAMPLE_RUNTIME_BROKEN;
		return;
	}
	if (state->apart)
		scratch__push(scratch, FRAME_APART, 0);
	if (collects_garbage(proc, state->thread))
		scratch__push(scratch, FRAME_KEY(RUBY_GC_CODE, 0), 0);
	if (bpf_loop(STEPS_MAX / FRAMES_PER_STEP, walk_step, NULL, 0) >=
	    STEPS_MAX / FRAMES_PER_STEP)
		state->truncated = 1;
	machine__end(scratch, state);
	if (!state->n)
		scratch->n_words = first_word; /* only the garbage collector */
	scratch__section(scratch, WALKER_RUBY, first_word,
			 section__flags(state->complete, state->truncated) | state->flags);
}

SEC("?perf_event")
int walk_ruby(void *ctx)
{
	struct scratch *scratch = scratch__get();
	struct ruby_state *state = state__get();
	struct ruby_proc_rec *proc;

	if (!scratch || !state) {
		scratch__abandon();
		return 0;
	}
	proc = bpf_map_lookup_elem(&ruby_procs, &scratch->proc.space);
	if (proc)
		walk(scratch, state, proc);
	else
		count(COUNT_WALK_NO_STATE);
	scratch__next(ctx, scratch);
	return 0;
}
