// SPDX-License-Identifier: GPL-2.0
#include "bpf/cached_words.bpf.h"
#include "bpf/python_gil.bpf.h"
#include "bpf/python_link.bpf.h"
#include "bpf/python_tstate.bpf.h"

/* Walks CPython's frames of the interrupted thread.
 *
 * Start. The thread state is found from the thread itself: by the pthread key of PyGILState, or by
 * a thread-local variable in newer versions (python_tstate.bpf.h). So threads that do not hold the
 * GIL are walked, too. A thread that runs several interpreters has a state in each, and their
 * frames follow one another, innermost interpreter first. A process may map several copies of
 * CPython (dlmopen, embedding); copy__find() picks the copy that owns the thread's state.
 *
 * Chains. The links between frames differ by version (enum python_chain, bpf/python.h):
 *   OBJECTS        3.6 to 3.10: frame objects, linked by f_back. No native frame is linked to them.
 *   CFRAMES        3.11: frames are grouped in segments. One native interpreter loop runs one
 *                  segment; its C frame (_PyCFrame, on the machine stack) links the segments. The
 *                  entry frame of a segment has a flag.
 *   CFRAME_SHIMS   3.12: as 3.11, but a shim frame ends each segment.
 *   SHIMS          3.13 on: no C frames; shims on the machine stack end the segments.
 * A C frame's or a shim's address lies within the native frame of its loop. It is the anchor by
 * which the core places Python frames among native ones (runtimes/python/python.c, `anchors`).
 *
 * Torn states. A sample may interrupt the thread between any two instructions:
 *   - A loop has linked its C frame but not yet stored its frame there. The innermost segment then
 *     holds values from earlier calls, or garbage. segment__begin() proves the C frame outside from
 *     the native frames. segment__restart() drops these frames and continues outside, if garbage
 *     is found first.
 *   - A call has made its frame current but not yet linked it to its caller. link__find()
 *     (python_link.bpf.h) searches the code ahead for the store of the link. Its operand is the
 *     caller, and the frames are inferred if the frame has another link.
 *   - A generator's frame is put under another caller while an exception is thrown into it
 *     (segment__goes_on).
 * A link that is not proven marks the section SECTION_INFERRED. A chain that ends where no chain
 * can end is incomplete: its counter (COUNT_WALK_READ, COUNT_WALK_CODE, COUNT_WALK_NO_STATE) says
 * why, and the section has no SECTION_COMPLETE.
 *
 * Bounds. All memory of the target is untrusted. A walk reads at most STEPS_MAX frames and shims,
 * and LIST_STEPS_MAX thread states, and addresses are never dereferenced but through read_user().
 *
 * Cost. Outer frames lie directly below inner ones in CPython's frame stacks. So frame__load()
 * reads a block that ends with the requested frame, and serves the next frames from the block. */

#define FRAME_BLOCK_BYTES (FRAME_BLOCK_WORDS * 8)
#define PAGE_BYTES	  4096
#define TAG_BITS	  7ULL	     /* 3.14: tag bits of a _PyStackRef */
#define INDEX_UNKNOWN	  0x7ffffff0 /* longer than any code object: the line is unknown */

/* Frames, and the shims between them. */
#define STEPS_MAX RUNTIME_PAIRS_MAX

/* Number of frames per step; the state is looked up once for each step. */
#define FRAMES_PER_STEP 4

/* Maximum number of thread states of all interpreters that are searched for this thread's. */
#define LIST_STEPS_MAX 1024

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: number of slots */
	__type(key, __u32);
	__type(value, struct python_state);
} python_states SEC(".maps");

static __always_inline struct python_state *state__get(void)
{
	__u32 key = slot__key();

	return bpf_map_lookup_elem(&python_states, &key);
}

/* Returns 1 if the process has more than one interpreter. This is checked only once per period. */
static __always_inline int several_interpreters(struct python_proc_rec *proc, __u64 now_ns)
{
	__u64 first = 0, second = 0;

	if (!proc->interpreters)
		return 0;
	if (now_ns - proc->checked_ns >= INTERPRETERS_RECHECK_NS) {
		if (!read_user(&first, sizeof(first), proc->interpreters) && first)
			read_user(&second, sizeof(second), first + proc->offsets.interp_next);
		proc->several = !!second;
		if (proc->offsets.interp_gil)
			proc->gil = 0; /* it may belong to an interpreter that has ended */
		proc->checked_ns = now_ns;
	}
	return proc->several;
}

/* Examines the next thread state of the current interpreter, or continues with the next
 * interpreter. */
static long list_step(__u32 index, void *unused)
{
	struct python_state *state = state__get();
	const struct python_offsets *offsets;
	__u64 owner, at;

	(void)index, (void)unused;
	if (!state || !state->list_interp)
		return 1;
	offsets = &state->proc.offsets;
	at = state->list_tstate;
	if (!at) {
		if (read_user(&state->list_interp, 8, state->list_interp + offsets->interp_next) ||
		    !state->list_interp)
			return 1;
		return !!read_user(&state->list_tstate, 8,
				   state->list_interp + offsets->interp_threads);
	}
	if (read_user(&owner, 8, at + offsets->tstate_thread_id) ||
	    read_user(&state->list_tstate, 8, at + PYTHON_TSTATE_NEXT))
		return 1;
	if (owner != state->fsbase)
		return 0;
	if (state->n_tstates && at == state->tstates[0])
		return 1; /* a state that was freed meanwhile led back to it */
	state->tstates[state->n_tstates & (PYTHON_STATES_MAX - 1)] = at;
	return ++state->n_tstates >= PYTHON_STATES_MAX;
}

/* Finds all states of the thread. An interpreter is newer than its creator, and newer ones come
 * first in the list. So an earlier state runs inside a later one. */
static __always_inline void find_states(struct python_state *state, __u64 tstate)
{
	const struct python_offsets *offsets = &state->proc.offsets;
	__u32 i, found = 0;

	state->list_tstate = 0;
	if (read_user(&state->list_interp, 8, state->proc.interpreters) ||
	    read_user(&state->list_tstate, 8, state->list_interp + offsets->interp_threads))
		state->list_interp = 0;
	bpf_loop(LIST_STEPS_MAX, list_step, NULL, 0);
	for (i = 0; i < PYTHON_STATES_MAX; i++)
		found |= i < state->n_tstates && state->tstates[i] == tstate;
	/* If the list has changed meanwhile, only this state is used, because the other states may
	 * be incomplete. */
	if (!found && state->n_tstates < PYTHON_STATES_MAX) {
		state->tstates[0] = tstate;
		state->n_tstates = 1;
	}
}

static __always_inline __u64 block__word(const struct python_state *state, __u64 at)
{
	return state->block[(at >> 3) & (FRAME_BLOCK_WORDS - 1)];
}

/* Makes the frame's fields readable by block__word(); *ret_at is its offset in the block. */
static __noinline int frame__load(struct python_state *state, __u64 *ret_at)
{
	__u64 frame = state->frame, bytes = state->proc.offsets.frame_bytes, start;

	if (frame & 7 || bytes > FRAME_BLOCK_BYTES)
		return -1;
	if (bytes <= state->block_bytes &&
	    frame - state->block_start <= state->block_bytes - bytes) {
		*ret_at = frame - state->block_start;
		return 0;
	}
	/* Outer frames are below. The block ends with this frame, but stays in its page: the memory
	 * of the frames may begin there. */
	start = frame + bytes - FRAME_BLOCK_BYTES;
	if ((start ^ frame) & ~(PAGE_BYTES - 1ULL))
		start = frame & ~(PAGE_BYTES - 1ULL);
	if (!read_user(state->block, FRAME_BLOCK_BYTES, start) ||
	    !read_user(state->block, bytes, start = frame)) {
		state->block_start = start;
		state->block_bytes = start == frame ? bytes : FRAME_BLOCK_BYTES;
		*ret_at = frame - start;
		return 0;
	}
	state->block_bytes = 0;
	return -1;
}

/* Begins the segment of @cframe: the frames of one native interpreter loop. */
static __always_inline int segment__start(struct python_state *state, __u64 cframe)
{
	__u64 pair[2]; /* current_frame, previous */

	if (read_user(pair, sizeof(pair), cframe + state->proc.offsets.cframe_current_frame))
		return -1;
	state->cframe = cframe;
	state->frame = pair[0];
	state->cframe_previous = pair[1];
	state->segments++;
	return 0;
}

static __always_inline int has_cframes(const struct python_state *state)
{
	return state->proc.offsets.chain == PYTHON_CHAIN_CFRAMES ||
	       state->proc.offsets.chain == PYTHON_CHAIN_CFRAME_SHIMS;
}

/* Discards the frames of this thread state: they were left over, or garbage. */
static __always_inline void chain__forget(struct python_state *state, struct scratch *scratch)
{
	scratch->n_words = state->chain_word;
	state->n = state->chain_n;
}

static __always_inline int proc__has_loop(const struct python_proc_rec *proc, __u64 pc)
{
	return pc - proc->loops[0].start < proc->loops[0].bytes ||
	       pc - proc->loops[1].start < proc->loops[1].bytes;
}

struct loop_search {
	const struct python_proc_rec *proc;
	const struct scratch *scratch;
	__u64 cfa; /* CFA of the loop; 0: not found */
};

/* Checks the caller @index of the innermost native frame. */
static long loop_step(__u32 index, void *ctx)
{
	struct loop_search *search = ctx;
	const __u64 *words = search->scratch->words;
	__u32 at = search->scratch->sample.n_kernel + 2 * (index + 1);

	if (!proc__has_loop(search->proc, NATIVE_ADDRESS(words[at & (SAMPLE_WORDS_MAX - 1)]) - 1))
		return 0;
	search->cfa = words[(at + 1) & (SAMPLE_WORDS_MAX - 1)];
	return 1;
}

/* Returns 1 if the C frame @linked runs the caller of the segment's frame. */
static __always_inline int segment__is_linked(const struct python_state *state, __u64 linked)
{
	const struct python_offsets *offsets = &state->proc.offsets;
	__u64 outer = 0, previous = 0;

	return linked && state->frame &&
	       !read_user(&outer, sizeof(outer), linked + offsets->cframe_current_frame) &&
	       !read_user(&previous, sizeof(previous), state->frame + offsets->frame_previous) &&
	       outer && outer == previous;
}

/* Begins the innermost segment. A loop links its C frame a few instructions before it fills it.
 * Until then its content was left over from earlier calls, or is garbage. In Debian's builds of
 * 3.11 that applies to both words, which are written together. While a loop begins, the outer C
 * frame is that of the next loop among the native frames, at the same distance from the CFA.
 * Without such a loop it is the thread's first.
 *
 * If the linked C frame is another one, both may be wrong: a thread that switches stacks has outer
 * loops that are not its callers. Then the frames are inferred. The linked C frame is used if it
 * runs the caller of the frame. */
static __always_inline void segment__begin(struct python_state *state, struct scratch *scratch)
{
	struct loop_search search = { .proc = &state->proc, .scratch = scratch };
	const struct rec_sample *sample = &scratch->sample;
	__u64 pc = scratch->interrupted[UNWIND_REG_PC], linked = state->cframe_previous, cfa;

	if (pc - state->proc.loops[0].start >= PYTHON_LOOP_ENTRY_BYTES || !sample->n_native)
		return;
	cfa = scratch->words[(sample->n_kernel + 1) & (SAMPLE_WORDS_MAX - 1)];
	if (state->cframe < scratch->interrupted[UNWIND_REG_RSP] || state->cframe >= cfa)
		return; /* not linked yet */
	cached__complete(scratch);
	bpf_loop(sample->n_native - 1, loop_step, &search, 0);
	if (search.cfa)
		state->cframe_previous = search.cfa - (cfa - state->cframe);
	else if (sample->flags & SAMPLE_COMPLETE)
		state->cframe_previous = state->tstates[0] + state->proc.offsets.tstate_root_cframe;
	state->begins = !search.cfa;
	if (state->cframe_previous == linked)
		return;
	state->inferred = 1;
	if (segment__is_linked(state, linked)) {
		state->cframe_previous = linked;
		state->begins = 0;
	}
}

/* Begins to walk the frames of the thread's next PyThreadState. Returns 1 if there is none. */
static __always_inline int chain__start(struct python_state *state, struct scratch *scratch)
{
	__u64 tstate, first;

	if (state->next_tstate >= state->n_tstates) {
		state->complete = 1;
		return 1;
	}
	tstate = state->tstates[state->next_tstate++ & (PYTHON_STATES_MAX - 1)];
	state->segments = 0;
	state->cframe = state->cframe_previous = state->begins = 0;
	state->chain_n = state->n;
	state->chain_word = scratch->n_words;
	if (read_user(&first, sizeof(first), tstate + state->proc.offsets.tstate_frame))
		goto unreadable;
	state->frame = first;
	if (!has_cframes(state))
		return 0;
	if (first && !segment__start(state, first)) {
		if (state->next_tstate == 1)
			segment__begin(state, scratch);
		return 0;
	}
unreadable:
	count(COUNT_WALK_NO_STATE);
	return 1;
}

/* Continues with the outer segment. An interpreter loop links its C frame a few instructions before
 * it stores its frame there. Until then the content of the innermost segment was left over from
 * earlier calls, or is garbage, and is discarded. Returns 0 if there is an outer segment. */
static __always_inline int segment__restart(struct python_state *state, struct scratch *scratch)
{
	if (!has_cframes(state) || state->segments != 1 || !state->cframe_previous)
		return 1;
	chain__forget(state, scratch);
	return segment__start(state, state->cframe_previous);
}

/* Returns 1 if the segment continues at @previous. In 3.11 a generator passes an exception that is
 * thrown into it to its delegate without a separate loop. The delegate's frame is then in the
 * segment of its caller, and its is_entry is outdated. */
static __always_inline int segment__goes_on(struct python_state *state, __u64 previous)
{
	__u64 outer = 0;

	if (state->cframe_previous &&
	    read_user(&outer, sizeof(outer),
		      state->cframe_previous + state->proc.offsets.cframe_current_frame))
		return 0;
	return previous && previous != outer;
}

/* 3.11: ends the segment at the frame that began it, and continues with the outer segment. */
static __always_inline int segment__end(struct python_state *state, struct scratch *scratch,
					__u64 expected)
{
	if (!state->cframe_previous)
		return expected ? 1 : chain__start(state, scratch);
	if (segment__start(state, state->cframe_previous)) {
		count(COUNT_WALK_READ);
		return 1;
	}
	if (state->frame == expected)
		return expected ? 0 : chain__start(state, scratch);
	if (state->segments == 2) { /* as in segment__restart: these frames were left over */
		chain__forget(state, scratch);
		return 0;
	}
	count(COUNT_WALK_READ);
	return 1;
}

/* From 3.12 on: ends the segment at its shim. The address of the shim is that of the loop which ran
 * the frames before it. In the innermost segment of 3.12 the shim may be left over, too. */
static __always_inline int shim__end(struct python_state *state, struct scratch *scratch,
				     __u64 previous)
{
	__u64 expected;

	if (state->segments == 1 && state->cframe_previous) {
		if (read_user(&expected, sizeof(expected),
			      state->cframe_previous + state->proc.offsets.cframe_current_frame)) {
			count(COUNT_WALK_READ);
			return 1;
		}
		if (expected != previous)
			return segment__restart(state, scratch);
	}
	state->segments++;
	scratch__push(scratch, FRAME_ANCHOR, state->frame);
	state->frame = previous;
	return previous ? 0 : chain__start(state, scratch);
}

/* Handles a missing frame. */
static __always_inline int chain__end(struct python_state *state, struct scratch *scratch)
{
	if (!segment__restart(state, scratch))
		return 0;
	/* The interpreter has no frames, or only frames that segment__restart() discarded. */
	if (state->n == state->chain_n && (state->segments <= 1 || state->begins))
		return chain__start(state, scratch);
	count(COUNT_WALK_READ);
	return 1;
}

static __always_inline int frame__done(struct python_state *state, struct scratch *scratch,
				       __u64 previous, __u32 owner)
{
	int is_entry = state->proc.offsets.chain == PYTHON_CHAIN_CFRAMES && (owner & 0xff);

	if (is_entry &&
	    !(owner >> 8 == PYTHON_OWNER_GENERATOR && segment__goes_on(state, previous)))
		return segment__end(state, scratch, previous);
	state->frame = previous;
	if (previous)
		return 0;
	if (state->proc.offsets.chain == PYTHON_CHAIN_OBJECTS)
		return chain__start(state, scratch);
	/* The frame is not linked to its caller yet: the outermost one is an entry, or a shim. */
	if (!segment__restart(state, scratch))
		return 0;
	count(COUNT_WALK_READ);
	return 1;
}

/* Returns the start of a thread's own copy of the instructions of @code; 0: not readable. It is
 * called after code__number. */
static __noinline __u64 code__copy(struct python_state *state, __u64 code, __u32 copy)
{
	struct code_slot *slot = &state->slots[code__slot(code)];
	__u64 array, size, bytecode;

	if (slot->address == code && slot->copy == copy && slot->bytecode)
		return slot->bytecode;
	if (read_user(&array, sizeof(array), code + state->proc.offsets.code_copies) ||
	    read_user(&size, sizeof(size), array) || copy >= size ||
	    read_user(&bytecode, sizeof(bytecode), array + 8 + 8 * (__u64)copy))
		return 0;
	if (slot->address == code) {
		slot->copy = copy;
		slot->bytecode = bytecode;
	}
	return bytecode;
}

/* Returns the position in bytes from the start of the bytecode. @copy is the copy that the frame
 * executes; 0: the code object's own. */
static __always_inline __u32 frame__index(struct python_state *state, __u64 instr, __u64 code,
					  __u32 copy)
{
	__u64 start = code + state->proc.offsets.code_bytecode;

	switch (state->proc.offsets.instr) {
	case PYTHON_INSTR_ADDRESS:
		if (copy)
			start = code__copy(state, code, copy);
		if (!start) {
			count(COUNT_WALK_CODE);
			return INDEX_UNKNOWN;
		}
		return instr - start;
	case PYTHON_INSTR_UNITS:
		return 2 * (__u32)instr;
	default:
		return instr;
	}
}

/* Walks one frame. Returns 0 if there are more. */
static __always_inline int walk_frame(struct python_state *state, struct scratch *scratch)
{
	const struct python_offsets *offsets;
	__u64 at, code, instr, previous;
	__u32 owner, number, copy = 0;

	if (!state->frame)
		return chain__end(state, scratch);
	offsets = &state->proc.offsets;
	if (frame__load(state, &at)) {
		if (!segment__restart(state, scratch))
			return 0;
		count(COUNT_WALK_READ);
		return 1;
	}
	previous = block__word(state, at + offsets->frame_previous);
	if (state->frame == state->linking && previous != state->linking_to) {
		previous = state->linking_to;
		state->inferred = 1;
	}
	owner = block__word(state, at + (offsets->frame_owner & ~7)) >>
			8 * (offsets->frame_owner & 7) &
		0xffff;
	if (offsets->chain >= PYTHON_CHAIN_CFRAME_SHIMS && (owner & 0xff) >= PYTHON_OWNER_SHIM)
		return shim__end(state, scratch, previous);
	if (state->n >= RUNTIME_FRAMES_MAX) {
		state->truncated = 1;
		return 1;
	}
	code = block__word(state, at + offsets->frame_code) & ~TAG_BITS;
	instr = block__word(state, at + (offsets->frame_instr & ~7));
	if (offsets->frame_instr & 4)
		instr >>= 32;
	if (offsets->frame_copy)
		copy = block__word(state, at + (offsets->frame_copy & ~7)) >>
		       8 * (offsets->frame_copy & 7);
	number = code__number(state, scratch, code);
	if (!number) {
		if (!segment__restart(state, scratch))
			return 0;
		count(COUNT_WALK_CODE);
	}
	if (number != CODE_HIDDEN) {
		scratch__push(scratch, FRAME_KEY(number, frame__index(state, instr, code, copy)),
			      offsets->chain == PYTHON_CHAIN_CFRAMES ? state->cframe : 0);
		state->n++;
	}
	return frame__done(state, scratch, previous, owner);
}

static long walk_step(__u32 index, void *unused)
{
	struct python_state *state = state__get();
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

/* --- copies of CPython in one process --- */

/* Maximum number of interpreters of a copy to examine. */
#define OWNERS_MAX 16

/* Returns 1 if the thread state belongs to an interpreter of @proc. Copies whose C libraries have
 * their own numbers of thread keys (dlmopen) may find each other's states. */
static __noinline int proc__owns(const struct python_proc_rec *proc, __u64 tstate)
{
	__u64 interp = 0, at = 0;
	int i;

	if (!proc || !tstate)
		return 0;
	if (!proc->interpreters)
		return 1;
	if (read_user(&interp, sizeof(interp), tstate + PYTHON_TSTATE_INTERP) ||
	    read_user(&at, sizeof(at), proc->interpreters))
		return 0;
	for (i = 0; i < OWNERS_MAX && at; i++) {
		if (at == interp)
			return 1;
		if (read_user(&at, sizeof(at), at + proc->offsets.interp_next))
			return 0;
	}
	return 0;
}

/* Returns 1 if the process has more than one copy of the interpreter. This is looked up once per
 * period. */
static __always_inline int several_copies(struct python_proc_rec *proc, __u32 space, __u64 now_ns)
{
	__u32 second = WALKER_COPY_KEY(space, 1);

	if (now_ns - proc->copies_ns >= INTERPRETERS_RECHECK_NS) {
		proc->copies = !!bpf_map_lookup_elem(&python_procs, &second);
		proc->copies_ns = now_ns;
	}
	return proc->copies;
}

/* Finds the copy that the thread runs, and sets state->proc_key and tstates[0]; 0: none. If the
 * thread runs two copies, the first one is used. */
static __noinline int copy__find(struct python_state *state, __u32 space)
{
	const struct python_proc_rec *proc;
	__u64 tstate;
	__u32 i, key;

	if (!state)
		return 0;
	state->tstates[0] = 0;
	for (i = 0; i < WALKER_COPIES_MAX; i++) {
		key = WALKER_COPY_KEY(space, i);
		proc = bpf_map_lookup_elem(&python_procs, &key);
		if (!proc)
			break;
		tstate = 0;
		if (read_tstate(proc, state->fsbase, &tstate) || !proc__owns(proc, tstate))
			continue;
		if (state->tstates[0]) {
			state->mixed = 1;
			break;
		}
		state->proc_key = key;
		state->tstates[0] = tstate;
	}
	return 0;
}

/* Returns the copy that the thread runs, with state->tstates[0], or @first if it runs none. NULL:
 * unknown, which is counted. */
static __always_inline struct python_proc_rec *proc__find(struct python_state *state, __u32 space,
							  struct python_proc_rec *first)
{
	__u32 key;

	state->proc_key = space;
	state->mixed = 0;
	if (!several_copies(first, space, state->now_ns)) {
		if (!read_tstate(first, state->fsbase, &state->tstates[0]))
			return first;
		count(COUNT_WALK_NO_STATE);
		return NULL;
	}
	copy__find(state, space);
	key = state->proc_key;
	first = bpf_map_lookup_elem(&python_procs, &key);
	if (!first)
		count(COUNT_WALK_NO_STATE);
	return first;
}

static __always_inline void walk(struct scratch *scratch, struct python_state *state,
				 struct python_proc_rec *proc)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct rec_sample *sample = &scratch->sample;
	__u32 first_word = scratch->n_words;

	state->now_ns = sample->time_ns;
	state->fsbase = arch__thread_pointer(task);
	proc = proc__find(state, scratch->proc.space, proc);
	if (!proc || !state->tstates[0])
		return;
	state->proc = *proc;
	state->walk++;
	state->replaces = process__replaces(state->now_ns, proc->replaced_ns);
	state->text = state->text_identity = 0;
	state->n = state->n_tstates = state->next_tstate = state->complete = state->truncated = 0;
	state->inferred = 0;
	state->block_bytes = 0;
	if (several_interpreters(proc, state->now_ns))
		find_states(state, state->tstates[0]);
	else
		state->n_tstates = 1;
	if (cfg_locks)
		note_gil(state, sample, proc);
	state->linking = 0;
	if (!chain__start(state, scratch)) {
		if (proc__has_loop(&state->proc, scratch->interrupted[UNWIND_REG_PC]))
			link__find(state);
		if (bpf_loop(STEPS_MAX / FRAMES_PER_STEP, walk_step, NULL, 0) >=
		    STEPS_MAX / FRAMES_PER_STEP)
			state->truncated = 1;
	}
	scratch__section(scratch, WALKER_PYTHON, first_word,
			 section__flags(state->complete && !state->mixed, state->truncated) |
				 (state->inferred ? SECTION_INFERRED : 0));
}

SEC("?perf_event")
int walk_python(void *ctx)
{
	struct scratch *scratch = scratch__get();
	struct python_state *state = state__get();
	struct python_proc_rec *proc;

	if (!scratch || !state) {
		scratch__abandon();
		return 0;
	}
	proc = bpf_map_lookup_elem(&python_procs, &scratch->proc.space);
	if (proc)
		walk(scratch, state, proc);
	else
		count(COUNT_WALK_NO_STATE);
	scratch__next(ctx, scratch);
	return 0;
}
