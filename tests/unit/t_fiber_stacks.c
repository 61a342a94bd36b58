// SPDX-License-Identifier: GPL-2.0-or-later
/* Lanes of a thread that switches stacks by itself. They are found again, distinguished from newer
 * stacks at the same address, and dropped. Also ends of calls that exceptions leave. */
#include "tests/unit/shadow_host.h"

#define STACK(n)      (0x7f0000000000ULL + (n)*0x100000ULL)
#define SP(n)	      (STACK(n) + 0x8000)
#define FRAMES_PLENTY 1000

static struct shadow *head;

static int change(uint32_t stack, uint64_t state, uint64_t frames)
{
	struct fiber_place place = {
		.stack = STACK(stack), .state = state, .frames = frames, .sp = SP(stack)
	};

	return fiber__change(head, &place);
}

static void push(uint64_t anchor, uint64_t match, uint32_t code, uint32_t flags)
{
	struct shadow_call call = {
		.anchor = anchor, .match = match, .code = code, .flags = flags
	};

	shadow__push(fiber__current(head), &call);
}

static void begin(void)
{
	head = shadow__get(SHADOW_OWNER(host.task.pid, WALKER_PYTHON, SHADOW_OF_THREAD));
	shadow__begin(head, SPACE);
}

static uint32_t slots_in_use(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < SHADOWS; i++)
		n += ((struct shadow *)bpf_map_lookup_elem(&shadows, &i))->owner != 0;
	return n;
}

static void test_switching(void)
{
	int first = change(0, 100, FRAMES_PLENTY), second;

	push(SP(0), 1, 11, 0);
	ok(first == 1 && fiber__current(head) == head, "the first stack is the thread's own");
	ok(fiber__has(head, SP(0)) && !fiber__has(head, SP(1)), "where it is is remembered");
	second = change(1, 101, FRAMES_PLENTY);
	push(SP(1), 2, 12, 0);
	ok(second == 1 && fiber__current(head) != head && fiber__current(head)->depth == 1,
	   "another has a shadow stack of its own");
	ok(change(0, 100, FRAMES_PLENTY) == 0 && head->depth == 1, "back: its calls are there");
	ok(change(1, 101, FRAMES_PLENTY) == 0 && fiber__current(head)->depth == 1,
	   "and the other's");
	ok(change(1, 102, FRAMES_PLENTY) == 1 && !fiber__current(head)->depth,
	   "another fiber on the same stack begins with none");
	push(SP(1), 2, 12, 0);
	push(SP(1), 3, 12, 0);
	ok(change(1, 102, 1) == 1 && !fiber__current(head)->depth,
	   "so does one with fewer frames than calls");
	change(0, 100, FRAMES_PLENTY);
	ok(slots_in_use() == 1, "a fiber stack without calls is given up");
}

static void test_many(void)
{
	uint32_t n = 3 * SHADOW_FIBERS_MAX, with_calls = 0;

	for (uint32_t i = 1; i < n; i++) {
		if (change(i, 200 + i, FRAMES_PLENTY) >= 0)
			push(SP(i), i, 20 + i, 0);
	}
	ok(slots_in_use() <= SHADOWS && slots_in_use() > SHADOWS / 4,
	   "no more fiber stacks than there is room for");
	ok(change(n - 1, 200 + n - 1, FRAMES_PLENTY) == 0, "the last one is known");
	ok(change(1, 201, FRAMES_PLENTY) == 1, "the first one is forgotten");
	push(SP(1), 1, 21, 0);
	ok(change(0, 100, FRAMES_PLENTY) == 0 && head->depth == 1, "but not the thread's own");
	for (uint32_t i = 0; i < SHADOW_FIBERS_MAX; i++)
		with_calls += fiber__is_used(head, i);
	ok(with_calls == slots_in_use(), "one shadow stack each");
}

/* A sample shows the lane whose outermost call is nearest above. */
static void test_samples(void)
{
	change(0, 100, FRAMES_PLENTY);
	shadow__sample(SP(0) - 64);
	ok(host.sample.head.sections[0].n == 1 && FRAME_KEY_CODE(host.sample.words[0]) == 11,
	   "a sample shows the current fiber stack");
	shadow__sample(SP(1) - 0x6000);
	ok(host.sample.head.sections[0].n == 1 && FRAME_KEY_CODE(host.sample.words[0]) == 21,
	   "or the one that it was taken on");
}

static void test_processes(void)
{
	struct task_struct child = { .pid = 2000, .tgid = 2000 };
	struct shadow *copied;
	uint32_t before = slots_in_use();

	for (uint32_t i = 2; i < SHADOWS; i++) /* free slots for the child */
		if (i < SHADOW_FIBERS_MAX && fiber__is_used(head, i))
			forget(fiber__owner(head, i)), head->fibers_used &= ~(1U << i);
	before = slots_in_use();
	shadow_on_fork(&host.task, &child);
	copied = shadow__find(SHADOW_OWNER(2000, WALKER_PYTHON, SHADOW_OF_THREAD));
	ok(copied && slots_in_use() == 2 * before, "a child gets all fiber stacks");
	shadow_on_exit(&child);
	ok(slots_in_use() == before, "and lets go of them");
	shadow_on_exit(&host.task);
	ok(slots_in_use() == 0, "so does the thread itself");
}

static void test_unwinding(void)
{
	uint64_t before = counted(COUNT_SHADOW_UNMATCHED);

	begin();
	change(0, 100, FRAMES_PLENTY);
	push(SP(0), 1, 11, 0);
	push(SP(0) - 100, 7, 12, ENTRY_OWN_ANCHOR);
	push(SP(0) - 200, 2, 13, 0);
	push(SP(0) - 300, 7, 14, ENTRY_OWN_ANCHOR);
	shadow__unwind(head, SP(0) - 200, 7);
	ok(head->depth == 3, "an exception leaves the innermost call");
	shadow__unwind(head, SP(0) - 200, 7);
	ok(head->depth == 3 && counted(COUNT_SHADOW_UNMATCHED) == before + 1,
	   "none that is around a live one");
	shadow__unwind(head, SP(0), 7);
	ok(head->depth == 1, "with what is dead inside it");
	shadow__unwind(head, SP(0), 8);
	ok(head->depth == 1 && counted(COUNT_SHADOW_UNMATCHED) == before + 2,
	   "nothing that it does not name");
}

int main(void)
{
	shadow__open();
	begin();
	test_switching();
	test_many();
	test_samples();
	test_processes();
	test_unwinding();
	host__done();
	return tap__done();
}
