// SPDX-License-Identifier: GPL-2.0
#include "bpf/unwind.bpf.h"

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 cfg_ring_wakeup_bytes = 1 << 20;
const volatile __u32 cfg_unwind = UNWIND_MODE_AUTO;
const volatile __u32 cfg_pidns_ino = 0;
const volatile __u32 cfg_walkers = 0; /* bit n: the runtime of slot n is enabled */

__u32 last_code = 0;
__u32 last_program = 0;

__u64 sample_until_ns = 0; /* user space may set it, or to an earlier time; 0: no end */

#define CS_COMPAT 0x23 /* __USER32_CS */

struct copy_slot {
	__u64 window_ns; /* start of the second that `n` counts in */
	__u32 n;
	__u32 pad;
	struct rec_stack rec;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: number of CPUs */
	__type(key, __u32);
	__type(value, struct copy_slot);
} copy_slots SEC(".maps");

static __always_inline void unwind__start(struct unwind_state *u)
{
	u->pc = u->regs[UNWIND_REG_PC];
	u->sp = u->regs[UNWIND_REG_RSP];
	u->rbp = u->regs[UNWIND_REG_RBP];
	u->rbx = u->regs[UNWIND_REG_RBX];
	u->rbx_lost = u->rbp_lost = 0;
	u->mapping.start = u->mapping.end = 0;
	u->block_start = 0;
	u->exact = u->leaf = 1;
	u->stop = u->complete = u->n = 0;
	u->unknown_start = 0;
}

#define COPY_REGS(to, from)                                                             \
	do {                                                                            \
		(to)[0] = (from)->rax, (to)[1] = (from)->rdx, (to)[2] = (from)->rcx;    \
		(to)[3] = (from)->rbx, (to)[4] = (from)->rsi, (to)[5] = (from)->rdi;    \
		(to)[6] = (from)->rbp, (to)[7] = (from)->rsp, (to)[8] = (from)->r8;     \
		(to)[9] = (from)->r9, (to)[10] = (from)->r10, (to)[11] = (from)->r11;   \
		(to)[12] = (from)->r12, (to)[13] = (from)->r13, (to)[14] = (from)->r14; \
		(to)[15] = (from)->r15, (to)[16] = (from)->rip;                         \
	} while (0)

/* User registers at entry to the kernel: those of the interrupted instruction in user mode, of
 * the system call or fault in kernel mode. Returns the code segment, 0 if there are none. */
static __noinline __u32 read_user_regs(struct bpf_perf_event_data *ctx, struct unwind_state *u)
{
	struct pt_regs *regs = &u->kernel_regs;
	struct task_struct *task;

	if (ctx->regs.cs & CS_USER_MASK) {
		COPY_REGS(u->regs, &ctx->regs);
		return ctx->regs.cs;
	}
	task = bpf_get_current_task_btf();
	if (task->flags & PF_KTHREAD || !task->mm)
		return 0;
	/* The kernel's struct pt_regs and the user-visible one have the same layout on x86-64. */
	if (bpf_probe_read_kernel(regs, sizeof(*regs), (void *)bpf_task_pt_regs(task)))
		return 0;
	COPY_REGS(u->regs, regs);
	return regs->cs & CS_USER_MASK ? regs->cs : 0; /* io_uring workers never were there */
}

/* In an epilogue, rules point at registers that were popped already, in the red zone. The page
 * below the stack pointer's may not be there. */
#define RED_ZONE_BYTES 128

static __always_inline __u64 copy_start(__u64 sp)
{
	__u64 start = sp - RED_ZONE_BYTES, page = sp & ~(PAGE_BYTES - 1ULL);

	return start < page ? page : start;
}

static long copy_page(__u32 index, void *unused)
{
	__u32 cpu = bpf_get_smp_processor_id(), size, used;
	struct copy_slot *slot = bpf_map_lookup_elem(&copy_slots, &cpu);
	__u64 from;

	(void)index, (void)unused;
	if (!slot)
		return 1;
	used = slot->rec.size;
	if (used > STACK_COPY_BYTES - PAGE_BYTES)
		return 1;
	from = slot->rec.start + used;
	size = PAGE_BYTES - (from & (PAGE_BYTES - 1));
	if (bpf_probe_read_user(slot->rec.data + used, size, (void *)from))
		return 1; /* the stack ends here */
	slot->rec.size = used + size;
	return 0;
}

static __noinline int copy_stack(struct scratch *scratch)
{
	__u32 cpu = bpf_get_smp_processor_id(), size;
	struct copy_slot *slot = bpf_map_lookup_elem(&copy_slots, &cpu);
	struct rec_sample *sample = &scratch->sample;
	int starting = sample->stop == COUNT_NO_MAPPINGS;

	if (!slot)
		return 0;
	if (cfg_unwind == UNWIND_MODE_AUTO) {
		if (sample->time_ns - slot->window_ns > COPIES_WINDOW_NS) {
			slot->window_ns = sample->time_ns;
			slot->n = 0;
		}
		if (slot->n++ >= (starting ? START_COPIES_MAX : AUTO_COPIES_MAX))
			return 0;
	}
	slot->rec.type = REC_STACK;
	slot->rec.tgid = sample->tgid;
	slot->rec.tid = sample->tid;
	slot->rec.time_ns = sample->time_ns;
	slot->rec.size = 0;
	__builtin_memcpy(slot->rec.regs, scratch->interrupted, sizeof(slot->rec.regs));
	slot->rec.start = copy_start(slot->rec.regs[UNWIND_REG_RSP]);
	bpf_loop(STACK_COPY_BYTES / PAGE_BYTES + 1, copy_page, NULL, 0);
	size = slot->rec.size;
	if (size > STACK_COPY_BYTES)
		return 0;
	if (bpf_ringbuf_output(&ring, &slot->rec, REC_STACK_HEADER + size, ring__flags())) {
		count(COUNT_COPY_FAILED);
		return 0;
	}
	return 1;
}

static __always_inline int is_unmapped(__u32 stop)
{
	return stop == COUNT_NO_MAPPINGS || stop == COUNT_UNMAPPED_PC ||
	       stop == COUNT_TORN_MAPPINGS;
}

/* Could libunwind in user space do better with a copy of the stack? */
static __always_inline int wants_copy(const struct unwind_state *u)
{
	if (cfg_unwind == UNWIND_MODE_COPY)
		return 1;
	if (cfg_unwind == UNWIND_MODE_FP)
		return 0;
	return is_unmapped(u->stop) || u->stop == COUNT_NO_RULE || u->stop == COUNT_UNSUPPORTED ||
	       u->stop == COUNT_LOST_REG;
}

static __always_inline void report_unmapped(const struct scratch *scratch)
{
	struct rec_unmapped rec = { .type = REC_UNMAPPED,
				    .tgid = scratch->sample.tgid,
				    .time_ns = scratch->sample.time_ns,
				    .start = scratch->unwind.unknown_start,
				    .key = scratch->unwind.image_key,
				    .program = scratch->proc.program };

	if (bpf_ringbuf_output(&ring, &rec, sizeof(rec), BPF_RB_FORCE_WAKEUP))
		count(COUNT_EVENT_LOST);
}

static __always_inline void unwind_native(struct scratch *scratch, __u32 cs)
{
	struct rec_sample *sample = &scratch->sample;
	struct unwind_state *u = &scratch->unwind;

	__builtin_memcpy(scratch->interrupted, u->regs, sizeof(scratch->interrupted));
	unwind__start(u);
	unwind__start_probes(u, bpf_get_current_task_btf());
	if (cs == CS_COMPAT)
		u->stop = COUNT_COMPAT;
	else
		bpf_loop(NATIVE_FRAMES_MAX, unwind__step, NULL, 0);
	if (u->complete)
		sample->flags |= SAMPLE_COMPLETE;
	else if (!u->stop)
		u->stop = COUNT_TRUNCATED;
	if (u->stop == COUNT_TRUNCATED)
		sample->flags |= SAMPLE_NATIVE_TRUNCATED;
	if (u->stop)
		count(u->stop);
	if (is_unmapped(u->stop))
		report_unmapped(scratch);
	sample->n_native = u->n;
	sample->stop = u->stop;
	if (wants_copy(u) && copy_stack(scratch))
		sample->flags |= SAMPLE_HAS_STACK;
}

/* Does the task execute something else by now, while its registers are still those of the program
 * before, of which the memory is gone? What on_exec has noted can have been overwritten by what
 * user space published of that program just then: other memory shows it. */
static __always_inline int is_between_programs(struct task_struct *task, struct proc_rec *proc,
					       __u32 in_execve)
{
	__u64 mm = (__u64)task->mm;

	if (!mm || proc->mm == mm)
		return 0;
	if (in_execve)
		return proc->mm != 0;
	if (proc->mm) {
		proc->space = 0;
		proc->walkers = 0;
		proc->program = program__new();
	}
	proc->mm = mm;
	return 0;
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tgid = task__pid(task);
	struct proc_rec *proc = bpf_map_lookup_elem(&targets, &tgid);
	struct rec_sample *sample;
	struct scratch *scratch;
	long bytes;
	__u64 now_ns = bpf_ktime_get_ns();
	__u32 cs, user_mode, in_execve, between;

	if (!proc || !tgid || (sample_until_ns && now_ns >= sample_until_ns))
		return 0;
	user_mode = ctx->regs.cs & CS_USER_MASK;
	in_execve = BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
	if (proc->flags & PROC_STARTING && !in_execve)
		return 0; /* what the command has to do with begins with its exec */
	count(COUNT_SAMPLES);
	scratch = scratch__get();
	if (!scratch) {
		count(COUNT_SCRATCH);
		return 0;
	}
	between = is_between_programs(task, proc, in_execve);
	scratch->proc = *proc;
	scratch->walkers_left = proc->walkers;
	scratch->n_words = 0;
	sample = &scratch->sample;
	__builtin_memset(sample, 0, sizeof(*sample));
	sample->type = REC_SAMPLE;
	sample->time_ns = now_ns;
	sample->tgid = tgid;
	sample->tid = task__tid(task);
	sample->cpu = bpf_get_smp_processor_id();
	bpf_get_current_comm(sample->comm, sizeof(sample->comm));
	if (!user_mode) {
		sample->flags |= SAMPLE_KERNEL_MODE;
		bytes = bpf_get_stack(ctx, scratch->words, KERNEL_FRAMES_MAX * 8, 0);
		if (bytes > 0)
			sample->n_kernel = scratch->n_words = bytes / 8;
	}
	cs = between ? 0 : read_user_regs(ctx, &scratch->unwind);
	if (cs && !(proc->flags & PROC_STARTING)) {
		unwind_native(scratch, cs);
	} else { /* in the middle of exec or exit: the kernel's frames are all there are */
		sample->flags |= SAMPLE_COMPLETE;
		scratch->walkers_left = 0;
		count(COUNT_NO_USER_REGS);
	}
	scratch__next(ctx, scratch);
	return 0;
}
