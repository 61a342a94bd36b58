// SPDX-License-Identifier: GPL-2.0
#include "bpf/off_cpu.bpf.h"

/* Waiting, on kernels without a hook after the return of a thread (sched_exit_tp, Linux 6.16). On
 * these kernels, the scheduler's only hook that runs in the thread itself is the one at its
 * departure.
 *
 * The length of a wait, and so the decision about a sample, is available at the sched_switch to the
 * thread. That hook runs in the previous task, which can read the thread's kernel stack and
 * registers, but not its memory. So the thread's user stack is walked at the first of these places
 * that the thread passes before it runs user code:
 *   - rseq_update, on the way to user space, of each thread that was switched and has registered
 *     restartable sequences: glibc does this for all threads since 2.35 (kernel/rseq.c);
 *   - sys_exit, of other threads that waited in a system call;
 *   - the next sched_switch by which it leaves, as it may wait several times on its way.
 * If a thread runs user code without passing any of these, its sample has the kernel's frames
 * alone.
 *
 * On some machines a few switches are not reported. Those from threads of Firecracker's agent in
 * the guest are missing sometimes, for all tracers. A thread that has returned unseen is noticed at
 * the same places. */

struct wait_over {
	struct worth worth;
	__u64 link;
	__u64 time_ns; /* end of the wait */
	__u64 sp, ip;  /* user registers; if they differ, the thread has run user code since */
	__u32 peer, state;
	__u64 n_kernel;
	__u64 kernel[KERNEL_FRAMES_MAX];
};

/* Completed waits that will be samples, by thread id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* user space: WAITS_OVER_MAX */
	__type(key, __u32);
	__type(value, struct wait_over);
} waits_over SEC(".maps");

/* Memory to construct an entry. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wait_over);
} wait_over_new SEC(".maps");

/* 1: a thread without restartable sequences was seen, whose return only sys_exit reports. 2: user
 * space has reacted. */
__u32 off_cpu_without_rseq = 0;

static __always_inline void note_rseq(struct task_struct *task)
{
	if (!off_cpu_without_rseq &&
	    (!bpf_core_field_exists(task->rseq) || !BPF_CORE_READ(task, rseq)))
		off_cpu_without_rseq = 1;
}

/* Checks the threads of targets before the first sample. */
SEC("?iter/task")
int off_cpu_note_rseq(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u32 tgid;

	if (!task || task->flags & PF_KERNEL_CREATED)
		return 0;
	tgid = task__pid(task);
	if (target__is_any(task, tgid))
		note_rseq(task);
	return 0;
}

/* Stores the wait of a task that is about to run, or of the current task if its return was not
 * seen. */
static __always_inline void note_over(struct waiting_rec *rec, struct task_struct *task, __u32 tid,
				      const struct worth *worth, __u64 now_ns, int seen)
{
	const struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	__u32 key = 0;
	struct wait_over *over = bpf_map_lookup_elem(&wait_over_new, &key);
	long bytes;

	if (!over)
		return;
	over->worth = *worth;
	over->time_ns = now_ns;
	over->link = rec->link;
	over->peer = rec->peer;
	over->state = rec->state;
	bpf_probe_read_kernel(&over->sp, sizeof(over->sp), &regs->rsp);
	bpf_probe_read_kernel(&over->ip, sizeof(over->ip), &regs->rip);
	bytes = seen ? bpf_get_task_stack(task, over->kernel, sizeof(over->kernel), 0) : 0;
	over->n_kernel = bytes > 0 ? (__u64)bytes / 8 : 0;
	if (!seen)
		count(COUNT_RETURN_UNSEEN);
	if (bpf_map_update_elem(&waits_over, &tid, over, BPF_ANY)) {
		count(COUNT_WAITING_FULL);
		rest__return(off_cpu__event(), worth->weight, worth->total);
	} else {
		rec->over = 1;
	}
	note_rseq(task);
}

static __always_inline void come_back(struct waiting_rec *rec, struct task_struct *task, __u32 tid,
				      __u64 now_ns, int seen)
{
	__u32 event = off_cpu__event();
	struct worth worth;
	__u64 off_ns;

	off_ns = __sync_lock_test_and_set(&rec->off_ns, 0);
	rec->on_ns = now_ns;
	if (!event)
		return; /* only the waker is sampled */
	if (!off_cpu__choose(rec, event, off_ns, now_ns, &worth))
		return;
	note_over(rec, task, tid, &worth, now_ns, seen);
	budget__spend(event, now_ns);
}

/* Arguments: bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int
 * prev_state. */
SEC("?tp_btf/sched_switch")
int off_cpu_switch(__u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[2];
	__u32 tid = task__tid(task);
	struct waiting_rec *rec;

	off_cpu__leave((struct task_struct *)ctx[1], ctx[0], ctx[3]);
	rec = bpf_map_lookup_elem(&waiting, &tid);
	if (rec && rec->off_ns)
		come_back(rec, task, tid, off_cpu__now(), 1);
	return 0;
}

static __always_inline int has_moved(const struct wait_over *over, const struct pt_regs *regs)
{
	/* A system call that will be restarted: regs->ip -= 2, arch/x86/kernel/signal.c */
	return regs->rsp != over->sp || over->ip - regs->rip > 2;
}

/* Handles the current thread, whose return no hook has reported. Its running time since the wait
 * gives the time of the return. The scheduler has updated this sum only when the thread leaves the
 * CPU again. Therefore a record by user space about a thread that is returning is unusable, and a
 * record without `exec_ns` does not give the time. */
static __always_inline void come_back_unseen(struct waiting_rec *rec, struct task_struct *task,
					     __u32 tid)
{
	__u64 now_ns = off_cpu__now(), run_ns = task->se.sum_exec_runtime - rec->exec_ns;

	if (run_ns < now_ns - rec->off_ns)
		now_ns -= run_ns;
	come_back(rec, task, tid, now_ns, 0);
}

/* Runs at each of the places above, in the thread itself. At a departure it runs before
 * off_cpu_switch(). */
SEC("?raw_tp")
int off_cpu_over(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tid = task__tid(task), n_kernel;
	struct waiting_rec *rec = bpf_map_lookup_elem(&waiting, &tid);
	struct wait_over *over;
	struct scratch *scratch;

	if (rec && rec->off_ns && rec->exec_ns)
		come_back_unseen(rec, task, tid);
	if (!rec || !rec->over)
		return 0;
	rec->over = 0;
	over = bpf_map_lookup_elem(&waits_over, &tid);
	scratch = over ? sample__begin_of(off_cpu__event(), over->time_ns, &over->worth) : NULL;
	if (scratch) {
		scratch->sample.link = over->link;
		scratch->sample.peer = over->peer;
		scratch->sample.condition.state = over->state;
		scratch->sample.flags |= SAMPLE_KERNEL_MODE;
		n_kernel = over->n_kernel & KERNEL_FRAMES_MAX;
		bpf_probe_read_kernel(scratch->words, n_kernel * 8, over->kernel);
		scratch->sample.n_kernel = scratch->n_words = n_kernel;
		scratch->cs = scratch->has_regs ? read_task_regs(scratch) : 0;
		if (scratch->cs && has_moved(over, &scratch->unwind.kernel_regs)) {
			scratch->cs = 0;
			scratch->sample.condition.syscall = NO_SYSCALL;
			scratch->sample.object = 0;
		}
	}
	bpf_map_delete_elem(&waits_over, &tid);
	if (scratch)
		sample__unwind(ctx, scratch);
	return 0;
}
