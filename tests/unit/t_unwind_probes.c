// SPDX-License-Identifier: GPL-2.0-or-later
/* Native unwinding through return addresses that probes have replaced. */
#include "core/base/util.h"
#include "tests/tap.h"

#include "tests/unit/synthetic.h"

#define AREA                                                                                 \
	0x7fff80000000ULL /* the kernel's page in the process; it begins with the trampoline \
			   */

static struct return_instance instances[3];
static struct uprobe_task utask;
static struct xol_area area = { .vaddr = AREA };
static struct mm_struct mm;

/* Frames 0, 1, 2 have 1, 2 and 1 words; the outermost follows. Frames 1 and 2 return to a probe. */
static void start(void)
{
	static const struct unwind_rule rules[CODE_PAGES] = { RSP(8), RSP(16), RSP(8), END };

	reset();
	set_rules(rules);
	stack[0] = PC(1);
	stack[2] = AREA;
	stack[3] = AREA;
	instances[0] = (struct return_instance) { AT(2), PC(2), &instances[1] };
	instances[1] = (struct return_instance) { AT(3), PC(3), NULL };
	utask = (struct uprobe_task) { .return_instances = &instances[0] };
	mm.uprobes_state.xol_area = &area;
	host.task.mm = &mm;
	host.task.utask = &utask;
}

static bool shows(uint64_t first, uint64_t second, uint64_t third)
{
	return sample__ip(0) == (first | NATIVE_EXACT) && sample__ip(1) == second &&
	       sample__ip(2) == third && host.sample.head.flags & SAMPLE_COMPLETE;
}

static void run_in_kernel(void)
{
	struct bpf_perf_event_data ctx = { 0 };

	host__set_regs(&host.kernel_entry, regs);
	on_sample(&ctx);
}

int main(void)
{
	static const uint8_t trap = 0xcc;

	sampler__open();
	start();
	sampler__run(regs);
	ok(shows(PC(0), PC(1), PC(2)) && sample__ip(3) == PC(3) && host.sample.head.n_native == 4,
	   "two replaced addresses");
	instances[2] = (struct return_instance) { AT(1), PC(0), &instances[0] };
	utask.return_instances = &instances[2];
	sampler__run(regs);
	ok(shows(PC(0), PC(1), PC(2)), "an instance of a call that longjmp has left");
	utask.return_instances = &instances[1];
	sampler__run(regs);
	ok(host.sample.head.n_native == 2 && host.sample.head.stop == COUNT_HIDDEN_PC &&
		   !(host.sample.head.flags & SAMPLE_COMPLETE),
	   "an address that the kernel does not know");

	start();
	regs[UNWIND_REG_PC] = AREA + 1;
	regs[UNWIND_REG_RSP] = AT(3);
	sampler__run(regs);
	ok(shows(PC(2), PC(3), sample__ip(2)) && host.sample.head.n_native == 2,
	   "in the trampoline");
	regs[UNWIND_REG_RSP] = AT(0);
	sampler__run(regs);
	ok(shows(PC(2), PC(3), sample__ip(2)), "in the trampoline, with registers saved below");
	start();
	regs[UNWIND_REG_PC] = AREA + 3 * 128 + 4;
	utask.xol_vaddr = AREA + 3 * 128;
	utask.vaddr = PC(0) - 4;
	sampler__run(regs);
	ok(shows(PC(0), PC(1), PC(2)), "in the copy of a probed instruction");
	start();
	code_bytes[PC(0) - CODE] = trap;
	regs[UNWIND_REG_PC] = PC(0) + 1;
	run_in_kernel();
	ok(shows(PC(0), PC(1), PC(2)), "in the kernel, just behind a probe's trap");
	sampler__run(regs);
	ok(shows(PC(0) + 1, PC(1), PC(2)), "but not if it executes what is there");
	host.task.utask = NULL;
	start();
	utask.return_instances = NULL;
	mm.uprobes_state.xol_area = NULL;
	stack[2] = PC(2);
	stack[3] = PC(3);
	sampler__run(regs);
	ok(shows(PC(0), PC(1), PC(2)), "no probes any more");
	sampler__close();
	return tap__done();
}
