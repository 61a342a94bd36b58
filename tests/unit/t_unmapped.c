// SPDX-License-Identifier: GPL-2.0-or-later
/* Samples whose pc has no mapping: when that is certain, and how often it is reported. */
#include "core/base/util.h"
#include "tests/tap.h"

#include "tests/unit/synthetic.h"

static void test_torn_mappings(void)
{
	struct mapping_list *list = &sampler__mappings()->lists[0];
	const struct code_callers generated_callers = { .start = CODE, .bytes = 64, .walkers = 1 };
	const struct code_callers *callers = &scratch__get()->unwind.mapping.callers;

	reset();
	list->generated_callers = generated_callers;
	list->changes = 1;
	ok(finds(CODE, 0, COUNT_TORN_MAPPINGS), "a list that is being written");
	ok(finds(CODE - 1, 0, COUNT_TORN_MAPPINGS) && finds(JIT + 0x1000, 0, COUNT_TORN_MAPPINGS),
	   "such a list does not prove that there is no mapping");
	list->n = 0;
	ok(finds(CODE, 0, COUNT_TORN_MAPPINGS), "nor if it seems to be empty");
	set_mappings();
	list->generated_callers = generated_callers;
	list->changes = 2;
	ok(finds(CODE, CODE, 0), "one that was");
	ok(finds(CODE - 1, 0, COUNT_UNMAPPED_PC) &&
		   !memcmp(callers, &generated_callers, sizeof(generated_callers)),
	   "then a pc is unmapped, and who calls new code comes from the same list");
}

/* From the end of a mapping until user space publishes the new list. */
static void test_ended_mappings(void)
{
	struct mappings_rec *rec = sampler__mappings();
	const struct code_callers generated_callers = { .start = CODE, .bytes = 64, .walkers = 1 };
	static const _Alignas(MAPLE_NODE_BYTES) char empty_leaf[MAPLE_NODE_BYTES];
	struct unwind_state *u = &scratch__get()->unwind;
	uint32_t version;

	reset();
	rec->lists[0].generated_callers = generated_callers;
	version = mappings__version(SPACE);
	rec->ended = 5;
	memset(u, 0, sizeof(*u));
	ok(finds(CODE, 0, COUNT_ENDED_MAPPING) &&
		   !memcmp(&u->mapping.callers, &generated_callers, sizeof(generated_callers)),
	   "no published mapping is used, and who calls new code is known");
	ok(u->over, "the sample says so");
	ok(finds(CODE - 1, 0, COUNT_UNMAPPED_PC), "what is not published is as before");
	is_int(mappings__version(SPACE), CACHED_NO_VERSION, "no frames of another sample are used");
	u->seek = PC(1);
	u->mapping.start = u->mapping.end = 0;
	ok(word__is_return_address(u, SPACE), "an address may be code, as nothing can be read");
	sampler__memory.mm_mt.ma_root = (void *)((uintptr_t)empty_leaf | MAPLE_LEAF_64 << 3 | 6);
	ok(!word__is_return_address(u, SPACE), "by the kernel's list there is no code");
	rec->ended_read = 5;
	ok(finds(CODE, CODE, 0) && mappings__version(SPACE) == version &&
		   word__is_return_address(u, SPACE),
	   "published again, as it was read after that end");
	sampler__memory.mm_mt.ma_root = NULL;
	rec->ended_read = 4;
	ok(finds(CODE, 0, COUNT_ENDED_MAPPING), "another mapping has ended since it was read");
	rec->ended = rec->ended_read = 0;
}

/* A whole sample ends at the first unknown mapping and is counted, and user space gets a request to
 * read the mappings. */
static void test_sample_of_ended(void)
{
	struct mappings_rec *rec = sampler__mappings();
	uint64_t before = counted(COUNT_ENDED_MAPPING);

	reset();
	host_map__clear(&unmapped_reports);
	rec->ended = 1;
	host.n_unmapped = 0;
	sampler__run(regs);
	is_int(host.sample.head.stop, COUNT_ENDED_MAPPING, "a sample is cut");
	is_int(counted(COUNT_ENDED_MAPPING) - before, 1, "and counted under its own name");
	ok(!(host.sample.head.flags & SAMPLE_COMPLETE) && host.sample.head.flags & SAMPLE_REMAPPED,
	   "it is not complete, and says that no published mapping was used");
	is_int(host.n_unmapped, 1, "user space is to read the mappings");
	rec->ended_read = 1;
	sampler__run(regs);
	ok(host.sample.head.flags & SAMPLE_COMPLETE && !(host.sample.head.flags & SAMPLE_REMAPPED),
	   "complete when it has");
	rec->ended = rec->ended_read = 0;
}

#define TICK_NS 1000000 /* between two samples of one process */

static void run_for(uint64_t time_ns)
{
	host.n_unmapped = host.n_wakeups = 0;
	for (uint64_t end_ns = host.now_ns + time_ns; host.now_ns < end_ns; host.now_ns += TICK_NS)
		sampler__run(regs);
}

static void test_unmapped_reports(void)
{
	uint32_t tgid = TGID;
	struct proc_rec *proc = bpf_map_lookup_elem(&targets, &tgid);
	struct mapping_list *list = &sampler__mappings()->lists[0];

	reset();
	host_map__clear(&unmapped_reports);
	regs[UNWIND_REG_PC] = 0x1234;
	run_for(NSEC_PER_SEC);
	ok(host.n_unmapped > 5 && host.n_unmapped <= UNMAPPED_SHIFT_MAX + 1,
	   "a pc that stays unmapped: %u reports of 1000 samples in the first second",
	   host.n_unmapped);
	ok(host.n_wakeups > 3 && host.n_wakeups <= UNMAPPED_SHIFT_WAKES + 1,
	   "%u of them wake user space", host.n_wakeups);
	run_for(20 * NSEC_PER_SEC);
	ok(host.n_unmapped >= 19 && host.n_unmapped <= 21 && !host.n_wakeups,
	   "later one a second, which waits until user space looks: %u, %u wake it",
	   host.n_unmapped, host.n_wakeups);
	list->changes += 2;
	run_for(10 * TICK_NS);
	ok(host.n_unmapped >= 2 && host.n_wakeups == host.n_unmapped,
	   "other mappings were published: reported at once again, and soon again");
	proc->program++;
	run_for(TICK_NS);
	ok(host.n_unmapped == 1 && host.n_wakeups == 1, "so is another program");
	proc->program--;
}

/* Code of several files whose mappings are unknown. */
static void test_unmapped_files(void)
{
	struct scratch *scratch = scratch__get();
	int n = 0;

	if (!scratch)
		return;
	reset();
	host_map__clear(&unmapped_reports);
	scratch->sample = (struct rec_sample) { .tgid = TGID, .time_ns = host.now_ns };
	host.n_unmapped = host.n_wakeups = 0;
	for (; n < 20; n++, scratch->sample.time_ns += TICK_NS / 100) {
		scratch->unwind.unknown_start = CODE + (n % 10) * PAGE_BYTES;
		unmapped__report(scratch);
	}
	scratch->unwind.unknown_start = 0;
	is_int(host.n_unmapped, 10, "ten unknown files in two samples each: each is reported once");
	is_int(host.n_wakeups, 1, "user space is woken once");
}

int main(void)
{
	sampler__open();
	test_torn_mappings();
	test_ended_mappings();
	test_sample_of_ended();
	test_unmapped_reports();
	test_unmapped_files();
	sampler__close();
	return tap__done();
}
