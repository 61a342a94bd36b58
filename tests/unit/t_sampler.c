// SPDX-License-Identifier: GPL-2.0-or-later
/* The sampler around the unwinder: mappings, invalid tables, interrupted kernel code, stack copies,
 * PID namespaces. */
#include "core/base/util.h"
#include "tests/tap.h"

#include "tests/unit/synthetic.h"

#define ROUNDS 10000

static uint32_t any(void)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005 + 1442695040888963407; /* generator of Knuth's MMIX */
	return seed >> 32;
}

static uint32_t any_below(uint32_t n)
{
	return any() % n;
}

/* --- mappings --- */

/* Mapping i is half of 64 KiB. */
static void test_mapping_search(uint32_t n)
{
	struct mapping_list *list = &sampler__mappings()->lists[1];
	int bad = 0;

	list->n = n;
	for (uint32_t i = 0; i < n; i++)
		list->mappings[i] = (struct mapping_rec) { .start = (i + 1) << 16,
							   .end = ((i + 1) << 16) + 0x8000 };
	for (uint64_t i = 0; i < n; i++) {
		uint64_t start = (i + 1) << 16;

		bad += !finds(start - 1, 0, COUNT_UNMAPPED_PC);
		bad += !finds(start, start, 0) || !finds(start + 0x7fff, start, 0);
		bad += !finds(start + 0x8000, 0, COUNT_UNMAPPED_PC);
	}
	is_int(bad, 0, "%u mappings: each is found, and nothing between them", n);
}

static void test_mappings(void)
{
	struct mappings_rec *rec = sampler__mappings();
	uint32_t tgid = TGID;
	struct proc_rec *proc = bpf_map_lookup_elem(&targets, &tgid);

	rec->active = 1;
	test_mapping_search(1);
	test_mapping_search(2);
	test_mapping_search(1023);
	test_mapping_search(MAPPINGS_MAX);
	rec->lists[1].n = 0xffffffff;
	ok(finds(0x7fffffffffff, rec->lists[1].mappings[MAPPINGS_MAX - 1].start,
		 COUNT_UNMAPPED_PC) ||
		   finds(0x7fffffffffff, 0, COUNT_UNMAPPED_PC),
	   "more mappings than there can be");
	rec->lists[1].n = 0;
	rec->lists[0].n = 1;
	rec->lists[0].mappings[0] = (struct mapping_rec) { .start = 1, .end = -1 };
	ok(finds(0x10000, 0, COUNT_UNMAPPED_PC), "no mappings in the list that is active");
	rec->active = 0;
	ok(finds(0x10000, 1, 0), "the other list is active");

	reset();
	regs[UNWIND_REG_PC] = 0x1234;
	sampler__run(regs);
	ok(host.sample.head.stop == COUNT_UNMAPPED_PC && host.n_unmapped == 1,
	   "a pc outside of all mappings is reported");
	proc->space = SPACE + 1;
	sampler__run(regs);
	ok(host.sample.head.stop == COUNT_NO_MAPPINGS && host.n_unmapped == 1,
	   "a process without mappings is, too, but not at once");
	host.now_ns += UNMAPPED_PAUSE_NS;
	sampler__run(regs);
	ok(host.sample.head.stop == COUNT_NO_MAPPINGS && host.n_unmapped == 2, "so a little later");
	proc->space = SPACE;
}

#define MANY_RULES 100000 /* more than 16 bits can hold */

/* A page with a row at each of its first n bytes, for each n. */
static void test_row_search(void)
{
	uint32_t words[4 + UNWIND_PAGE_BYTES] = { 0 }, base = CHUNK_WORDS - 100;
	struct scratch *scratch = scratch__get();
	int bad = 0;

	for (uint32_t n = 1; scratch && n <= UNWIND_PAGE_BYTES; n++) {
		words[1] = n;
		for (uint32_t i = 0; i < n; i++)
			words[4 + i] = UNWIND_ROW(i, i + MANY_RULES);
		sampler__put_words(base, words, ARRAY_SIZE(words));
		for (int at = 0; at < UNWIND_PAGE_BYTES; at++)
			bad += rule__find(&scratch->unwind, base, base + 4, at) !=
			       min_of(at, (int)n - 1) + MANY_RULES;
	}
	ok(scratch && !bad, "each of up to 256 rows of a page is found");
}

/* --- hostile tables, registers and stacks --- */

static uint64_t any_address(void)
{
	switch (any_below(6)) {
	case 0:
		return (uint64_t)any() << 32 | any();
	case 1:
		return 0;
	case 2:
		return JIT + any_below(64);
	case 3:
		return PC(any_below(CODE_PAGES));
	default:
		return AT(any_below(STACK_WORDS)) + (any_below(16) ? 0 : any_below(8));
	}
}

static void make_rules(void)
{
	struct unwind_rule rules[CODE_PAGES];

	for (int i = 0; i < CODE_PAGES; i++) {
		rules[i] = (struct unwind_rule) {
			.kind = any_below(3) ? UNWIND_REG : any_below(UNWIND_UNSUPPORTED + 1),
			.reg = any_below(3) ? UNWIND_REG_RSP : any_below(20),
			.flags = any_below(3) ? 0 : any(),
			.cfa_off = any_below(20) ? 8 * any_below(20) : any(),
			.cfa_add = any_below(20) ? 8 * any_below(20) : any(),
			.fp_words = any_below(3) ? UNWIND_WORDS_LOST : (int)any_below(8) - 4,
			.aux_words = any_below(3) ? -(int)any_below(4) : (int)any(),
		};
	}
	set_rules(rules);
}

/* Makes words of the table, or the table's place, invalid. */
static void break_table(void)
{
	struct mapping_rec *rec = &sampler__mappings()->lists[0].mappings[0];
	uint32_t words[ROWS_AT + CODE_PAGES];

	switch (any_below(4)) {
	case 0:
		for (size_t i = 0; i < ARRAY_SIZE(words); i++)
			words[i] = any() >> any_below(32);
		sampler__put_words(CHUNK_WORDS - 16, words, ARRAY_SIZE(words));
		break;
	case 1:
		rec->base = any() >> any_below(32);
		break;
	case 2:
		rec->rules_at = any() >> any_below(32);
		rec->rows_at = any() >> any_below(32);
		break;
	case 3:
		rec->n_pages = any();
		rec->vaddr_start = any();
		rec->bias = any_address();
		break;
	}
}

static bool sample_is_sane(void)
{
	const struct rec_sample *sample = &host.sample.head;
	bool complete = sample->flags & SAMPLE_COMPLETE;

	return sample->n_native >= 1 && sample->n_native <= NATIVE_FRAMES_MAX &&
	       complete == !sample->stop && sample->stop < COUNTERS_N &&
	       host.sample_bytes == sizeof(*sample) + 16 * sample->n_native;
}

static void test_hostile(void)
{
	static const enum counter reasons[] = { COUNT_NONE,	   COUNT_UNMAPPED_PC,
						COUNT_NO_RULE,	   COUNT_UNSUPPORTED,
						COUNT_TABLE,	   COUNT_STACK_READ,
						COUNT_NOT_GROWING, COUNT_LOST_REG };
	uint32_t seen[COUNTERS_N] = { 0 };
	int bad = 0;

	for (int round = 0; round < ROUNDS; round++) {
		reset();
		make_rules();
		if (any_below(2))
			break_table();
		for (int i = 0; i < STACK_WORDS; i++)
			stack[i] = any_address();
		for (int i = 0; i < UNWIND_REGS; i++)
			regs[i] = any_address();
		regs[UNWIND_REG_PC] = PC(any_below(CODE_PAGES));
		if (any_below(8))
			regs[UNWIND_REG_RSP] = AT(any_below(STACK_WORDS / 2));
		host.now_ns += 100000;
		sampler__run(regs);
		bad += !sample_is_sane();
		seen[host.sample.head.stop]++;
	}
	is_int(bad, 0, "hostile tables and stacks: all samples are sane");
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		ok(seen[reasons[i]] > 10, "some stopped by reason %d: %u", reasons[i],
		   seen[reasons[i]]);
}

/* Random words in all pages of the first level and all rules, in two whole chunks. */
static void test_random_words(void)
{
	uint32_t *words = malloc(2 * sizeof(struct chunk));
	int bad = 0;

	reset();
	for (uint32_t i = 0; i < 2 * CHUNK_WORDS; i++)
		words[i] = any() >> (any_below(2) ? any_below(32) : 14);
	sampler__put_words(0, words, 2 * CHUNK_WORDS);
	free(words);
	sampler__mappings()->lists[0].mappings[0].n_pages = 0xffffffff;
	for (int i = 0; i < STACK_WORDS; i++)
		stack[i] = CODE + any_below(0x1000);
	for (int round = 0; round < ROUNDS; round++) {
		struct mapping_rec *rec = &sampler__mappings()->lists[0].mappings[0];

		rec->base = any_below(2 * CHUNK_WORDS);
		rec->rules_at = any_below(CHUNK_WORDS);
		rec->rows_at = any_below(CHUNK_WORDS);
		regs[UNWIND_REG_PC] = CODE + any_below(0x1000);
		sampler__run(regs);
		bad += !sample_is_sane();
	}
	is_int(bad, 0, "random words in all of the table arena");
}

/* --- modes, and the interrupted context --- */

static void test_modes(void)
{
	static const struct unwind_rule rules[CODE_PAGES] = { RSP(8), END };
	uint32_t samples, stacks;

	reset();
	set_rules(rules);
	regs[UNWIND_REG_RBP] = AT(4);
	stack[0] = PC(1);
	memcpy(&stack[4], (uint64_t[]) { 0, PC(3) }, 16);
	sampler__run(regs);
	ok(sample__ip(1) == PC(1) && !host.n_stacks, "tables where there are some, and no copy");
	host__set(&cfg_unwind, UNWIND_MODE_FP);
	sampler__run(regs);
	ok(NATIVE_ADDRESS(sample__ip(1)) == PC(3) &&
		   NATIVE_EVIDENCE(sample__ip(1)) == EVIDENCE_INFERRED &&
		   !(host.sample.head.flags & SAMPLE_COMPLETE) && !host.n_stacks,
	   "frame pointers only, without a proof");
	host__set(&cfg_unwind, UNWIND_MODE_COPY);
	sampler__run(regs);
	ok(sample__ip(1) == PC(1) && host.sample.head.flags & SAMPLE_HAS_STACK,
	   "tables, and a copy of the stack");
	is_int(host.stack.size, sizeof(stack), "all of the stack");
	ok(host.stack.start == STACK && memcmp(host.stack.data, stack, sizeof(stack)) == 0 &&
		   memcmp(host.stack.regs, regs, sizeof(regs)) == 0 &&
		   host.stack_bytes == REC_STACK_HEADER + sizeof(stack),
	   "registers and words of the copy");
	regs[UNWIND_REG_RSP] += PAGE_BYTES + 512 + 3;
	sampler__run(regs);
	ok(host.stack.start == STACK + PAGE_BYTES + 512 + 3 - 128 &&
		   host.stack.size == 7 * PAGE_BYTES - 512 - 3 + 128,
	   "the copy begins below the stack pointer");
	host.ring_full = true;
	sampler__run(regs);
	ok(counted(COUNT_COPY_FAILED) == 1 && counted(COUNT_RING_FULL) == 1, "the ring is full");
	host.ring_full = false;
	host.ring_used = HOST_RING_BYTES / 2 + 1;
	samples = host.n_samples;
	stacks = host.n_stacks;
	sampler__run(regs);
	ok(host.n_samples == samples + 1 && !(host.sample.head.flags & SAMPLE_HAS_STACK) &&
		   host.n_stacks == stacks && counted(COUNT_COPY_FAILED) == 2,
	   "more than half full: a sample, and no copy");
	host.ring_used = 0;
}

static void test_copies_are_limited(void)
{
	reset();
	regs[UNWIND_REG_PC] = JIT; /* and no frame pointer */
	host.now_ns += 2 * COPIES_WINDOW_NS;
	for (int i = 0; i < 2 * AUTO_COPIES_MAX; i++)
		sampler__run(regs);
	is_int(host.n_stacks, AUTO_COPIES_MAX, "so many copies in one window");
	ok(!(host.sample.head.flags & SAMPLE_HAS_STACK), "the last sample has none");
	host.now_ns += 2 * COPIES_WINDOW_NS;
	sampler__run(regs);
	is_int(host.n_stacks, AUTO_COPIES_MAX + 1, "one more later");
}

/* Copies of stacks that are cut only because user space is late have a lower priority than copies
 * of stacks without rules. */
static void test_copies_at_the_start(void)
{
	uint32_t tgid = TGID;
	struct proc_rec *proc = bpf_map_lookup_elem(&targets, &tgid);

	reset();
	regs[UNWIND_REG_PC] = JIT;
	host.now_ns += 2 * COPIES_WINDOW_NS;
	host.ring_used = HOST_RING_BYTES / 4 + 1;
	sampler__run(regs);
	is_int(host.n_stacks, 0, "a quarter of the ring is full: no copy of a stack that is cut");
	proc->space = SPACE + 1;
	sampler__run(regs);
	is_int(host.n_stacks, 1, "but of one of which nothing else is known");
	proc->space = SPACE;
	host.ring_used = 0;
}

static void run_with(uint16_t interrupted, uint16_t entered_from)
{
	struct bpf_perf_event_data ctx = { 0 };

	host__set_regs(&ctx.regs, regs);
	ctx.regs.cs = interrupted;
	host__set_regs(&host.kernel_entry, regs);
	host.kernel_entry.cs = entered_from;
	on_sample(&ctx);
}

/* An exec that is not reported to user space yet overwrites the data on the process. */
static void test_other_memory(void)
{
	const struct rec_sample *sample = &host.sample.head;
	struct mm_struct other = sampler__memory;
	uint32_t tgid = TGID;
	struct proc_rec *proc = bpf_map_lookup_elem(&targets, &tgid);
	uint32_t program = proc->program;

	reset();
	run_with(0x33, 0);
	ok(proc->mm == (uintptr_t)&sampler__memory && proc->space == SPACE &&
		   proc->program == program,
	   "whose memory it is becomes known with a sample");
	host.task.mm = &other;
	host.task.in_execve = 1;
	run_with(0x10, 0x33);
	ok(!sample->n_native && sample->flags & SAMPLE_COMPLETE && proc->space == SPACE,
	   "other memory within an exec: the kernel's frames alone");
	host.task.in_execve = 0;
	run_with(0x33, 0);
	ok(!proc->space && !proc->walkers && proc->program != program &&
		   proc->mm == (uintptr_t)&other && sample->stop == COUNT_NO_MAPPINGS,
	   "other memory behind it: another program, of which nothing is known");
	host.task.mm = &sampler__memory;
	*proc = (struct proc_rec) { .space = SPACE };
}

static void test_kernel_mode(void)
{
	const struct rec_sample *sample = &host.sample.head;
	uint32_t tgid = TGID, n;
	struct proc_rec *proc = bpf_map_lookup_elem(&targets, &tgid);

	reset();
	run_with(0x10, 0x33);
	ok(sample->n_kernel == 3 && host.sample.words[0] == (uint64_t)-3 && sample->n_native == 1 &&
		   sample__ip(0) == (PC(0) | NATIVE_EXACT) &&
		   sample->flags == (SAMPLE_COMPLETE | SAMPLE_KERNEL_MODE),
	   "kernel frames, then those of the system call");
	run_with(0x10, 0x10);
	ok(sample->n_kernel == 3 && !sample->n_native && sample->flags & SAMPLE_COMPLETE,
	   "a worker that never was in user space");
	host.task.flags = PF_KTHREAD;
	run_with(0x10, 0x33);
	ok(!sample->n_native, "a kernel thread");
	host.task.flags = 0;
	run_with(0x23, 0);
	is_int(sample->stop, COUNT_COMPAT, "32-bit code");
	proc->flags = PROC_STARTING;
	n = host.n_samples;
	run_with(0x33, 0);
	run_with(0x10, 0x33);
	is_int(host.n_samples, n, "no sample of what will execute the command");
	host.task.in_execve = 1;
	run_with(0x10, 0x33);
	ok(host.n_samples == n + 1 && !sample->n_native, "but of its exec");
	host.task.in_execve = 0;
	proc->flags = 0;
	host.task.tgid++;
	run_with(0x33, 0);
	is_int(host.n_samples, n + 1, "no sample of other processes");
	host.task.tgid--;
}

static void test_pid_namespace(void)
{
	struct pid_namespace outer = { { 1 } }, inner = { { 2 } };
	struct pid numbers = { 1, { { 5000, &outer }, { TGID, &inner } } };
	uint32_t n = host.n_samples;

	reset();
	host.task.thread_pid = &numbers;
	host__set(&cfg_pidns_ino, 2);
	host.task.tgid = host.task.pid = 5000;
	sampler__run(regs);
	ok(host.n_samples == n + 1 && host.sample.head.tgid == TGID && host.sample.head.tid == TGID,
	   "known by its number in the namespace");
	numbers.level = 0;
	sampler__run(regs);
	host.task.thread_pid = NULL;
	sampler__run(regs);
	is_int(host.n_samples, n + 1, "not in the namespace");
	host__set(&cfg_pidns_ino, 0);
	host.task.tgid = host.task.pid = TGID;
}

static void test_beginning_and_end(void)
{
	uint32_t n;

	reset();
	host.now_ns = 1000;
	n = host.n_samples;
	sample_until_ns = 1001;
	sampler__run(regs);
	is_int(host.n_samples, n + 1, "a sample just before the end");
	sample_until_ns = 1000;
	sampler__run(regs);
	is_int(host.n_samples, n + 1, "none at the end");
	sample_until_ns = 0;
	sampler__run(regs);
	is_int(host.n_samples, n + 2, "where there is none");
	sample_from_ns = 1001;
	sampler__run(regs);
	is_int(host.n_samples, n + 2, "none before the beginning");
	sample_from_ns = 1000;
	sampler__run(regs);
	is_int(host.n_samples, n + 3, "a sample at the beginning");
	sample_from_ns = 0;
}

int main(void)
{
	sampler__open();
	test_mappings();
	test_row_search();
	test_hostile();
	test_random_words();
	test_modes();
	test_copies_are_limited();
	test_copies_at_the_start();
	test_other_memory();
	test_kernel_mode();
	test_pid_namespace();
	test_beginning_and_end();
	sampler__close();
	return tap__done();
}
