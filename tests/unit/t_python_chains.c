// SPDX-License-Identifier: GPL-2.0-or-later
/* The CPython walker's way along the frames of each version: complete stacks, stacks that change
 * during the walk, and impossible stacks. */
#include "tests/unit/python_synthetic.h"

/* outer() calls middle(), which calls inner(): in one loop, from 3.11 on. */
static void call_three(void)
{
	enter();
	call("outer");
	call("middle");
	call("inner");
}

/* Returns true if frame @i has the address of loop @loop. */
static bool anchored(size_t i, size_t loop)
{
	return frames[i].address == loops[loop];
}

static void test_chains(void)
{
	int64_t lost = 0;
	int bad = 0;

	for (enum counter counter = COUNT_FIRST_LOSS; counter < COUNTERS_N; counter++)
		lost += counted(counter);
	reset(minor);
	run();
	ok(walked("", 0), "3.%u: no frames", minor);
	is_int(host.sample.head.sections[0].walker, WALKER_PYTHON, "3.%u: the walker's slot",
	       minor);
	call_three();
	run();
	ok(walked("|;outer;middle;inner", 0), "3.%u: one loop", minor);
	is_int(n_frames, 3, "3.%u: three frames", minor);
	for (size_t i = 0; i < 3; i++)
		bad += !anchored(i, 0) || FRAME_KEY_INDEX(frames[i].key) != INDEX;
	is_int(bad, 0, "3.%u: stack addresses and instructions", minor);
	enter();
	call("callback");
	run();
	ok(walked("|;outer;middle;inner|;callback", 0), "3.%u: two loops", minor);
	ok(anchored(0, 1) && anchored(1, 0) && anchored(3, 0), "3.%u: each with its address",
	   minor);
	enter();
	call("key");
	call("helper");
	run();
	ok(walked("|;outer;middle;inner|;callback|;key;helper", 0), "3.%u: three loops", minor);
	ok(anchored(0, 2) && anchored(1, 2) && anchored(2, 1) && anchored(5, 0),
	   "3.%u: each with its address", minor);
	for (enum counter counter = COUNT_FIRST_LOSS; counter < COUNTERS_N; counter++)
		lost -= counted(counter);
	is_int(lost, 0, "3.%u: nothing was lost", minor);
}

/* Owners from FRAME_OWNED_BY_CSTACK of 3.14 on are shims, too; smaller ones are frames. */
static void test_owners(void)
{
	uint64_t at;

	reset(minor);
	call_three();
	at = frame + o->frame_owner;
	for (unsigned int owner = 0; owner < PYTHON_OWNER_SHIM; owner++) {
		*(uint8_t *)at = owner;
		run();
		ok(walked("|;outer;middle;inner", 0), "3.%u: a frame with owner %u", minor, owner);
	}
	enter();
	*(uint8_t *)(frame + o->frame_owner) = PYTHON_OWNER_SHIM + 1;
	call("callback");
	run();
	ok(walked("|;outer;middle;inner|;callback", 0), "3.%u: a shim with owner 4", minor);
}

/* The interpreter's own code that calls a class, with the class's __init__ inside. */
static void test_hidden(void)
{
	uint64_t code;

	reset(minor);
	enter();
	call("outer");
	code = make_code("__init__");
	put(code + o->code_file, get(code + o->code_name));
	call_code(code);
	call("A.__init__");
	run();
	ok(walked("|;outer;__init__;A.__init__", 0), "3.%u: code that has a line is not hidden",
	   minor);
	host.now_ns += CODE_OBJECT_RECHECK_NS;
	put32(code + o->code_first_line, 0);
	run();
	ok(walked("|;outer;A.__init__", 0), "3.%u: the interpreter's own code is", minor);
	ok(n_frames == 2 && anchored(0, 0) && anchored(1, 0), "3.%u: the others are as they were",
	   minor);
}

/* --- torn states --- */

/* A new loop: its C frame is linked, but still has earlier contents. */
static void test_left_over(void)
{
	uint64_t outside;

	reset(minor);
	call_three();
	enter();
	call("callback");
	outside = cframe;
	set_cframe(make_cframe(0, outside));
	run();
	ok(walked("|;outer;middle;inner|;callback", 0), "3.%u: a C frame without a frame", minor);
	ok(anchored(0, 1) && anchored(3, 0), "3.%u: the others keep their addresses", minor);
	frame = 0;
	enter();
	call("old");
	put(cframe + o->cframe_current_frame + 8, outside);
	run();
	ok(walked("|;outer;middle;inner|;callback", 0),
	   "3.%u: frame left over from an earlier call", minor);
	call("older");
	call("oldest");
	run();
	ok(walked("|;outer;middle;inner|;callback", 0), "3.%u: three frames left over", minor);
	set_frame(make_frame(make_code("alone"), 0, 0));
	run();
	ok(walked("|;outer;middle;inner|;callback", 0),
	   "3.%u: one that was never linked to its caller", minor);
	set_frame(make_frame(make_code("astray"), NOWHERE, 0));
	run();
	ok(walked("|;outer;middle;inner|;callback", 0), "3.%u: one that is linked to garbage",
	   minor);
	set_frame(make_frame(NOWHERE, 0, 1));
	run();
	ok(walked("|;outer;middle;inner|;callback", 0), "3.%u: one without a code object", minor);
	ok(anchored(0, 1) && anchored(3, 0) && n_frames == 4,
	   "3.%u: nothing is left of it but the others' addresses", minor);
	put(outside + o->cframe_current_frame, NOWHERE);
	ok(loses(COUNT_WALK_READ, 1, "", BROKEN), "3.%u: twice in a row is not for real", minor);
}

/* Tests a linked C frame with garbage. Native frames: the loop that begins, C functions, the loop
 * that called them, and others. @what is the value of both words of the C frame of the first loop.
 */
static void test_not_filled_in(uint64_t what)
{
	uint64_t inside, outside;

	reset(minor);
	call_three();
	inside = make(NATIVE_BYTES); /* stacks grow downwards */
	enter();
	call("callback");
	outside = cframe;
	put(inside + o->cframe_current_frame, what);
	put(inside + o->cframe_current_frame + 8, what);
	set_cframe(inside);
	proc.loops[0] = (struct python_loop) { 0x10000, 0x8000 };
	proc.loops[1] = (struct python_loop) { 0x5000, 0x100 }; /* its cold part */
	walker__attach(&proc);
	push_native(0x10020 | NATIVE_EXACT, inside + 40);
	push_native(0x20000, outside + 16);
	push_native(0x18001, outside + 24); /* just behind the loop */
	push_native(0x5100, outside + 40);  /* behind a call at its very end */
	push_native(0x10100, outside + 400);
	run();
	ok(walked("|;outer;middle;inner|;callback", SAMPLE_COMPLETE),
	   "3.%u: a C frame with garbage, %#llx, in a loop that begins", minor,
	   (unsigned long long)what);
	ok(anchored(0, 1) && anchored(3, 0), "3.%u: the others keep their addresses", minor);
	n_native = 3;
	run();
	ok(walked("", SAMPLE_COMPLETE), "3.%u: it is the thread's first loop, %#llx", minor,
	   (unsigned long long)what);
	native_cut = true;
	run();
	ok(walked("", BROKEN), "3.%u: who knows, if the native frames are cut, %#llx", minor,
	   (unsigned long long)what);
	native_cut = false;
	n_native = 0;
}

static bool is_inferred(void)
{
	const struct rec_sample *sample = &host.sample.head;

	return sample->n_sections == 1 && sample->sections[0].flags & SECTION_INFERRED;
}

/* A thread that switches stacks. While a loop begins, the next native loop is not its caller's. The
 * linked C frame is used, as it runs the frame's caller, but without proof. */
static void test_switched(void)
{
	uint64_t inside, outside;

	reset(minor);
	call_three();
	outside = cframe;
	inside = make(NATIVE_BYTES);
	enter();
	call("callback");
	put(inside + o->cframe_current_frame, frame);
	put(inside + o->cframe_current_frame + 8, outside);
	proc.loops[0] = (struct python_loop) { 0x10000, 0x8000 };
	walker__attach(&proc);
	push_native(0x10020 | NATIVE_EXACT, inside + 40);
	push_native(0x10100, cframe + 40);
	set_cframe(inside);
	run();
	ok(walked("|;outer;middle;inner|;callback", SAMPLE_COMPLETE),
	   "3.%u: the linked C frame, not that of the next native loop", minor);
	ok(is_inferred(), "3.%u: its frames are inferred", minor);
	n_native = 0;
	push_native(0x10020 | NATIVE_EXACT, inside + 40);
	push_native(0x10100, outside + 40);
	run();
	ok(walked("|;outer;middle;inner|;callback", SAMPLE_COMPLETE) && !is_inferred(),
	   "3.%u: nothing is inferred where both are one", minor);
	n_native = 0;
}

/* --- a frame that is being linked to its caller --- */

enum { X86_RAX, X86_RDX = 2, X86_RBP = 5, X86_R12 = 12, X86_R15 = 15 };

/* The interrupted instruction is @at bytes before a store of one register to the link in the frame
 * that the other register points to. */
static void interrupt_before_store(uint32_t base, uint64_t to, uint32_t reg, uint64_t value,
				   size_t at)
{
	struct scratch *scratch = scratch__get();
	uint64_t pc = make(256);
	uint8_t store[] = { 0x48 | reg >> 3 << 2 | base >> 3, 0x89,
			    0x40 | (reg & 7) << 3 | (base & 7), o->frame_previous, 0 };

	memset((void *)pc, 0x90, 256);
	if ((base & 7) == 4) {
		store[3] = 0x24;
		store[4] = o->frame_previous;
	}
	memcpy((void *)(pc + at), store, 4 + ((base & 7) == 4));
	memset(scratch->interrupted, 0, sizeof(scratch->interrupted));
	scratch->interrupted[UNWIND_REG_OF_X86(base)] = to;
	scratch->interrupted[UNWIND_REG_OF_X86(reg)] = value;
	proc.loops[1] = (struct python_loop) { pc, 64 };
	walker__attach(&proc);
	n_native = 0;
	push_native(pc | NATIVE_EXACT, 0x20000);
}

/* The loop has made `called` the current frame. The frame's link is a leftover that leads to a
 * finished generator, which has no caller, like every outermost frame. */
static void test_linking(void)
{
	static const uint32_t bases[] = { X86_RDX, X86_RBP, X86_R12, X86_R15 };
	uint64_t caller, done, called;
	bool begun = with_cframes() || with_shims();

	reset(minor);
	call_three();
	caller = frame;
	done = make_frame(make_code("done"), 0, begun);
	call("called");
	called = frame;
	for (size_t i = 0; i < ARRAY_SIZE(bases); i++) {
		put(called + o->frame_previous, done);
		interrupt_before_store(bases[i], called, X86_RAX, caller, 60);
		run();
		ok(walked("|;outer;middle;inner;called", SAMPLE_COMPLETE) && is_inferred(),
		   "3.%u: its caller is in a register (the frame in %u)", minor, bases[i]);
		put(called + o->frame_previous, caller);
		run();
		ok(walked("|;outer;middle;inner;called", SAMPLE_COMPLETE) && !is_inferred(),
		   "3.%u: it is linked already (%u)", minor, bases[i]);
	}
	interrupt_before_store(X86_R15, called + 8, X86_RAX, done, 60);
	run();
	ok(walked("|;outer;middle;inner;called", SAMPLE_COMPLETE) && !is_inferred(),
	   "3.%u: another frame is being linked", minor);
	interrupt_before_store(X86_R15, called, X86_RAX, done, 100);
	run();
	ok(walked("|;outer;middle;inner;called", SAMPLE_COMPLETE) && !is_inferred(),
	   "3.%u: the store is far ahead", minor);
	n_native = 0;
	memset(scratch__get()->interrupted, 0, sizeof(scratch__get()->interrupted));
}

static const uint64_t garbage[] = { NOWHERE, 1, 0xdeadbeefdeadbeef, ~0ULL, ~7ULL };

static void test_garbage(uint64_t what)
{
	uint64_t first;

	reset(minor);
	call_three();
	first = cframe;
	if (with_cframes()) {
		set_cframe(make_cframe(what, first));
		run();
		ok(walked("|;outer;middle;inner", 0),
		   "3.%u: garbage in the innermost C frame: %#llx", minor,
		   (unsigned long long)what);
		put(first + o->cframe_current_frame, frame = what);
	} else {
		set_frame(what);
		ok(loses(COUNT_WALK_READ, 1, "", BROKEN),
		   "3.%u: garbage instead of the innermost frame: %#llx", minor,
		   (unsigned long long)what);
	}
	enter();
	call("callback");
	ok(loses(COUNT_WALK_READ, 1, "|;callback", BROKEN), "3.%u: garbage outside it", minor);
}

static void test_broken(void)
{
	uint64_t code;

	/* Frames of older versions are unlinked only if they are the thread's first. */
	reset(minor);
	enter();
	set_frame(make_frame(make_code("f"), 0, 0));
	if (o->chain != PYTHON_CHAIN_OBJECTS)
		ok(loses(COUNT_WALK_READ, 1, with_cframes() ? "" : ";f", BROKEN),
		   "3.%u: a frame that is not linked to its caller yet", minor);
	set_frame(make_frame(make_code("f"), NOWHERE, 0));
	ok(loses(COUNT_WALK_READ, 1, with_cframes() ? "" : ";f", BROKEN),
	   "3.%u: or linked to garbage", minor);

	reset(minor);
	enter();
	call_code(code = make_code("gone"));
	enter();
	call("callback");
	put(code + o->code_name, NOWHERE);
	ok(loses(COUNT_WALK_CODE, 1, "|;?|;callback", 0),
	   "3.%u: a code object outside it that cannot be read", minor);
}

static void test_bad_cframes(void)
{
	reset(minor);
	call_three();
	set_cframe(make_cframe(frame, NOWHERE));
	ok(loses(COUNT_WALK_READ, 1,
		 o->chain == PYTHON_CHAIN_CFRAMES ? "|;outer;middle;inner" : ";outer;middle;inner",
		 BROKEN),
	   "3.%u: the C frame outside cannot be read", minor);
	set_cframe(NOWHERE);
	ok(loses(COUNT_WALK_NO_STATE, 1, "", BROKEN), "3.%u: nor can the innermost", minor);
	set_cframe(0);
	ok(loses(COUNT_WALK_NO_STATE, 1, "", BROKEN), "3.%u: there is none", minor);
}

/* --- long and endless stacks --- */

static void test_cycles(void)
{
	uint64_t before = counted(COUNT_WALK_TRUNCATED);

	reset(minor);
	enter();
	call("f");
	put(frame + o->frame_previous, frame);
	if (o->chain == PYTHON_CHAIN_CFRAMES)
		*(char *)(frame + o->frame_owner) = 0;
	run();
	is_int(host.sample.head.sections[0].n, RUNTIME_FRAMES_MAX,
	       "3.%u: a frame that called itself", minor);
	is_int(host.sample.head.flags, TRUNCATED, "3.%u: such a stack is cut", minor);
	is_int(counted(COUNT_WALK_TRUNCATED) - before, 1, "3.%u: this is counted", minor);

	reset(minor);
	enter();
	call("f");
	if (with_shims()) {
		put(loops[0] + o->frame_previous, loops[0]);
		if (with_cframes())
			put(cframe + o->cframe_current_frame + 8, 0);
		run();
		ok(host.sample.head.flags == TRUNCATED && n_frames == 1,
		   "3.%u: a shim that called itself", minor);
	}
	if (o->chain == PYTHON_CHAIN_CFRAMES) {
		put(frame + o->frame_previous, frame);
		put(cframe + o->cframe_current_frame + 8, cframe);
		run();
		ok(host.sample.head.sections[0].n == RUNTIME_FRAMES_MAX &&
			   host.sample.head.flags == TRUNCATED,
		   "3.%u: a C frame that called itself", minor);
	}
	if (with_cframes()) {
		put(cframe + o->cframe_current_frame + 8, cframe);
		set_frame(NOWHERE);
		ok(loses(COUNT_WALK_READ, 1, "", BROKEN), "3.%u: garbage in it", minor);
	}
}

/* Tests a stack of @n frames. @left_over frames precede it, which are walked and then dropped. */
static void test_depth(size_t n, size_t left_over, uint32_t flags)
{
	uint64_t code;
	size_t bad = 0;

	reset(minor);
	code = make_code("f");
	enter();
	for (size_t i = 0; i < n; i++)
		call_code(code);
	if (left_over) {
		set_cframe(make_cframe(0, cframe));
		frame = NOWHERE;
		for (size_t i = 0; i < left_over; i++)
			call_code(code);
	}
	run();
	is_int(n_frames, min_of(n, RUNTIME_FRAMES_MAX), "3.%u: %zu frames behind %zu", minor, n,
	       left_over);
	is_int(host.sample.head.flags, flags, "3.%u: %zu frames behind %zu: flags", minor, n,
	       left_over);
	for (size_t i = 0; !flags && i < n_frames; i++)
		bad += !anchored(i, 0);
	is_int(bad, 0, "3.%u: %zu frames behind %zu: addresses", minor, n, left_over);
}

static void test_depths(void)
{
	test_depth(RUNTIME_FRAMES_MAX - 1, 0, 0);
	test_depth(RUNTIME_FRAMES_MAX, 0, 0);
	test_depth(RUNTIME_FRAMES_MAX + 1, 0, TRUNCATED);
	if (with_cframes()) {
		test_depth(RUNTIME_FRAMES_MAX, 2, 0);
		test_depth(RUNTIME_FRAMES_MAX + 1, 2, TRUNCATED);
	}
}

/* --- several interpreters --- */

static void call_two_interpreters(uint64_t *ret_first, uint64_t *ret_second)
{
	reset(minor);
	call_three();
	*ret_first = tstate;
	make_tstate(make_interpreter());
	*ret_second = tstate;
	enter();
	call("sub");
}

static void test_interpreters(void)
{
	uint64_t first, second, other, interp;

	call_two_interpreters(&first, &second);
	run();
	ok(walked("|;outer;middle;inner|;sub", 0), "3.%u: an interpreter in another", minor);
	ok(frames[0].address == loops[0] && frames[1].address == frames[3].address &&
		   (frames[1].address != loops[0] || o->chain == PYTHON_CHAIN_OBJECTS),
	   "3.%u: addresses in both", minor);
	set_state(second);
	run();
	ok(walked("|;outer;middle;inner|;sub", 0), "3.%u: whichever is the thread's", minor);
	put(second + o->tstate_thread_id, thread + 64);
	set_state(first);
	run();
	ok(walked("|;outer;middle;inner", 0), "3.%u: another thread's interpreter", minor);
	put(second + o->tstate_thread_id, thread);

	/* The inner interpreter has a state without frames, and the thread is third in its list. */
	make_tstate(interp = make_interpreter());
	for (int i = 0; i < 2; i++) {
		other = tstate;
		make_tstate(interp);
		put(tstate + o->tstate_thread_id, thread + 64);
	}
	run();
	ok(walked("|;outer;middle;inner|;sub", 0), "3.%u: a third one without frames", minor);
	tstate = other;

	/* The removal of the second interpreter is noticed only after a delay. */
	put(get(proc.interpreters) + o->interp_next, 0);
	host.now_ns += CODE_OBJECT_RECHECK_NS;
	run();
	ok(walked("|;outer;middle;inner", 0), "3.%u: the thread's state is not in the list", minor);
	put(proc.interpreters, 0);
	host.now_ns += CODE_OBJECT_RECHECK_NS;
	run();
	ok(walked("|;outer;middle;inner", 0), "3.%u: a list without interpreters", minor);
}

static void test_bad_lists(void)
{
	uint64_t first, second, head;

	call_two_interpreters(&first, &second);
	head = get(proc.interpreters);
	put(second + PYTHON_TSTATE_NEXT, second);
	run();
	ok(walked("|;outer;middle;inner", 0), "3.%u: a list of threads that loops", minor);
	put(second + o->tstate_thread_id, thread + 64);
	run();
	ok(walked("|;outer;middle;inner", 0), "3.%u: one without the thread", minor);
	put(second + o->tstate_thread_id, thread);
	put(second + PYTHON_TSTATE_NEXT, 0);
	put(get(head + o->interp_next) + o->interp_next, head);
	run();
	ok(walked("|;outer;middle;inner|;sub", 0), "3.%u: a list of interpreters that loops",
	   minor);
	put(second + PYTHON_TSTATE_NEXT, NOWHERE);
	run();
	ok(walked("|;outer;middle;inner", 0), "3.%u: a thread that cannot be read", minor);
	put(head + o->interp_threads, NOWHERE);
	run();
	ok(walked("|;outer;middle;inner", 0), "3.%u: a list that cannot be read", minor);
	put(head + o->interp_next, NOWHERE);
	run();
	ok(walked("|;outer;middle;inner", 0), "3.%u: an interpreter that cannot be read", minor);
	proc.interpreters = NOWHERE;
	walker__attach(&proc);
	run();
	ok(walked("|;outer;middle;inner", 0), "3.%u: a place that cannot be read", minor);
	proc.interpreters = 0;
	walker__attach(&proc);
	run();
	ok(walked("|;outer;middle;inner", 0), "3.%u: a place that is not known", minor);
}

int main(void)
{
	walker__open();
	for (minor = MINOR_FIRST; minor <= MINOR_LAST; minor++) {
		test_chains();
		if (with_shims()) {
			test_owners();
			test_hidden();
		}
		if (with_cframes()) {
			test_left_over();
			test_switched();
			test_bad_cframes();
		}
		for (size_t i = 0; i < ARRAY_SIZE(garbage); i++) {
			test_garbage(garbage[i]);
			if (with_cframes())
				test_not_filled_in(garbage[i]);
		}
		test_linking();
		test_broken();
		test_cycles();
		test_depths();
		test_interpreters();
		test_bad_lists();
	}
	walker__close();
	return tap__done();
}
