// SPDX-License-Identifier: GPL-2.0-or-later
/* Children of the test program stop with a fixed stack, and report the places of their frames. */
#include <sys/mman.h>

#include "tests/stopped.h"

#define SIGNAL_STACK_SIZE (1 << 16)

/* --- code of the children --- */

static struct marks {
	uint64_t low; /* required start of the copy; 0: the stack pointer */
	unsigned int n;
	uint64_t cfas[FRAMES_MAX]; /* outermost first */
} * marks;			   /* shared with the child */

#define MARK() (marks->cfas[marks->n++] = (uintptr_t)__builtin_dwarf_cfa())

/* Work after the call, so that the call does not become a jump. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

static __attribute__((noinline)) void stop_here(void)
{
	MARK();
	raise(SIGSTOP);
	KEEP_FRAME();
}

static __attribute__((noinline)) void recurse(int depth)
{
	char room[24];

	__asm__ volatile("" : : "r"(room) : "memory");
	MARK();
	if (depth)
		recurse(depth - 1);
	else
		stop_here();
	KEEP_FRAME();
}

static void run_recursion(void)
{
	recurse(60);
	KEEP_FRAME();
}

static int compare(const void *a, const void *b)
{
	MARK();
	stop_here();
	return *(const int *)a - *(const int *)b;
}

static void run_callback(void)
{
	int numbers[] = { 3, 1, 2 };

	MARK();
	qsort(numbers, ARRAY_SIZE(numbers), sizeof(numbers[0]), compare);
	KEEP_FRAME();
}

static void on_signal(int signo)
{
	(void)signo;
	MARK();
	recurse(3);
	KEEP_FRAME();
}

static __attribute__((noinline)) void get_signal(int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };

	MARK();
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	KEEP_FRAME();
}

static void run_signal(void)
{
	get_signal(0);
	KEEP_FRAME();
}

static __attribute__((noinline)) void touch_stack(void)
{
	volatile char room[4 * SIGNAL_STACK_SIZE];

	for (size_t i = 0; i < sizeof(room); i += 4096)
		room[i] = 0;
}

static __attribute__((noinline)) void get_signal_on(char *stack)
{
	stack_t alternate = { .ss_sp = stack, .ss_size = SIGNAL_STACK_SIZE };

	sigaltstack(&alternate, NULL);
	get_signal(SA_ONSTACK);
	KEEP_FRAME();
}

static void run_signal_stack_below(void)
{
	touch_stack();
	marks->low = (uintptr_t)__builtin_dwarf_cfa() - 3 * SIGNAL_STACK_SIZE;
	get_signal_on((char *)(uintptr_t)marks->low);
	KEEP_FRAME();
}

static void run_signal_stack_above(void)
{
	char room[SIGNAL_STACK_SIZE];

	touch_stack();
	marks->low = (uintptr_t)__builtin_dwarf_cfa() - 3 * SIGNAL_STACK_SIZE;
	get_signal_on(room);
	KEEP_FRAME();
}

/* --- children of the test program --- */

static pid_t start_child(void (*run)(void))
{
	pid_t pid;

	memset(marks, 0, sizeof(*marks));
	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		run();
		_exit(0);
	}
	for (;;) {
		int status, signo;

		waitpid(pid, &status, 0);
		if (!WIFSTOPPED(status) || WSTOPSIG(status) == SIGSTOP)
			return pid;
		signo = WSTOPSIG(status);
		ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)signo);
	}
}

static void stop_child(struct target *target)
{
	target__close(target);
	kill(target->pid, SIGKILL);
	waitpid(target->pid, NULL, 0);
}

/* Returns true if every frame that the child marked has its CFA in @stack, in order. */
static bool has_marks(const struct stack *stack)
{
	unsigned int left = marks->n;

	for (int i = 0; i < stack->n && left; i++) {
		if (stack->frames[i].cfa == marks->cfas[left - 1])
			left--;
	}
	return marks->n && !left;
}

static void check_target(struct target *target, const char *name, struct stack *ret)
{
	struct stack want;

	target__unwind(target, ret);
	target__unwind_with_libdwfl(target, &want);
	if (!ok(stack__same(ret, &want), "%s: the frames are libdwfl's", name))
		target__show_difference(target, ret, &want);
	ok(ret->complete && want.complete, "%s: complete", name);
	is_int(ret->frames[ret->n - 1].cfa, 0, "%s: no CFA of the outermost frame", name);
	ok(has_marks(ret), "%s: CFAs of the %u frames that tell theirs", name, marks->n);
}

static void test_children(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{ "recursion", run_recursion },
		{ "callback", run_callback },
		{ "signal", run_signal },
		{ "signal stack below", run_signal_stack_below },
		{ "signal stack above", run_signal_stack_above },
	};
	static struct stack stack;
	struct target target;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (ok(target__open(&target, start_child(cases[i].run)), "%s: open",
		       cases[i].name)) {
			target__snapshot(&target, marks->low);
			check_target(&target, cases[i].name, &stack);
		}
		stop_child(&target);
	}
}

/* --- damaged copies --- */

static void test_cut(struct target *target, const struct stack *full)
{
	struct unwind_copy_input whole = target->input;
	bool ends_right = true, ends_early = true;
	static struct stack got;

	for (int i = 0; i + 2 < full->n; i++) {
		target->input.stack_size = full->frames[i].cfa - whole.stack_start;
		target__unwind(target, &got);
		ends_right &=
			got.n == i + 2 && stack__count_equal(&got, full) == got.n && !got.complete;
		target->input.stack_size--;
		target__unwind(target, &got);
		ends_early &=
			got.n == i + 1 && stack__count_equal(&got, full) == got.n && !got.complete;
	}
	ok(ends_right, "a copy that ends behind a return address is good up to it");
	ok(ends_early, "a copy that ends in a return address is not good for it");
	target->input.stack_size = 0;
	target__unwind(target, &got);
	ok(got.n == 1 && !got.complete && !got.frames[0].cfa, "no copy: one frame");
	target->input = whole;
}

static bool same_frames(const struct unwind_copy_frame *a, const struct unwind_copy_frame *b, int n)
{
	for (int i = 0; i < n; i++)
		if (a[i].ip != b[i].ip || a[i].cfa != b[i].cfa || a[i].exact != b[i].exact)
			return false;
	return true;
}

static void test_bounds(struct target *target, const struct stack *full)
{
	struct unwind_copy_frame frames[10];
	bool complete = true;
	static struct stack got;

	is_int(unwind_copy__run(target->copy, &target->input, frames, 10, &complete), 10,
	       "as many frames as there is room");
	ok(!complete && same_frames(frames, full->frames, 10), "they are the first");
	unwind_copy__flush(target->copy);
	target__unwind(target, &got);
	ok(got.n == full->n && got.complete == full->complete &&
		   same_frames(got.frames, full->frames, got.n),
	   "the same again after a flush");
}

static void test_unknown_code(struct target *target, const struct stack *full)
{
	struct unwind_copy_input whole = target->input;
	const int caller = 20;
	uint64_t cfa = full->frames[caller - 1].cfa;
	static struct stack got;

	/* Code without an image has pushed rbp, and is at the place of a real frame. */
	target->input.regs[16] = 0x1000;
	target->input.regs[UNWIND_REG_RSP] = target->input.regs[UNWIND_REG_RBP] = cfa - 16;
	target__unwind(target, &got);
	ok(!got.complete && got.frames[1].inferred && got.n == full->n - caller + 1 &&
		   got.frames[0].cfa == cfa &&
		   same_frames(got.frames + 1, full->frames + caller, got.n - 1),
	   "code without an image is left through its frame pointer, which is inferred");
	target->input.regs[UNWIND_REG_RBP] = cfa - 24;
	target__unwind(target, &got);
	ok(got.n == 1 && !got.complete, "a frame pointer below the stack pointer is none");
	target->input.regs[UNWIND_REG_RBP] = UINT64_MAX - 3;
	target__unwind(target, &got);
	ok(got.n == 1 && !got.complete, "nor is one outside of the copy");
	target->input = whole;
}

static void test_zero_return(struct target *target, const struct stack *full)
{
	struct unwind_copy_input whole = target->input;
	const int last = 20;
	uint64_t at = full->frames[last].cfa - 8 - whole.stack_start, saved;
	static struct stack got;

	memcpy(&saved, target->stack + at, sizeof(saved));
	memset(target->stack + at, 0, sizeof(saved));
	target__unwind(target, &got);
	ok(got.n == last + 1 && !got.complete, "a return address of 0 proves no end");
	memcpy(target->stack + at, &saved, sizeof(saved));
}

/* Code as of a runtime, whose call frame information does not give the place of the stack. */
static void test_own_code(struct target *target, const struct stack *full)
{
	const int caller = 20;
	static struct stack got;
	uint64_t bias = 0;

	target__find_image(target, full->frames[caller].ip, &bias);
	target->own_start = full->frames[caller].ip - 1 - bias;
	target->own_end = target->own_start + 1;
	unwind_copy__free(target->copy);
	target->copy = NULL;
	unwind_copy__new(target__find_place, target, &target->copy);
	target__unwind(target, &got);
	ok(got.n <= caller + 1 && got.frames[got.n - 1].ip == full->frames[caller].ip &&
		   !got.complete,
	   "code that a runtime has rules for is not left by call frame information");
	target->own_start = target->own_end = 0;
	unwind_copy__free(target->copy);
	target->copy = NULL;
	unwind_copy__new(target__find_place, target, &target->copy);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void test_garbage(struct target *target, const struct stack *full)
{
	struct unwind_copy_input whole = target->input;
	uint64_t state = 88172645463325252;
	size_t size = full->frames[full->n - 2].cfa - whole.stack_start;
	static struct stack got;
	bool good = true;

	for (int i = 0; i < 20000; i++) {
		uint64_t word = next_random(&state);

		/* Valid addresses lead the unwinder further than random ones. */
		if (word & 1)
			word = full->frames[word / 2 % full->n].ip + (word >> 40) % 64;
		else if (word & 2)
			word = whole.stack_start + word / 4 % size;
		if (word & 4)
			target->input.regs[next_random(&state) % UNWIND_REGS] = word;
		else
			memcpy(target->stack + next_random(&state) % size, &word, sizeof(word));
		target__unwind(target, &got);
		good &= got.n >= 1 && got.n <= FRAMES_MAX;
		if (i % 20 == 0)
			target__snapshot(target, 0);
	}
	ok(good, "garbage ends within bounds");
	for (int i = 0; i < UNWIND_REGS; i++)
		target->input.regs[i] = next_random(&state);
	target__unwind(target, &got);
	ok(got.n == 1 && !got.complete, "garbage in all registers: one frame");
	target__snapshot(target, 0);
}

static void test_copies(void)
{
	static struct stack full;
	struct target target;

	if (ok(target__open(&target, start_child(run_recursion)), "open")) {
		target__snapshot(&target, 0);
		target__unwind(&target, &full);
		if (ok(full.complete && full.n > 60, "the whole stack is known")) {
			test_cut(&target, &full);
			test_bounds(&target, &full);
			test_unknown_code(&target, &full);
			test_zero_return(&target, &full);
			test_own_code(&target, &full);
			test_garbage(&target, &full);
		}
	}
	stop_child(&target);
}

int main(void)
{
	marks = mmap(NULL, sizeof(*marks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	test_children();
	test_copies();
	return tap__done();
}
