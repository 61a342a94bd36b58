// SPDX-License-Identifier: GPL-2.0-or-later
#include "bpf/host/programs.h"

#include "bpf/host/shim.h"

#include "bpf/sampler.bpf.c"

extern const volatile uint32_t cfg_suspended;

void host_unwind__open(void);
void host_python__open(void);
void host_ruby__open(void);
void host_jvm__open(void);
void host_perl__open(void);
void host_php__open(void);
void host_node__open(void);
void host_go__open(void);

void host_programs__open(void)
{
	HOST_ARRAY(slot_owners, 1);
	HOST_ARRAY(scratches, 1);
	HOST_ARRAY(counters, COUNTERS_N);
	HOST_ARRAY(filters, FILTERS_N);
	HOST_HASH(targets, 1024);
	host_unwind__open();
	host_python__open();
	host_ruby__open();
	host_jvm__open();
	host_perl__open();
	host_php__open();
	host_node__open();
	host_go__open();
	host__set(&cfg_tableless, ~0U);
	last_code = 0;
}

void host_programs__number_codes_from(uint32_t last)
{
	last_code = last;
}

uint32_t host_programs__codes(void)
{
	return last_code;
}

void host_programs__look_at_locks(void)
{
	host__set(&cfg_locks, 1);
}

/* The target's memory has no mappings of the kernel, because all mappings of a recorded target are
 * published. */
static struct mm_struct memory;
static struct pid numbers; /* in the outermost PID namespace; equivalent to braid's namespace */

static struct xol_area area;
static struct uprobe_task utask;
static struct return_instance instances[WAITING_RETURNS_MAX];

/* Sets the return probes of the thread in the kernel's form. */
static void set_returns(const struct host_thread *thread)
{
	uint32_t n =
		thread->n_returns < WAITING_RETURNS_MAX ? thread->n_returns : WAITING_RETURNS_MAX;

	area.vaddr = thread->trampoline;
	memory.uprobes_state.xol_area = thread->trampoline ? &area : NULL;
	utask = (struct uprobe_task) { .return_instances = n ? instances : NULL };
	for (uint32_t i = 0; i < n; i++)
		instances[i] =
			(struct return_instance) { thread->returns[i][0], thread->returns[i][1],
						   i + 1 < n ? &instances[i + 1] : NULL };
	host.task.utask = thread->trampoline ? &utask : NULL;
}

void host_programs__sample(const struct host_thread *thread, uint64_t now_ns)
{
	const struct host_map *reports = host_map__named("unmapped_reports");
	struct bpf_perf_event_data ctx = { 0 };

	host.now_ns = now_ns;
	host.cookie = 1; /* the event */
	host.task = (struct task_struct) {
		.pid = thread->tid,
		.tgid = thread->tgid,
		.mm = &memory,
		.group_leader = &host.task,
		.thread.fsbase = thread->fs_base,
		.thread_pid = thread->own_ids ? &numbers : NULL,
	};
	memory.start_stack = thread->start_stack;
	set_returns(thread);
	memset(host.comm, 0, sizeof(host.comm));
	strncpy(host.comm, thread->name, sizeof(host.comm) - 1);
	host__set_regs(&ctx.regs, thread->regs);
	host.kernel_entry = ctx.regs;
	host.kernel_entry.orig_rax = thread->syscall;
	host.kernel = thread->kernel;
	host.n_kernel = thread->n_kernel;
	host__set(&cfg_suspended, thread->suspended);
	if (reports) /* the caller reads mappings again for each report */
		host_map__clear(reports->map);
	if (thread->kernel)
		ctx.regs.cs = 0x10; /* __KERNEL_CS */
	on_sample(&ctx);
}
