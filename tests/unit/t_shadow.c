// SPDX-License-Identifier: GPL-2.0-or-later
/* Shadow stacks, compared with the actual stack of a made-up program: calls, returns, exceptions
 * and lost returns at random, samples anywhere. */
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "tests/unit/shadow_host.h"

#define STEPS	  40000
#define DEPTH_MAX 1400
#define TOP	  0x7fff00000000ULL

/* An active call of the program. */
struct frame {
	uint64_t anchor;
	uint64_t match;
	uint32_t code;
	uint32_t gap; /* bytes below the anchor in which the deepest dead callee may lie */
};

static struct frame frames[DEPTH_MAX];
static uint32_t depth;
static uint64_t last_match;

static struct shadow *shadow;

static uint64_t owner(uint32_t tid)
{
	return SHADOW_OWNER(tid, WALKER_PYTHON, SHADOW_OF_THREAD);
}

static void reset(void)
{
	forget(SHADOW_OWNER(host.task.pid, WALKER_PYTHON, SHADOW_OF_THREAD));
	shadow = shadow__get(owner(host.task.pid));
	shadow->space = SPACE;
	depth = 0;
}

static uint32_t sum(const struct shadow *of)
{
	return of->depth + of->overflow;
}

/* Returns true if the shadow stack equals the program's stack. */
static bool is_true(void)
{
	for (uint32_t i = 0; i < min_of(depth, (uint32_t)SHADOW_DEPTH_MAX); i++) {
		const struct shadow_entry *entry = &shadow->entries[i];

		if (i >= shadow->depth || entry->anchor != frames[i].anchor ||
		    entry->match != frames[i].match || entry->code != frames[i].code)
			return false;
	}
	return sum(shadow) == depth;
}

static bool sample_is_true(uint64_t sp)
{
	uint32_t shown = min_of(depth, (uint32_t)SHADOW_DEPTH_MAX);
	const struct rec_sample *sample = &host.sample.head;

	shadow__sample(sp);
	if (sample->sections[0].n != shown ||
	    !!(sample->flags & SAMPLE_RUNTIME_TRUNCATED) != (depth > shown))
		return false;
	for (uint32_t i = 0; i < shown; i++) {
		const struct frame *frame = &frames[shown - 1 - i];

		if (host.sample.words[2 * i] != FRAME_KEY(frame->code, frame->code + 1) ||
		    host.sample.words[2 * i + 1] != frame->anchor)
			return false;
	}
	return true;
}

static void push(uint64_t anchor, uint64_t match, uint64_t parent, uint32_t flags)
{
	struct frame *frame = &frames[depth++];
	struct shadow_call call = { .anchor = anchor,
				    .match = match,
				    .parent = parent,
				    .code = 1 + match % 50,
				    .index = 2 + match % 50,
				    .flags = flags };

	*frame = (struct frame) { anchor, match, call.code, 4096 };
	shadow__push(shadow, &call);
}

/* --- USDT: several frames may share an anchor, few names --- */

/* Calls a function from the innermost frame, above the dead frames below it. Returns false if there
 * is no room. */
static bool call_plain(void)
{
	struct frame *top = depth ? &frames[depth - 1] : NULL;
	uint64_t anchor = top ? top->anchor : TOP;

	if (top && top->gap < 32)
		return false;
	if (!top || any_below(3))
		anchor -= 16 + any_below(top ? top->gap - 24 : 4096) / 16 * 16;
	push(anchor, 1 + any_below(5), 0, 0);
	return true;
}

/* Leaves frames without visible returns, down to one with another anchor. */
static void throw(void)
{
	uint32_t n = 1 + any_below(5);
	uint64_t highest;

	if (depth <= n)
		return;
	depth -= n;
	highest = frames[depth].anchor;
	while (depth && frames[depth - 1].anchor == highest)
		depth--;
	if (depth)
		frames[depth - 1].gap =
			min_of((uint64_t)frames[depth - 1].gap, frames[depth - 1].anchor - highest);
}

static void return_plain(void)
{
	const struct frame *frame = &frames[--depth];

	shadow__pop(shadow, frame->anchor, frame->match);
}

/* Runs random steps. @up is the number of calls for each return. */
static void test_plain(const char *what, uint32_t up, bool lost, uint32_t limit)
{
	int bad = 0, bad_samples = 0;

	reset();
	for (int i = 0; i < STEPS; i++) {
		bool dead = false;

		if (depth < limit && any_below(up + 1) && call_plain()) {
		} else if (lost && any_below(8) == 0 && depth < SHADOW_DEPTH_MAX) {
			throw();
			dead = true;
		} else if (depth) {
			return_plain();
		}
		if (!dead && any_below(16))
			bad += !is_true();
		else if (depth)
			bad_samples += !sample_is_true(frames[depth - 1].anchor - 8);
	}
	is_int(bad, 0, "%s: calls and returns", what);
	is_int(bad_samples, 0, "%s: samples", what);
}

/* --- a frame per loop, with given callers: any event may be lost, anywhere --- */

static void test_own(void)
{
	int bad = 0, bad_samples = 0, n_lost = 0;

	reset();
	for (int i = 0; i < STEPS; i++) {
		uint64_t anchor = depth ? frames[depth - 1].anchor : TOP;
		uint32_t what = any_below(8);

		if (depth < 200 && what < 4) {
			push(anchor - 16 * (1 + any_below(64)), ++last_match,
			     depth ? frames[depth - 1].match : 0, ENTRY_OWN_ANCHOR);
		} else if (depth > 1 && what == 4) { /* the next event shows it */
			depth -= 1 + any_below(min_of(depth - 1, 4u));
			n_lost++;
			bad_samples += depth && !sample_is_true(frames[depth - 1].anchor);
			continue;
		} else if (depth > 1) {
			depth--;
			shadow__pop(shadow, frames[depth].anchor, 0);
		} else {
			continue;
		}
		bad += !is_true();
	}
	ok(!bad && n_lost > 1000, "own anchors, %d losses: %d wrong", n_lost, bad);
	is_int(bad_samples, 0, "own anchors: samples at once after a loss");
}

/* --- single cases --- */

static void test_unmatched(void)
{
	uint64_t before = counted(COUNT_SHADOW_UNMATCHED);

	reset();
	shadow__pop(shadow, TOP, 5);
	is_int(shadow->depth, 0, "a return on an empty stack");
	push(TOP, 5, 0, 0);
	push(TOP - 100, 6, 0, 0);
	shadow__pop(shadow, TOP - 200, 6);
	shadow__pop(shadow, TOP - 100, 5);
	shadow__pop(shadow, TOP - 50, 6);
	is_int(shadow->depth, 1, "returns that fit nothing, but prove one entry dead");
	shadow__pop(shadow, TOP + (1ULL << 32), 5);
	shadow__pop(shadow, TOP - (1ULL << 32), 5);
	is_int(shadow->depth, 1, "returns on stacks far away");
	is_int(counted(COUNT_SHADOW_UNMATCHED) - before, 6, "all counted");
	push(TOP + (1ULL << 32), 7, 0, 0);
	is_int(shadow->depth, 2, "a call far away ends nothing");
	shadow__sample(TOP + (1ULL << 32) - 8);
	is_int(host.sample.head.sections[0].n, 2, "nor does a sample there");
}

static void test_signal_stack(void)
{
	struct pt_regs regs = { .rsp = TOP - (1 << 20) };

	host.task.sas_ss_sp = TOP - (2 << 20);
	host.task.sas_ss_size = 2 << 20;
	ok(probe__owner(&regs, &(struct probe_rec) { .runtime = WALKER_PYTHON }) ==
		   SHADOW_OWNER(1000, WALKER_PYTHON, SHADOW_OF_SIGNALS),
	   "on the signal stack");
	reset();
	push(TOP + 100, 1, 0, 0);
	shadow = shadow__get(SHADOW_OWNER(1000, WALKER_PYTHON, SHADOW_OF_SIGNALS));
	push(TOP - 100, 2, 0, 0);
	push(TOP - 300, 3, 0, 0);
	shadow__sample(TOP - 200);
	ok(host.sample.head.sections[0].n == 2 && host.sample.words[1] == TOP - 100 &&
		   host.sample.words[3] == TOP + 100,
	   "what the signal interrupted lies outside of the live calls of its handler");
	host.task.sas_ss_size = 0;
	shadow__sample(TOP + 8);
	is_int(host.sample.head.sections[0].n, 1, "not on it any more");
	shadow_on_exit(&host.task);
	ok(!shadow__find(owner(1000)) && !shadow->owner, "both are freed when the thread ends");
}

/* Calls that two runtimes report do not end each other, at any addresses. */
static void test_runtimes(void)
{
	const struct rec_sample *sample = &host.sample.head;
	struct shadow *of_ruby = shadow__get(SHADOW_OWNER(1000, WALKER_RUBY, SHADOW_OF_THREAD));
	struct shadow *of_python;

	reset();
	of_python = shadow;
	push(TOP - 100, 1, 0, 0);
	push(TOP - 300, 2, 0, 0);
	shadow = of_ruby;
	shadow->flags = SHADOW_PARTIAL;
	push(TOP - 200, 3, 0, 0);
	shadow__pop(of_python, TOP - 300, 2);
	shadow__sample(TOP - 1000);
	ok(sample->n_sections == 2 && sample->sections[0].n == 1 &&
		   sample->sections[0].walker == WALKER_PYTHON &&
		   sample->sections[0].flags == SECTION_PROBED && host.sample.words[1] == TOP - 100,
	   "a section of one runtime");
	ok(sample->sections[1].n == 1 && sample->sections[1].walker == WALKER_RUBY &&
		   sample->sections[1].flags == (SECTION_PROBED | SECTION_BROKEN) &&
		   host.sample.words[3] == TOP - 200 && sample->flags == SAMPLE_RUNTIME_BROKEN,
	   "and one of the other, which is known to lack calls");
	shadow_on_exit(&host.task);
	ok(!of_python->owner && !of_ruby->owner, "both are freed when the thread ends");
}

/* Returns thread @n of those from 1000 on whose stack begins at the same slot. */
static uint32_t neighbour(int n)
{
	uint32_t tid = 1000, home = SHADOW_HOME(owner(tid)) % SHADOWS;

	while (n) {
		tid++;
		n -= SHADOW_HOME(owner(tid)) % SHADOWS == home;
	}
	return tid;
}

static void test_tasks(void)
{
	struct task_struct child = { .pid = 2000, .tgid = 2000 };
	uint64_t full = counted(COUNT_SHADOW_NO_MEMORY);
	struct shadow *copied;
	int n = 0;

	reset();
	for (uint32_t i = 0; i < 10; i++)
		push(TOP - 100 * i, i + 1, 0, 0);
	child.tgid = host.task.tgid;
	shadow_on_fork(&host.task, &child);
	ok(!shadow__find(owner(2000)), "a new thread has no stack");
	child.tgid = 2000;
	shadow_on_fork(&host.task, &child);
	copied = shadow__find(owner(2000));
	ok(copied && copied->depth == 10 && copied->entries[9].anchor == TOP - 900 &&
		   copied->entries[9].flags & ENTRY_SEEDED && copied->flags & SHADOW_COPIED,
	   "a child has its parent's");
	shadow_on_exec(&child, 2000, NULL);
	ok(!shadow__find(owner(2000)) && shadow__find(owner(1000)), "exec clears it");
	while (n < 100 && shadow__get(owner(neighbour(n))))
		n++;
	ok(n == SHADOW_SLOTS && counted(COUNT_SHADOW_NO_MEMORY) == full + 1,
	   "no more than %d stacks that begin at one slot", n);
	while (n--) {
		child.pid = neighbour(n);
		shadow_on_exit(&child);
	}
	for (n = 0; n < SHADOWS * 6 / 10 && shadow__get(owner(5000 + n % 200 + n / 200 * SHADOWS));)
		n++;
	ok(n == SHADOWS * 6 / 10, "threads' numbers in a row crowd nowhere: %d", n);
	while (n--) {
		child.pid = 5000 + n % 200 + n / 200 * SHADOWS;
		shadow_on_exit(&child);
	}
	shadow__sample(TOP - 1000);
	ok(!host.sample.head.sections[0].n && host.sample.head.flags & SAMPLE_RUNTIME_BROKEN,
	   "a thread that no probe has hit in is not known to have no calls");
}

/* --- a sample between any two instructions --- */

#define STEPPED_OPS 300

static void run_stepped(void)
{
	raise(SIGSTOP);
	for (int i = 0; i < STEPPED_OPS; i++) {
		if (depth < 6 && (!depth || any_below(2)))
			push(TOP - 64 * (depth + 1), 1 + any_below(1000), 0, ENTRY_OWN_ANCHOR);
		else
			return_plain();
	}
	_exit(0);
}

/* Returns true if each entry in use is consistent in itself, and with its place. */
static bool is_whole(const struct shadow *seen)
{
	for (uint32_t i = 0; i < seen->depth && i < 8; i++) {
		const struct shadow_entry *entry = &seen->entries[i];

		if (entry->anchor != TOP - 64 * (i + 1) || entry->code != 1 + entry->match % 50 ||
		    entry->index != entry->code + 1 || entry->flags != ENTRY_OWN_ANCHOR)
			return false;
	}
	return seen->depth < 8;
}

static void test_interrupted(void)
{
	const size_t size = offsetof(struct shadow, entries[8]);
	struct shadow *seen = calloc(1, sizeof(*seen));
	struct iovec local = { seen, size }, remote = { NULL, size };
	int status, bad = 0, n = 0;
	pid_t pid;

	reset();
	memset(shadow->entries, 0xee, sizeof(shadow->entries));
	remote.iov_base = shadow;
	pid = fork();
	if (!pid)
		run_stepped();
	waitpid(pid, &status, WUNTRACED);
	if (ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_EXITKILL) != 0) {
		tap__skip("ptrace is not permitted", "samples between instructions");
		kill(pid, SIGKILL);
	} else {
		kill(pid, SIGCONT);
		ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
		while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
			bad += process_vm_readv(pid, &local, 1, &remote, 1, 0) != (ssize_t)size ||
			       !is_whole(seen);
			n++;
			ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL);
		}
		ok(!bad && n > 20 * STEPPED_OPS, "stopped at %d instructions: %d times torn", n,
		   bad);
	}
	free(seen);
}

/* --- calls --- */

#define PATHS 64

/* Returns the statistics of @node. */
static const struct call_stat *stat_of(uint32_t node)
{
	return bpf_map_lookup_elem(&call_stats, &node);
}

static void test_calls(void)
{
	uint64_t n_calls = 0, n_lost = 0, n_returns = 0, total_ns = 0, calls = 0, lost = 0;
	uint64_t returns = 0, outer_ns = 0, limit;
	int bad = 0;

	host__set(&cfg_calls, 1);
	reset();
	for (int i = 0; i < STEPS; i++) {
		host.now_ns += any_below(100);
		if (depth < 8 && any_below(2) == 0) {
			uint64_t at = depth ? frames[depth - 1].anchor : TOP;

			push(at - 16 * (1 + any_below(4)), 1 + any_below(3), 0, 0);
			frames[depth - 1].match = host.now_ns;
			shadow->entries[depth - 1].match = host.now_ns;
			n_calls++;
		} else if (depth) {
			uint32_t n = any_below(4) ? 1 : 1 + any_below(depth);

			n_lost += n - 1;
			n_returns++;
			depth -= n;
			shadow__pop(shadow, frames[depth].anchor, frames[depth].match);
			if (!depth)
				total_ns += host.now_ns - frames[0].match;
		}
		for (uint32_t j = 1; j < shadow->depth; j++)
			bad += stat_of(shadow->entries[j].node)->parent !=
			       shadow->entries[j - 1].node;
	}
	for (uint32_t i = 1; i <= call_nodes_used; i++) {
		const struct call_stat *stat = stat_of(i);

		calls += stat->calls;
		lost += stat->lost_returns;
		returns += stat->returns;
		outer_ns += stat->parent ? 0 : stat->inclusive_ns;
	}
	ok(!bad, "each call is in a node under its caller's");
	ok(calls == n_calls && lost == n_lost && returns == n_returns,
	   "%llu calls, %llu of which ended unseen", (unsigned long long)calls,
	   (unsigned long long)lost);
	is_int(outer_ns, total_ns, "time of the outermost calls");

	reset();
	calls = 0;
	for (uint32_t i = 0; i < SHADOW_DEPTH_MAX + 300; i++)
		push(TOP - 16 * i, 48, 0, 0);
	limit = stat_of(shadow->entries[SHADOW_DEPTH_MAX - 1].node)->calls;
	is_int(limit, 1, "a node for each level of a recursion");
	for (uint32_t i = 1; i <= call_nodes_used; i++)
		calls += stat_of(i)->calls;
	is_int(calls - n_calls, SHADOW_DEPTH_MAX + 300, "calls beyond the depth are counted");
	forget(SHADOW_OWNER(1000, WALKER_PYTHON, SHADOW_OF_THREAD));
}

static void test_full_tree(void)
{
	uint64_t all = 0, unplaced = 0, before = 0;

	for (uint32_t i = 1; i <= call_nodes_used; i++)
		before += stat_of(i)->calls;
	for (int round = 0; round < 10; round++) {
		reset();
		for (uint32_t i = 0; i < SHADOW_DEPTH_MAX; i++)
			push(TOP - 16 * i, any_below(50), 0, 0);
	}
	for (uint32_t i = 1; i <= call_nodes_used; i++) {
		all += stat_of(i)->calls;
		if (stat_of(i)->parent == CALL_UNPLACED)
			unplaced += stat_of(i)->calls;
	}
	ok(all - before == 10 * SHADOW_DEPTH_MAX && unplaced > 5000 && call_nodes_used < NODES &&
		   counted(COUNT_CALL_TREE_FULL) > 0 && counted(COUNT_CALL_LOST) == 0,
	   "a full tree: %llu calls are counted by function only", (unsigned long long)unplaced);
	host__set(&cfg_calls, 0);
}

int main(void)
{
	shadow__open();
	test_plain("all is seen", 2, false, 300);
	test_plain("returns are lost", 2, true, 300);
	test_plain("deeper than the limit", 10, false, DEPTH_MAX);
	test_own();
	test_unmatched();
	test_signal_stack();
	test_runtimes();
	test_tasks();
	test_interrupted();
	test_calls();
	test_full_tree();
	host__done();
	return tap__done();
}
