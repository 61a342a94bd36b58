// SPDX-License-Identifier: GPL-2.0
#include "bpf/python_probes.bpf.h"
#include "bpf/python_tstate.bpf.h"

/* CPython's calls, from two pairs of probes:
 *   USDT function__entry and function__return, by file, name and line. An entry's `match` is the
 *   address of the name's characters.
 *   The entry and the return of _PyEval_EvalFrameDefault, 3.6 to 3.10: `match` is the address of
 *   the frame object, and the frame object contains its caller. The kernel sees no more than 64
 *   nested returns of a thread (MAX_URETPROBE_DEPTH, kernel/events/uprobes.c). Entries of deeper
 *   calls are seen, and ended when a later call or return proves that they have ended. */

/* PyFrameObject up to 3.10: f_back, and f_code after it (Include/frameobject.h) */
#define FRAME_BACK 24

/* PyCompactUnicodeObject: utf8, up to 3.11 (Include/cpython/unicodeobject.h) */
#define UNICODE_UTF8 56

/* Maximum number of frames examined at a thread's first probe. */
#define SEED_FRAMES_MAX 16384

/* --- calls from before the probes --- */

static long count_frame(__u32 index, void *arg)
{
	struct shadow *shadow = *(struct shadow **)arg;
	__u64 frame = shadow->seed_frame;

	(void)index;
	if (!frame || read_user(&frame, sizeof(frame), frame + FRAME_BACK))
		return 1;
	shadow->seed_frame = frame;
	shadow->seed_n++;
	return 0;
}

/* Returns the address of the interpreter's UTF-8 form of a string, or 0 if there is none. */
static __always_inline __u64 utf8_of(__u64 text)
{
	struct unicode_head head = {};
	__u64 utf8 = 0;

	if (read_user(&head, sizeof(head), text + 16) || !text__kind(&head))
		return 0;
	if (head.state & 1 << 6)
		return text + 48;
	read_user(&utf8, sizeof(utf8), text + UNICODE_UTF8);
	return utf8;
}

static __always_inline void seed_text(struct shadow *shadow, struct shadow_entry *entry, __u64 code)
{
	__u32 space = shadow->space; /* Linux 6.1 takes no argument's field as a map's key */
	const struct python_proc_rec *proc = bpf_map_lookup_elem(&python_procs, &space);
	__u64 addresses[2]; /* file, name */
	__u32 line;

	if (!proc || read_user(addresses, sizeof(addresses), code + proc->offsets.code_file) ||
	    read_user(&line, sizeof(line), code + proc->offsets.code_first_line)) {
		count(COUNT_PROBE_READ);
		return;
	}
	addresses[0] = utf8_of(addresses[0]);
	addresses[1] = utf8_of(addresses[1]);
	entry->match = addresses[1];
	entry->index = line;
	if (addresses[0] && addresses[1])
		entry->code = text__number(shadow, addresses[1], addresses[0], line);
}

/* Returns the entry for the current frame of seeding, or NULL, and moves on to its caller.
 * *ret_code becomes its code object. */
static __always_inline struct shadow_entry *seed__next(struct shadow *shadow, __u32 at,
						       __u64 *ret_code)
{
	struct shadow_entry *entry;
	__u64 words[2], frame = shadow->seed_frame; /* f_back, f_code */

	if (read_user(words, sizeof(words), frame + FRAME_BACK))
		words[0] = words[1] = 0;
	*ret_code = words[1];
	shadow->seed_frame = words[0];
	if (at >= SHADOW_DEPTH_MAX)
		return NULL;
	barrier_var(at); /* else the compiler drops the mask that the verifier requires */
	entry = shadow__entry(shadow, at);
	entry->flags = ENTRY_SEEDED | ENTRY_LIVE_INDEX;
	entry->entered_ns = shadow->seed_ns;
	entry->match = frame;
	entry->anchor = 0;
	entry->code = entry->index = 0;
	return entry;
}

static long seed_text_frame(__u32 index, void *arg)
{
	struct shadow *shadow = *(struct shadow **)arg;
	struct shadow_entry *entry;
	__u64 code;

	if (index >= shadow->seed_n)
		return 1;
	entry = seed__next(shadow, shadow->seed_n - 1 - index, &code);
	if (entry) {
		entry->flags = ENTRY_SEEDED;
		entry->match = 0;
		seed_text(shadow, entry, code);
	}
	return 0;
}

static long seed_object_frame(__u32 index, void *arg)
{
	struct shadow *shadow = *(struct shadow **)arg;
	struct shadow_entry *entry;
	__u64 code;

	if (index >= shadow->seed_n)
		return 1;
	entry = seed__next(shadow, shadow->seed_n - 1 - index, &code);
	if (entry)
		entry->code = object__number(shadow, code);
	return 0;
}

/* Begins to seed the calls of `frame` and its callers by counting them. */
static __always_inline void seed__begin(struct shadow *shadow, __u64 frame)
{
	shadow->seed_n = 0;
	shadow->seed_ns = cfg_calls ? bpf_ktime_get_ns() : 0;
	shadow->seed_frame = frame;
	bpf_loop(SEED_FRAMES_MAX, count_frame, &shadow, 0);
	if (shadow->seed_frame) /* broken, or endless */
		shadow->flags |= SHADOW_PARTIAL;
	shadow->seed_frame = frame;
}

__noinline int seed__texts(struct shadow *shadow, __u64 frame)
{
	if (!shadow)
		return 0;
	seed__begin(shadow, frame);
	bpf_loop(SEED_FRAMES_MAX, seed_text_frame, &shadow, 0);
	shadow__publish(shadow, shadow->seed_n);
	return 0;
}

__noinline int seed__objects(struct shadow *shadow, __u64 frame)
{
	if (!shadow)
		return 0;
	seed__begin(shadow, frame);
	bpf_loop(SEED_FRAMES_MAX, seed_object_frame, &shadow, 0);
	shadow__publish(shadow, shadow->seed_n);
	return 0;
}

/* Reads the caller of the frame that the thread has just entered. */
static __always_inline int current_caller(const struct python_proc_rec *proc, __u64 *ret_frame)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 tstate, frame;

	if (read_tstate(proc, arch__thread_pointer(task), &tstate) || !tstate ||
	    read_user(&frame, sizeof(frame), tstate + proc->offsets.tstate_frame) || !frame)
		return -1;
	return read_user(ret_frame, sizeof(*ret_frame), frame + FRAME_BACK);
}

/* Begins a shadow stack at the thread's first probe, or a child's first one after fork. Returns the
 * interpreter's record if its frames are readable. */
static __always_inline const struct python_proc_rec *shadow__start(struct shadow *shadow,
								   const struct probe_rec *rec)
{
	const struct python_proc_rec *proc = bpf_map_lookup_elem(&python_procs, &rec->space);

	shadow__begin(shadow, rec->space);
	if (!proc || proc->offsets.chain != PYTHON_CHAIN_OBJECTS) {
		shadow->flags |= SHADOW_PARTIAL;
		return NULL;
	}
	shadow->index_offset = proc->offsets.frame_instr;
	shadow->index_shift = proc->offsets.instr == PYTHON_INSTR_UNITS;
	return proc;
}

/* --- the probes --- */

static __noinline void usdt_start(struct shadow *shadow, const struct probe_rec *rec)
{
	const struct python_proc_rec *proc = shadow__start(shadow, rec);
	__u64 frame;

	if (!proc)
		return;
	if (current_caller(proc, &frame))
		shadow->flags |= SHADOW_PARTIAL;
	else
		seed__texts(shadow, frame);
}

/* A function of its own, so that its stack is not in use while a thread's earlier calls are
 * found. */
static __noinline int usdt_push(struct pt_regs *ctx, struct shadow *shadow,
				const struct probe_rec *rec)
{
	__u64 file = probe__arg(ctx, &rec->args[0]), name = probe__arg(ctx, &rec->args[1]);
	__u32 line = probe__arg(ctx, &rec->args[2]);
	struct shadow_call call = {};

	call.anchor = probe__anchor(ctx, rec);
	call.match = name;
	call.index = line;
	if (rec->flags & PROBE_OWN_ANCHOR)
		call.flags = ENTRY_OWN_ANCHOR;
	if (name && file)
		call.code = text__number(shadow, name, file, line);
	shadow__push(shadow, &call);
	return 0;
}

SEC("?uprobe")
int python_usdt_entry(struct pt_regs *ctx)
{
	const struct probe_rec *rec = probe__rec(ctx);
	struct shadow *shadow;

	if (!rec)
		return 0;
	shadow = shadow__get(probe__owner(ctx, rec));
	if (!shadow)
		return 0;
	if (shadow__is_new(shadow))
		usdt_start(shadow, rec);
	else if (shadow->space != rec->space)
		shadow__move(shadow, rec->space);
	return usdt_push(ctx, shadow, rec);
}

SEC("?uprobe")
int python_usdt_return(struct pt_regs *ctx)
{
	const struct probe_rec *rec = probe__rec(ctx);
	struct shadow *shadow;

	if (!rec)
		return 0;
	shadow = shadow__find(probe__owner(ctx, rec));
	if (shadow)
		shadow__pop(shadow, probe__anchor(ctx, rec), probe__arg(ctx, &rec->args[1]));
	else
		count(COUNT_SHADOW_UNMATCHED);
	return 0;
}

static __noinline void eval_start(struct shadow *shadow, const struct probe_rec *rec, __u64 caller)
{
	if (shadow__start(shadow, rec))
		seed__objects(shadow, caller);
}

static __noinline int eval_push(struct pt_regs *ctx, struct shadow *shadow,
				const struct probe_rec *rec, __u64 caller, __u64 code)
{
	struct shadow_call call = {};

	call.match = probe__arg(ctx, &rec->args[0]);
	call.parent = caller;
	call.anchor = probe__anchor(ctx, rec);
	call.flags = ENTRY_OWN_ANCHOR | ENTRY_LIVE_INDEX;
	call.code = object__number(shadow, code);
	shadow__push(shadow, &call);
	return 0;
}

SEC("?uprobe")
int python_eval_entry(struct pt_regs *ctx)
{
	const struct probe_rec *rec = probe__rec(ctx);
	__u64 words[2] = {}; /* f_back, f_code */
	struct shadow *shadow;

	if (!rec)
		return 0;
	shadow = shadow__get(probe__owner(ctx, rec));
	if (!shadow)
		return 0;
	if (read_user(words, sizeof(words), probe__arg(ctx, &rec->args[0]) + FRAME_BACK))
		count(COUNT_PROBE_READ);
	if (shadow__is_new(shadow))
		eval_start(shadow, rec, words[0]);
	else if (shadow->space != rec->space)
		shadow__move(shadow, rec->space);
	return eval_push(ctx, shadow, rec, words[0], words[1]);
}

/* Runs at a `ret`, or after it at the return address. */
SEC("?uprobe")
int python_eval_return(struct pt_regs *ctx)
{
	const struct probe_rec *rec = probe__rec(ctx);
	struct shadow *shadow;

	if (!rec)
		return 0;
	shadow = shadow__find(probe__owner(ctx, rec));
	if (shadow)
		shadow__pop(shadow, probe__anchor(ctx, rec), 0);
	else
		count(COUNT_SHADOW_UNMATCHED);
	return 0;
}
