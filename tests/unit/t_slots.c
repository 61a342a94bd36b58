// SPDX-License-Identifier: GPL-2.0-or-later
/* Scratch memory is claimed. Ticks interrupt programs of uprobes and tracepoints, and tasks
 * alternate on one CPU within programs of uprobes, at every place where that is possible. */
#include "core/base/util.h"
#include "tests/tap.h"

#include "tests/unit/synthetic.h"

#define TASKS	     6
#define FRAMES	     6
#define FRAME_BYTES  1024 /* more than one read returns: each frame can be interrupted */
#define TASK_WORDS   (STACK_WORDS / 8)
#define FIRST_UPROBE 4
#define UPROBE_SLOTS 4
_Static_assert(FRAMES *FRAME_BYTES <= TASK_WORDS * 8 * 2, "room");

static uint64_t stacks[TASKS][2 * TASK_WORDS];

static struct host_sample seen[64];
static int n_seen;

static void keep(void *ctx, const void *data, size_t size)
{
	(void)ctx;
	if (*(const uint32_t *)data == REC_SAMPLE && n_seen < (int)ARRAY_SIZE(seen))
		memcpy(&seen[n_seen++], data, size);
}

static uint64_t base_of(int task)
{
	return STACK + 0x100000ULL * task;
}

/* Gives each task frames of other code, on a stack of its own. */
static void set_tasks(void)
{
	struct unwind_rule rules[CODE_PAGES];

	reset();
	for (int i = 0; i < CODE_PAGES; i++)
		rules[i] = (struct unwind_rule)RSP(FRAME_BYTES);
	rules[CODE_PAGES - 1] = (struct unwind_rule)END;
	set_rules(rules);
	host.n_ranges = 0;
	for (int task = 0; task < TASKS; task++) {
		for (int i = 1; i <= FRAMES; i++)
			stacks[task][i * FRAME_BYTES / 8 - 1] =
				i < FRAMES ? PC(task) + i : PC(CODE_PAGES - 1);
		host__add_range(base_of(task), stacks[task], sizeof(stacks[task]));
	}
	for (uint32_t i = 0; i < COUNTERS_N; i++)
		memset(bpf_map_lookup_elem(&counters, &i), 0, 8);
	n_seen = 0;
}

enum type { TICK, TRACEPOINT, UPROBE };

/* Triggers one occurrence in the task, on the only CPU. The interrupted program continues
 * afterwards. */
static void trigger(enum type type, int task)
{
	static const uint32_t first[] = { 0, 1, FIRST_UPROBE };
	static const uint32_t end[] = { 1, FIRST_UPROBE, FIRST_UPROBE + UPROBE_SLOTS };
	struct task_struct before = host.task;
	struct pt_regs entry_before = host.kernel_entry;
	uint32_t first_before = cfg_slot_first, end_before = cfg_slot_end;
	struct bpf_perf_event_data tick = { 0 };

	host.task.pid = TGID + task;
	regs[UNWIND_REG_PC] = PC(task);
	regs[UNWIND_REG_RSP] = base_of(task);
	host__set_regs(&host.kernel_entry, regs);
	host__set(&cfg_slot_first, first[type]);
	host__set(&cfg_slot_end, end[type]);
	host.cookie = 1 + type;
	if (type == TICK)
		on_sample(&tick); /* regs.cs 0: it interrupts the kernel */
	else if (type == TRACEPOINT)
		on_tracepoint_2(NULL);
	else
		on_uprobe(&host.kernel_entry);
	host.task = before;
	host.kernel_entry = entry_before;
	host__set(&cfg_slot_first, first_before);
	host__set(&cfg_slot_end, end_before);
}

static bool is_right(const struct host_sample *sample)
{
	int task = (int)(sample->head.tid - TGID);
	const uint64_t *native = sample->words + sample->head.n_kernel;
	bool right = task >= 0 && task < TASKS && sample->head.n_native == FRAMES + 1 &&
		     sample->head.flags & SAMPLE_COMPLETE;

	for (int i = 0; right && i < FRAMES; i++)
		right = (native[2 * i] & ~NATIVE_EXACT) == PC(task) + i &&
			native[2 * i + 1] == base_of(task) + (i + 1) * FRAME_BYTES;
	return right;
}

static int count_right(uint32_t event)
{
	int right = 0;

	for (int i = 0; i < n_seen; i++)
		right += seen[i].head.event == event && is_right(&seen[i]);
	return right;
}

static int count_owned(void)
{
	uint32_t zero = 0;
	const struct cpu_slots *here = bpf_map_lookup_elem(&slot_owners, &zero);
	int n = 0;

	for (int i = 0; i < SLOTS_MAX; i++)
		n += here->owners[i] != 0;
	return n;
}

/* --- interrupting programs --- */

static int reads_left; /* number of reads before the interrupt */
static void (*what)(void);

static void when(void)
{
	if (--reads_left > 0)
		host.interrupt = when;
	else
		what();
}

static void at_read(int n, void (*fn)(void))
{
	reads_left = n;
	what = fn;
	host.interrupt = when;
}

static void tick_here(void)
{
	trigger(TICK, 0);
}

static void tracepoint_here(void)
{
	trigger(TRACEPOINT, 0);
}

static int depth, deepest;

static void next_task(void)
{
	if (++depth >= deepest)
		return;
	host.interrupt = next_task;
	trigger(UPROBE, depth);
}

static void test_tick_in(enum type type, const char *name)
{
	int bad = 0;

	for (int n = 1; n <= FRAMES; n++) {
		set_tasks();
		at_read(n, tick_here);
		trigger(type, 0);
		bad += n_seen != 2 || count_right(1 + TICK) != 1 || count_right(1 + type) != 1 ||
		       count_owned();
	}
	is_int(bad, 0, "a tick in a program of a %s: both stacks are right, wherever it comes",
	       name);
}

static void test_tracepoint_in_tracepoint(void)
{
	int bad = 0;

	for (int n = 1; n <= FRAMES; n++) {
		set_tasks();
		at_read(n, tracepoint_here);
		trigger(TRACEPOINT, 0);
		bad += n_seen != 2 || count_right(1 + TRACEPOINT) != 2 || count_owned();
	}
	is_int(bad, 0, "a tracepoint in a program of another, in one task");
}

static void test_tasks_alternate(void)
{
	for (deepest = 1; deepest <= UPROBE_SLOTS; deepest++) {
		set_tasks();
		depth = 0;
		host.interrupt = next_task;
		trigger(UPROBE, 0);
		ok(n_seen == deepest && count_right(1 + UPROBE) == deepest && !count_owned(),
		   "%d tasks within programs of uprobes: each has its own stack", deepest);
	}
	set_tasks();
	deepest = TASKS;
	depth = 0;
	host.interrupt = next_task;
	trigger(UPROBE, 0);
	host.interrupt = NULL;
	is_int(count_right(1 + UPROBE), UPROBE_SLOTS, "%d tasks: so many have scratch memory",
	       TASKS);
	is_int(counted(COUNT_SCRATCH), TASKS - UPROBE_SLOTS, "the others are counted losses");
	is_int(count_owned(), 0, "and no slot stays behind");
}

/* All slots of uprobes are claimed; ticks still have their own. */
static void test_tick_while_full(void)
{
	uint32_t zero = 0;
	struct cpu_slots *here = bpf_map_lookup_elem(&slot_owners, &zero);

	set_tasks();
	for (int i = 0; i < UPROBE_SLOTS; i++)
		here->owners[FIRST_UPROBE + i] = 4711 + i;
	trigger(UPROBE, 0);
	trigger(TICK, 5);
	is_int(counted(COUNT_SCRATCH), 1, "full: a uprobe is lost");
	is_int(count_right(1 + TICK), 1, "full: a tick is not");
	memset(here, 0, sizeof(*here));
}

static void test_period(void)
{
	set_tasks();
	host__set((const volatile uint32_t *)&cfg_periods[1 + UPROBE], 3);
	for (int i = 0; i < 10; i++)
		trigger(UPROBE, 0);
	is_int(n_seen, 3, "of ten occurrences with a period of three, three are sampled");
	ok(seen[0].head.value == 1 && seen[0].head.weight == 3 && seen[0].head.total == 3,
	   "each of which stands for three");
	is_int(counted(COUNT_SAMPLES), 3, "and no more are counted as samples");
	host__set((const volatile uint32_t *)&cfg_periods[1 + UPROBE], 0);
}

int main(void)
{
	sampler__open();
	host__set(&cfg_slots, SLOTS_MAX);
	host.on_record = keep;
	test_tick_in(UPROBE, "uprobe");
	test_tick_in(TRACEPOINT, "tracepoint");
	test_tracepoint_in_tracepoint();
	test_tasks_alternate();
	test_tick_while_full();
	test_period();
	sampler__close();
	return tap__done();
}
