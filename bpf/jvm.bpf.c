// SPDX-License-Identifier: GPL-2.0
#include "bpf/jvm_state.bpf.h"
#include "bpf/lock.bpf.h"

/* Java frames of a sample: each is a native frame that the unwinder has met in HotSpot's code. Here
 * they get their numbers. */

struct jvm_key {
	__u64 address; /* Method, nmethod or CodeBlob */
	__u64 content; /* of a Method: its ConstMethod; of an nmethod: its compile id */
	__u32 space;
	__u32 kind; /* JVM_CODE_* */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CODES_KEPT);
	__type(key, struct jvm_key);
	__type(value, __u32);
} jvm_codes SEC(".maps");

static __always_inline int code__announce(const struct jvm_key *key, const struct scratch *scratch,
					  __u32 code, __u64 start)
{
	__u64 header[REC_CODE_HEADER / 8] = {};
	struct rec_code *rec = (void *)header;

	rec->type = REC_CODE;
	rec->code = code;
	rec->tgid = scratch->sample.tgid;
	rec->walker = WALKER_JVM;
	rec->address = key->address;
	rec->table_address = key->kind == JVM_CODE_METHOD ? key->content : start;
	rec->first_line = key->content;
	rec->table_size = key->space;
	rec->table_format = key->kind;
	/* User space shall read more of it while the JVM runs and the code is there. */
	return bpf_ringbuf_output(&ring, header, sizeof(header), BPF_RB_FORCE_WAKEUP);
}

/* The number of this code, told to user space with its first use. `start`: of its instructions. -1:
 * that could not be told, and the next sample tries again. */
static __noinline int code__number(const struct jvm_key *key, const struct scratch *scratch,
				   __u64 start, __u32 *ret_code)
{
	__u32 *known = bpf_map_lookup_elem(&jvm_codes, key), code;

	*ret_code = known ? *known : code__new();
	if (known)
		return 0;
	code = *ret_code;
	if (!code__announce(key, scratch, code, start) &&
	    !bpf_map_update_elem(&jvm_codes, key, &code, BPF_ANY))
		return 0;
	count(COUNT_CODE_LOST);
	return -1;
}

/* Index of the current bytecode: of the innermost frame it is in r13, where the interpreter has
 * the rest of them saved. */
static __always_inline __u32 bytecode__index(const struct jvm_offsets *offsets, __u64 const_method,
					     __u64 saved, __u64 live)
{
	__u64 start = const_method + offsets->const_method_bytes;

	if (live - start < 65536)
		return live - start;
	return saved - start < 65536 ? saved - start : JVM_NO_BCI;
}

/* Where the number of this code is remembered: no look-up in a hash, and nothing to be read of it.
 */
static __always_inline struct jvm_number *number__at(struct jvm_state *state, __u64 address)
{
	__u64 hash = address * 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */

	return &state->numbers[hash >> (64 - JVM_NUMBERS_LOG2)];
}

static __always_inline int number__is(const struct jvm_number *number,
				      const struct jvm_state *state, __u64 address, __u32 kind)
{
	return number->address == address && number->kind == kind &&
	       number->space == state->space &&
	       state->time_ns - number->checked_ns < JVM_RECHECK_NS;
}

/* `start` as for code__number. */
static __always_inline void number__set(struct jvm_number *number, const struct jvm_state *state,
					const struct scratch *scratch, const struct jvm_key *key,
					__u64 start)
{
	__u32 code;

	*number = (struct jvm_number) { .address = key->address,
					.content = key->content,
					.space = key->space,
					.kind = key->kind };
	if (!code__number(key, scratch, start, &code))
		number->checked_ns = state->time_ns;
	number->code = code;
}

static __always_inline int interpreted__push(struct scratch *scratch, struct jvm_state *state,
					     const struct jvm_offsets *offsets,
					     const struct jvm_frame *frame)
{
	struct jvm_key key = { .address = frame->blob,
			       .space = state->space,
			       .kind = JVM_CODE_METHOD };
	struct jvm_number *number = number__at(state, key.address);
	__u64 live = 0;

	if (!number__is(number, state, key.address, key.kind)) {
		if (jvm__read(&key.content, 8, key.address + offsets->method_const_method))
			return -1;
		number__set(number, state, scratch, &key, 0);
	}
	if (frame->at & JVM_EXACT)
		live = scratch->interrupted[13];
	scratch__push(scratch,
		      FRAME_KEY(number->code,
				bytecode__index(offsets, number->content, frame->bcp, live)),
		      frame->cfa - 8);
	return 0;
}

static __always_inline void compiled__push(struct scratch *scratch, struct jvm_state *state,
					   const struct jvm_frame *frame)
{
	struct jvm_key key = { .address = frame->blob,
			       .content = frame->compile_id,
			       .space = state->space };
	struct jvm_number *number = number__at(state, key.address);

	key.kind = frame->kind == JVM_NMETHOD ? JVM_CODE_NMETHOD : JVM_CODE_BLOB;
	if (!number__is(number, state, key.address, key.kind) || number->content != key.content)
		number__set(number, state, scratch, &key, frame->code);
	scratch__push(scratch, FRAME_KEY(number->code, frame->at), frame->cfa - 8);
}

/* Whether the thread waits to enter a monitor, and whose it is. `at`: of its JavaThread. */
static __noinline int monitor__note(const struct jvm_proc_rec *proc, struct rec_sample *sample,
				    __u64 at)
{
	__u64 thread, monitor, owner, osthread, kind, its_kind;
	const struct jvm_monitor_offsets *offsets;

	if (!proc || !sample)
		return 0;
	offsets = &proc->monitors;
	if (!offsets->pending_monitor || jvm__read(&thread, 8, at) ||
	    jvm__read(&monitor, 8, thread + offsets->pending_monitor) || !monitor)
		return 0;
	sample__lock(sample, LOCK_WAITED);
	sample->object = monitor;
	/* Up to JDK 21 a monitor's owner may also be a place on its stack: no JavaThread begins
	 * there, as this one does, with the address of its class's virtual functions. */
	if (offsets->with_owner && !jvm__read(&owner, 8, monitor + offsets->owner) && owner &&
	    !jvm__read(&kind, 8, thread) && !jvm__read(&its_kind, 8, owner) && kind == its_kind &&
	    !jvm__read(&osthread, 8, owner + offsets->osthread))
		sample__waits_for(sample, osthread + offsets->thread_id);
	return 0;
}

/* Of the outermost frame that called into Java; 0: there is none. */
static __always_inline void thread__note(struct jvm_state *state, const struct jvm_proc_rec *proc,
					 const struct jvm_frame *frame)
{
	if (frame->kind == JVM_BLOB && proc->call_stub_return &&
	    frame->code + (frame->at & ~JVM_EXACT) == proc->call_stub_return)
		state->thread_at = frame->cfa + JVM_CALL_STUB_THREAD;
}

/* A step looks its memory up once for so many. */
#define FRAMES_PER_STEP 4

static long walk_frames(__u32 step, void *unused)
{
	struct jvm_state *state = jvm_state__get();
	struct scratch *scratch = scratch__get();
	__u32 i, index = step * FRAMES_PER_STEP;

	(void)unused;
	if (!state || !scratch)
		return 1;
	for (i = 0; i < FRAMES_PER_STEP && index < state->n; i++, index++) {
		const struct jvm_frame *frame = &state->frames[index & (NATIVE_FRAMES_MAX - 1)];

		thread__note(state, &state->proc, frame);
		if (frame->kind != JVM_INTERPRETED)
			compiled__push(scratch, state, frame);
		else if (interpreted__push(scratch, state, &state->proc.offsets, frame))
			count(COUNT_WALK_READ);
	}
	return 0;
}

SEC("?perf_event")
int walk_jvm(void *ctx)
{
	struct jvm_state *state = jvm_state__get();
	struct scratch *scratch = scratch__get();
	__u32 first_word;

	if (!scratch || !state) {
		scratch__abandon();
		return 0;
	}
	if (state->time_ns == scratch->sample.time_ns && state->is_known && state->n) {
		first_word = scratch->n_words;
		state->thread_at = 0;
		bpf_loop((state->n + FRAMES_PER_STEP - 1) / FRAMES_PER_STEP, walk_frames, NULL, 0);
		if (cfg_locks && state->thread_at)
			monitor__note(&state->proc, &scratch->sample, state->thread_at);
		scratch__walked(scratch, WALKER_JVM, first_word, 1, 0);
	}
	scratch__next(ctx, scratch);
	return 0;
}
