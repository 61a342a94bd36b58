// SPDX-License-Identifier: GPL-2.0
#include "bpf/python.h"
#include "bpf/scratch.bpf.h"

/* Walks CPython's frames of the interrupted thread. The thread state is found from the thread
 * itself (pthread key PyGILState's), so threads that do not hold the GIL are walked, too. */

/* A code object that was compared with its entry so recently is taken to be the same. Below that,
 * memory that was reused for other code may be shown under the old name. */
#define CODE_RECHECK_NS 10000000ULL

#define FRAME_BLOCK_WORDS 128 /* interpreter frames lie close together: one read serves several */
#define FRAME_BLOCK_BYTES (FRAME_BLOCK_WORDS * 8)
#define PAGE_BYTES	  4096

struct python_state {
	struct python_proc_rec proc;
	__u64 now_ns;
	__u64 frame;
	__u64 cframe, cframe_previous; /* the segment's, and the one of the next outer segment */
	__u64 block_start, block_bytes;
	__u32 n;	  /* frames */
	__u32 first_word; /* of this stack in the sample */
	__u32 segments;
	__u32 complete;
	__u64 block[FRAME_BLOCK_WORDS];
	__u64 code[PYTHON_CODE_BYTES / 8];
	struct rec_code rec;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: number of CPUs */
	__type(key, __u32);
	__type(value, struct python_state);
} python_states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32); /* address space */
	__type(value, struct python_proc_rec);
} python_procs SEC(".maps");

struct code_key {
	__u64 address;
	__u32 space;
	__u32 pad;
};

struct code_entry {
	__u32 code; /* as in rec_code */
	__u32 first_line;
	__u64 file, name, line_table;
	__u64 name_length, name_hash;
	__u64 checked_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct code_key);
	__type(value, struct code_entry);
} python_codes SEC(".maps");

__u32 python_last_code = 0; /* code numbers are dense from 1 */

static __always_inline struct python_state *state__get(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&python_states, &cpu);
}

static __always_inline int read_user(void *to, __u32 size, __u64 from)
{
	return bpf_probe_read_user(to, size, (void *)from) ? -1 : 0;
}

/* glibc's struct pthread on x86-64 (nptl/descr.h): specific_1stblock[32] of {seq, data} at 784,
 * pointers to further blocks of 32 at 1296. */
#define PTHREAD_SPECIFIC_FIRST	784
#define PTHREAD_SPECIFIC_BLOCKS 1296
#define PTHREAD_KEYS_PER_BLOCK	32
#define PTHREAD_KEYS_MAX	1024

static __always_inline int read_specific(__u64 fsbase, __u32 key, __u64 *ret_value)
{
	__u64 block = fsbase + PTHREAD_SPECIFIC_FIRST;

	if (key >= PTHREAD_KEYS_MAX)
		return -1;
	if (key >= PTHREAD_KEYS_PER_BLOCK &&
	    read_user(&block, sizeof(block),
		      fsbase + PTHREAD_SPECIFIC_BLOCKS + 8 * (key / PTHREAD_KEYS_PER_BLOCK)))
		return -1;
	if (!block) {
		*ret_value = 0;
		return 0;
	}
	return read_user(ret_value, sizeof(*ret_value),
			 block + 16 * (key % PTHREAD_KEYS_PER_BLOCK) + 8);
}

/* The thread's PyThreadState; 0 where it has none (no Python in this thread, or not yet). */
static __always_inline int read_tstate(const struct python_proc_rec *proc, __u64 *ret_tstate)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 fsbase, tstate, owner;
	__u32 tss[2];

	*ret_tstate = 0;
	/* Read each time: the key comes with the interpreter's start and goes before its end. */
	if (read_user(tss, sizeof(tss), proc->tss_address))
		return -1;
	if (!tss[0])
		return 0;
	fsbase = task->thread.fsbase;
	if (read_specific(fsbase, tss[1], &tstate))
		return -1;
	/* The state knows its thread: a wrong key must not yield a walk through something else. */
	if (tstate && (read_user(&owner, sizeof(owner), tstate + proc->offsets.tstate_thread_id) ||
		       owner != fsbase))
		return -1;
	*ret_tstate = tstate;
	return 0;
}

static __always_inline __u64 block__word(const struct python_state *state, __u64 at)
{
	return state->block[(at >> 3) & (FRAME_BLOCK_WORDS - 1)];
}

/* Makes the frame's fields readable by block__word; `ret_at` is its offset in the block. */
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
	/* Outer frames lie below: end the block with this frame, but stay in its page, where the
	 * memory that it was allocated in may begin. */
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

/* Begins the segment of `cframe`: the frames that one native eval loop runs. */
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

static __always_inline __u64 code__word(const struct python_state *state, __u16 offset)
{
	__u32 at = (__u32)(offset - state->proc.offsets.code_base) >> 3;

	return state->code[at & (PYTHON_CODE_BYTES / 8 - 1)];
}

/* PyASCIIObject from `length` on. */
struct unicode_head {
	__u64 length, hash;
	__u32 state; /* interned:2 kind:3 compact:1 ascii:1 */
	__u32 pad;
};

/* Bytes per character; 0: not a compact string. */
static __always_inline __u32 text__kind(const struct unicode_head *head)
{
	__u32 kind = (head->state >> 2) & 7, kinds = 1 << 1 | 1 << 2 | 1 << 4;

	return kinds >> kind & head->state >> 5 & 1 ? kind : 0;
}

/* Copies at most CODE_TEXT_BYTES of a string; returns its kind << 16 | length in characters. */
static __noinline int text__read(const struct python_offsets *offsets, __u64 text, char *to)
{
	struct unicode_head head = {};
	__u64 bytes; /* 64 bits: older verifiers lose the bound of a 32-bit product */
	__u32 kind;

	if (!offsets || !to || read_user(&head, sizeof(head), text + 16))
		return -1;
	kind = text__kind(&head);
	if (!kind)
		return -1;
	bytes = head.length > CODE_TEXT_BYTES ? CODE_TEXT_BYTES : head.length * kind;
	if (bytes > CODE_TEXT_BYTES)
		bytes = CODE_TEXT_BYTES;
	text += head.state & 1 << 6 ? offsets->unicode_ascii_data : offsets->unicode_compact_data;
	if (read_user(to, bytes, text))
		return -1;
	return kind << 16 | (head.length > 0xffff ? 0xffff : (__u32)head.length);
}

static __always_inline void code__set_text(int text, __u8 *kind, __u16 *len)
{
	*kind = text < 0 ? 0 : text >> 16;
	*len = text < 0 ? 0 : text & 0xffff;
	if (text < 0)
		count(COUNT_WALK_CODE);
}

static __noinline int code__send(struct python_state *state, const struct scratch *scratch,
				 __u64 address, __u32 code)
{
	const struct python_offsets *offsets = &state->proc.offsets;
	struct rec_code *rec = &state->rec;
	__u64 table = code__word(state, offsets->code_line_table);
	__u32 size;

	rec->type = REC_CODE;
	rec->code = code;
	rec->tgid = scratch->sample.tgid;
	rec->walker = WALKER_PYTHON;
	rec->address = address;
	rec->table_address = table + PYTHON_BYTES_DATA;
	rec->table_size = 0;
	rec->first_line = code__word(state, offsets->code_first_line & ~7) >>
			  8 * (offsets->code_first_line & 7);
	code__set_text(text__read(offsets, code__word(state, offsets->code_name), rec->name),
		       &rec->name_kind, &rec->name_len);
	code__set_text(text__read(offsets, code__word(state, offsets->code_file), rec->file),
		       &rec->file_kind, &rec->file_len);
	read_user(&rec->table_size, sizeof(rec->table_size), table + PYTHON_BYTES_SIZE);
	size = rec->table_size;
	if (size > CODE_TABLE_BYTES)
		size = CODE_TABLE_BYTES;
	if (read_user(rec->table, size, rec->table_address))
		size = 0; /* not in memory yet: user space reads it */
	return bpf_ringbuf_output(&ring, rec, sizeof(*rec) - CODE_TABLE_BYTES + size,
				  ring__flags());
}

static __always_inline int code__same(const struct code_entry *a, const struct code_entry *b)
{
	return a->first_line == b->first_line && a->file == b->file && a->name == b->name &&
	       a->line_table == b->line_table && a->name_length == b->name_length &&
	       (a->name_hash == b->name_hash || a->name_hash == -1ULL || b->name_hash == -1ULL);
}

/* Number of the code object at `address`, 0 if it cannot be read. Pointers and the name's content
 * are compared, so that memory reused for other code yields another number. */
static __noinline __u32 code__intern(struct python_state *state, const struct scratch *scratch,
				     __u64 address)
{
	struct code_key key = { .address = address, .space = scratch->proc.space };
	const struct python_offsets *offsets = &state->proc.offsets;
	struct code_entry *known, entry = {};
	struct unicode_head head = {};

	known = bpf_map_lookup_elem(&python_codes, &key);
	if (known && state->now_ns - known->checked_ns < CODE_RECHECK_NS)
		return known->code;
	if (read_user(state->code, PYTHON_CODE_BYTES, address + offsets->code_base))
		return 0;
	entry.first_line = code__word(state, offsets->code_first_line & ~7) >>
			   8 * (offsets->code_first_line & 7);
	entry.file = code__word(state, offsets->code_file);
	entry.name = code__word(state, offsets->code_name);
	entry.line_table = code__word(state, offsets->code_line_table);
	if (read_user(&head, sizeof(head), entry.name + 16) || !text__kind(&head))
		return 0; /* no code object at all */
	entry.name_length = head.length;
	entry.name_hash = head.hash;
	entry.checked_ns = state->now_ns;
	if (known && code__same(known, &entry)) {
		known->checked_ns = state->now_ns;
		return known->code;
	}
	entry.code = __sync_fetch_and_add(&python_last_code, 1) + 1;
	/* What could not be sent is not remembered: the next sample tries again. */
	if (code__send(state, scratch, address, entry.code) ||
	    bpf_map_update_elem(&python_codes, &key, &entry, BPF_ANY))
		count(COUNT_CODE_LOST);
	return entry.code;
}

/* An interpreter loop links its C frame a few instructions before it stores its frame there. What
 * is found in between in the innermost segment is left over from earlier calls, or garbage: forget
 * it and go on with the segment outside. Returns 0 if there is one. */
static __always_inline int segment__restart(struct python_state *state, struct scratch *scratch)
{
	if (state->segments != 1 || !state->cframe_previous)
		return 1;
	scratch->n_words = state->first_word;
	state->n = 0;
	return segment__start(state, state->cframe_previous);
}

/* The frame that began the segment is done: on to the segment outside it. */
static __always_inline int segment__end(struct python_state *state, struct scratch *scratch,
					__u64 expected)
{
	if (!state->cframe_previous) {
		state->complete = !expected;
		return 1;
	}
	if (segment__start(state, state->cframe_previous)) {
		count(COUNT_WALK_READ);
		return 1;
	}
	if (state->frame == expected) {
		state->complete = !expected;
		return !expected;
	}
	if (state->segments == 2) { /* as in segment__restart: what was walked was left over */
		scratch->n_words = state->first_word;
		state->n = 0;
		return 0;
	}
	count(COUNT_WALK_READ);
	return 1;
}

static long walk_step(__u32 index, void *unused)
{
	struct python_state *state = state__get();
	struct scratch *scratch = scratch__get();
	const struct python_offsets *offsets;
	__u64 at, code, instr, previous;
	__u32 is_entry, number;

	(void)index, (void)unused;
	if (!state || !scratch)
		return 1;
	if (!state->frame) { /* none at all, or none outside of what segment__restart forgot */
		state->complete = state->segments == 1;
		if (!state->complete)
			count(COUNT_WALK_READ);
		return 1;
	}
	offsets = &state->proc.offsets;
	if (frame__load(state, &at)) {
		if (!segment__restart(state, scratch))
			return 0;
		count(COUNT_WALK_READ);
		return 1;
	}
	previous = block__word(state, at + offsets->frame_previous);
	code = block__word(state, at + offsets->frame_code);
	instr = block__word(state, at + offsets->frame_instr);
	is_entry = block__word(state, at + (offsets->frame_is_entry & ~7)) >>
			   8 * (offsets->frame_is_entry & 7) &
		   0xff;
	number = code__intern(state, scratch, code);
	if (!number) {
		if (!segment__restart(state, scratch))
			return 0;
		count(COUNT_WALK_CODE);
	}
	scratch__push(scratch, FRAME_KEY(number, instr - code - offsets->code_bytecode),
		      state->cframe);
	state->n++;
	if (is_entry)
		return segment__end(state, scratch, previous);
	state->frame = previous;
	if (previous)
		return 0;
	count(COUNT_WALK_READ); /* not linked to its caller yet: the outermost one is an entry */
	return 1;
}

static __always_inline void walk(struct scratch *scratch, struct python_state *state,
				 struct python_proc_rec *proc)
{
	struct rec_sample *sample = &scratch->sample;
	__u64 tstate, cframe;
	long steps;

	state->proc = *proc;
	state->now_ns = sample->time_ns;
	state->n = state->segments = state->complete = 0;
	state->block_bytes = 0;
	state->first_word = scratch->n_words;
	if (read_tstate(proc, &tstate)) {
		count(COUNT_WALK_NO_STATE);
		return;
	}
	if (!tstate)
		return;
	if (read_user(&cframe, sizeof(cframe), tstate + state->proc.offsets.tstate_cframe) ||
	    !cframe || segment__start(state, cframe)) {
		count(COUNT_WALK_NO_STATE);
		return;
	}
	sample->walker = WALKER_PYTHON;
	steps = bpf_loop(RUNTIME_FRAMES_MAX, walk_step, NULL, 0);
	sample->n_runtime = state->n;
	if (state->complete)
		return;
	if (steps >= RUNTIME_FRAMES_MAX) {
		sample->flags |= SAMPLE_RUNTIME_TRUNCATED;
		count(COUNT_WALK_TRUNCATED);
	} else {
		sample->flags |= SAMPLE_RUNTIME_BROKEN;
	}
}

SEC("perf_event")
int walk_python(struct bpf_perf_event_data *ctx)
{
	struct scratch *scratch = scratch__get();
	struct python_state *state = state__get();
	struct python_proc_rec *proc;

	if (!scratch || !state) {
		count(COUNT_SCRATCH);
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
