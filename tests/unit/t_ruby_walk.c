// SPDX-License-Identifier: GPL-2.0-or-later
/* The CRuby walker on made-up control frames: chains of frames, and data that is not a frame.
 * t_ruby_names tests their names. */
#include "tests/unit/ruby_synthetic.h"

static size_t nth; /* index in synthetic_versions */

/* --- frames --- */

static void test_methods(void)
{
	uint64_t class;

	reset(nth);
	run();
	ok(walked("", 0), "%s: a thread that runs no Ruby yet", version);
	class = make_class(T_CLASS, "A");
	push(TOP | LOCAL | FINISH, make_iseq("<main>"), 0, 0);
	call_of(class, "f", 0);
	call_c_of(class, "each");
	call_of(class, "g", FINISH);
	run();
	ok(walked("|;<main>;A#f;A#each|;A#g", 0), "%s: methods, in Ruby and in C", version);
	is_int(host.sample.head.sections[0].walker, WALKER_RUBY, "%s: by whom", version);
	is_int(FRAME_KEY_INDEX(sample__key(0)), INDEX, "%s: the instruction", version);
	is_int(FRAME_KEY_INDEX(sample__key(2)), 0, "%s: of a method in C", version);
	ok(ruby_codes__native(names, sample__key(2)) == FUNCTION &&
		   !ruby_codes__native(names, sample__key(0)),
	   "%s: the function that it is", version);
}

static void test_kinds(void)
{
	reset(nth);
	push(EVAL | FINISH, make_iseq("<eval>"), 0, ep | 1);
	push(CLASS | LOCAL, make_iseq("<class:A>"), 0, 0);
	call("f");
	push(RESCUE, make_iseq("rescue in f"), 0, ep | 1);
	push(IFUNC, 0, 0, ep | 1);
	push(DUMMY | LOCAL, 0, 0, 0);
	call("g");
	run();
	ok(walked("|;<eval>;<class:A>;f;rescue in f;g", 0), "%s: frames of all kinds", version);
}

/* A block is part of the method around it, at any depth. */
static void test_blocks(void)
{
	uint64_t method, heap;

	reset(nth);
	call_of(make_class(T_CLASS, "A"), "f", FINISH);
	method = ep;
	yield("block in f");
	call_c("each");
	push(BLOCK | FINISH, make_iseq("block (2 levels) in f"), 0, (method + 5 * 8) | 3);
	run();
	ok(walked("|;A#f;block in A#f;each|;block (2 levels) in A#f", 0), "%s: blocks", version);
	/* A Proc outlives its method: the environment moved to the heap. */
	heap = make(24);
	memcpy((void *)heap, (void *)(method - 16), 24);
	push(BLOCK, make_iseq("block in f"), 0, (heap + 16) | 1);
	run();
	ok(walked("|;A#f;block in A#f;each|;block (2 levels) in A#f;block in A#f", 0),
	   "%s: a block of a method that has returned", version);
	put(ep - 8, NOWHERE);
	run();
	ok(walked("|;A#f;block in A#f;each|;block (2 levels) in A#f;block in f", 0),
	   "%s: the method's environment cannot be read", version);
	put(ep - 8, ep);
	run();
	ok(walked("|;A#f;block in A#f;each|;block (2 levels) in A#f;block in f", 0),
	   "%s: an environment around itself", version);
}

static void test_deep_blocks(void)
{
	char want[1024] = "|;A#f";

	reset(nth);
	call_of(make_class(T_CLASS, "A"), "f", FINISH);
	for (int i = 1; i <= ENV_LEVELS_MAX; i++) {
		yield("block in f");
		strcat(want, i < ENV_LEVELS_MAX ? ";block in A#f" : ";block in f");
	}
	run();
	ok(walked(want, 0), "%s: blocks in blocks", version);
}

/* define_method: the frame has the method's name; one block may be several methods. */
static void test_block_methods(void)
{
	uint64_t class, iseq;

	reset(nth);
	class = make_class(T_CLASS, "A");
	iseq = make_iseq("block in <class:A>");
	push(BLOCK | BMETHOD | FINISH, iseq, make_method(class, make_id("one")), ep | 1);
	push(BLOCK | BMETHOD, iseq, make_method(class, make_id("two")), ep | 1);
	yield("block (2 levels) in <class:A>");
	push(BLOCK, iseq, 0, NOWHERE);
	run();
	ok(walked("|;A#one;A#two;block (2 levels) in <class:A>;block in <class:A>", 0),
	   "%s: methods that are blocks", version);
}

/* A method that uses $~ has a struct vm_svar in place of its method entry; a class's body has a
 * cref. */
static void test_entries(void)
{
	uint64_t method, svar, cref;

	reset(nth);
	method = make_method(make_class(T_CLASS, "A"), make_id("f"));
	svar = make(40);
	put(svar, MEMO_SVAR);
	put(svar + 8, method);
	cref = make(40);
	put(cref, MEMO_CREF);
	put(cref + 16, method);
	put(cref + 32, make_class(T_CLASS, "B"));
	push(TOP | LOCAL | FINISH, make_iseq("<main>"), cref, 0);
	push(METHOD | LOCAL, make_iseq("f"), svar, 0);
	push(METHOD | LOCAL, make_iseq("g"), NOWHERE, 0);
	push(METHOD | LOCAL, make_iseq("h"), 8, 0);
	run();
	ok(walked("|;<main>;A#f;g;h", 0), "%s: what may stand for a method entry", version);
	put(svar + 8, cref);
	host.now_ns += 2 * RUBY_RECHECK_NS(1);
	run();
	ok(walked("|;<main>;f;g;h", 0), "%s: and what may not", version);
}

/* --- where frames end --- */

static void test_half_made(void)
{
	reset(nth);
	enter("f");
	push(METHOD | LOCAL, make_iseq("g"), 0, 0);
	put(ep, 0);
	ok(loses(COUNT_WALK_READ, 1, "|;f", 0), "%s: the innermost frame has no flags yet",
	   version);
	put(cfp + 32, 0);
	ok(loses(COUNT_WALK_READ, 1, "|;f", 0), "%s: nor an environment", version);
	put(cfp + 32, ep);
	put(ep, METHOD | LOCAL);
	call("h");
	put(ep, 1);
	push(CFUNC | LOCAL, 0, 0, 0);
	put(cfp + 32, cfp + 3);
	ok(loses(COUNT_WALK_READ, 2, "|;f;g", 0), "%s: the two innermost", version);
	put(cfp + 32, ep);
	ok(loses(COUNT_WALK_CODE, 1, ";?", BROKEN), "%s: one further out", version);
}

static void test_flags(void)
{
	static const uint32_t bad[] = { 0,	    METHOD & ~1, 0x11120001, 0x00010001,
					0x88880001, 1,		 0x7fff0001 };
	int wrong = 0;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		reset(nth);
		enter("f");
		push(bad[i] | LOCAL, make_iseq("g"), 0, 0);
		call("h");
		wrong += !loses(COUNT_WALK_READ, 1, ";h", BROKEN);
	}
	is_int(wrong, 0, "%s: flags that no frame has", version);
}

static void test_unreadable(void)
{
	uint64_t f, frame;

	reset(nth);
	enter("f");
	frame = cfp;
	f = ep;
	call("g");
	call("h");
	put(frame + 32, NOWHERE);
	ok(loses(COUNT_WALK_READ, 1, ";g;h", BROKEN), "%s: an environment that cannot be read",
	   version);
	put(frame + 32, f | 4);
	ok(loses(COUNT_WALK_READ, 1, ";g;h", BROKEN), "%s: at an odd address", version);
	put(frame + 32, f);
	put(frame + 16, NOWHERE);
	ok(loses(COUNT_WALK_CODE, 1, "|;?;g;h", 0), "%s: code that cannot be read", version);
	put(ec + 16, NOWHERE);
	ok(loses(COUNT_WALK_READ, 1, "", BROKEN), "%s: no frame can be read", version);
	put(ec + 16, get(ec) + 8 * get(ec + 8));
	run();
	ok(walked("", 0), "%s: the frames end before they begin", version);
	put(ec + 16, cfp);
	put(ec, NOWHERE);
	run();
	ok(host.sample.head.sections[0].n <= RUNTIME_PAIRS_MAX, "%s: a stack somewhere else",
	   version);
	put(ec, -8ULL);
	put(ec + 8, 1ULL << 62);
	run();
	ok(host.sample.head.sections[0].n <= RUNTIME_PAIRS_MAX, "%s: one around all memory",
	   version);
}

/* Frames that continue behind the end of the stack, up to the end of memory. */
static void test_endless(void)
{
	reset(nth);
	enter("f");
	put(ec + 8, 1ULL << 32);
	ok(loses(COUNT_WALK_READ, 1, "|;f", BROKEN), "%s: a stack without an end", version);
}

static void test_places(void)
{
	int wrong = 0;

	/* All places in a page, for frames and for environments. */
	for (size_t at = 0; at < 4096; at += 8) {
		uint64_t end;

		reset(nth);
		make((4096 - used % 4096) % 4096 + at);
		make_fiber(0, 2048);
		enter("f");
		for (int i = 0; i < 100; i++)
			call_c("g");
		end = get(ec) + 8 * get(ec + 8);
		/* Memory around the stack is unreadable. */
		host.n_ranges = 0;
		host__add_range((uintptr_t)arena, arena, get(ec) - (uintptr_t)arena);
		host__add_range(get(ec), (void *)get(ec), 8 * get(ec + 8));
		host__add_range(end, (void *)end, (uintptr_t)arena + sizeof(arena) - end);
		run();
		wrong += host.sample.head.sections[0].n != 102 || host.sample.head.flags;
	}
	is_int(wrong, 0, "%s: a stack alone in memory, at every place in a page", version);
}

/* --- many frames --- */

static void test_depth(int n, bool loops, uint32_t n_want, uint32_t flags)
{
	uint64_t iseq;

	reset(nth);
	iseq = make_iseq("f");
	for (int i = 0; i < n; i++)
		push(METHOD | LOCAL | (loops ? FINISH : 0), iseq, 0, 0);
	put32(objspace + o->objspace_flags, 1 << 5);
	ok(loses(COUNT_WALK_TRUNCATED, !!flags, chain(), flags), "%s: %d frames", version, n);
	is_int(host.sample.head.sections[0].n, n_want, "%s: so many of them are told", version);
	ok(host.sample.head.sections[0].n <= RUNTIME_PAIRS_MAX,
	   "%s: no more than there is room for", version);
}

/* --- fibers --- */

static void test_fibers(void)
{
	uint64_t outer, middle;

	reset(nth);
	enter("main");
	call_c("resume");
	outer = ec;
	resume_fiber();
	push(BLOCK | FINISH, make_iseq("block in main"), 0, NOWHERE);
	middle = ec;
	resume_fiber();
	run();
	ok(walked("|;main;resume|;block in main/", 0), "%s: a fiber that runs nothing yet",
	   version);
	enter("inner");
	run();
	ok(walked("|;main;resume|;block in main/|;inner", 0),
	   "%s: frames of the fibers that wait, apart", version);
	put(middle + 16, NOWHERE);
	ok(loses(COUNT_WALK_READ, 1, "/|;inner", BROKEN), "%s: one that cannot be read", version);
	put(prev_of(middle - o->fiber_ec), middle - o->fiber_ec);
	put(middle + 16, get(middle) + 8 * get(middle + 8) - o->cfp_size);
	ok(loses(COUNT_WALK_TRUNCATED, 1, "/|;inner", TRUNCATED), "%s: one that waits for itself",
	   version);
	put(prev_of(ec - o->fiber_ec), NOWHERE);
	run();
	ok(walked("|;inner", 0), "%s: one that is nowhere", version);
	set_ec(outer);
	run();
	ok(walked("|;main;resume", 0), "%s: back in the first", version);
}

/* Sets two native frames for the next samples, with CFAs @inner and @outer. */
static void set_natives(uint64_t inner, uint64_t outer, uint32_t stop, bool complete)
{
	n_native_ips = 2;
	native_ips[0] = native_ips[1] = 0x1000;
	native_cfas[0] = inner;
	native_cfas[1] = outer;
	native_stop = stop;
	native_flags = complete ? SAMPLE_COMPLETE : 0;
}

/* Returns true if a walk without a loss gives @want. @flags are those of the section, @complete
 * those of the native frames. A return to 0 that the unwinder counted is not a loss if it is proven
 * to be the end. */
static bool judged(const char *want, uint32_t flags, bool complete)
{
	uint64_t before = counted(COUNT_ZERO_RETURN), less = complete && native_stop;
	uint32_t seen;

	run();
	seen = host.sample.head.sections[0].flags;
	if (seen != flags || counted(COUNT_ZERO_RETURN) != before - less)
		tap__diag("%s: section %u, want %u", version, seen, flags);
	return walked(want, complete ? SAMPLE_COMPLETE : 0) && seen == flags &&
	       counted(COUNT_ZERO_RETURN) == before - less;
}

#define MACHINE_SIZE 8192
#define PART	     256 /* bytes of a part of a stack */

/* Tests native frames that are on no stack of `ec`. */
static void test_another_stack(uint64_t cfa)
{
	set_natives(cfa - PART, cfa, COUNT_NO_RULE, false);
	ok(judged("|;main/|;inner", SECTION_INFERRED, false), "%s: natives of somewhere else",
	   version);
	set_natives(cfa - PART, cfa, COUNT_ZERO_RETURN, false);
	ok(loses(COUNT_WALK_FIBER, 1, "", BROKEN), "%s: natives of another coroutine", version);
	set_natives(cfa - PART, cfa, 0, true);
	ok(loses(COUNT_WALK_FIBER, 1, "", BROKEN | SAMPLE_COMPLETE),
	   "%s: natives of the native thread's stack", version);
}

/* A fiber's frames are those of its own machine stack, which ends at the start of its VM stack. */
static void test_fiber_stack(void)
{
	uint64_t base, end;

	reset(nth);
	enter("main");
	set_machine_stack(make(MACHINE_SIZE) + MACHINE_SIZE, MACHINE_SIZE);
	resume_fiber();
	enter("inner");
	end = get(ec);
	base = set_machine_stack(end, MACHINE_SIZE + end % 4096);
	set_natives(base + PART, end & ~15ULL, COUNT_ZERO_RETURN, false);
	ok(judged("|;main/|;inner", SECTION_WHOLE, true), "%s: a fiber's whole stack", version);
	set_natives(base + PART, base + 2 * PART, COUNT_NO_RULE, false);
	ok(judged("|;main/|;inner", 0, false), "%s: a part of it", version);
	set_natives(base + PART, base + 2 * PART, COUNT_ZERO_RETURN, false);
	ok(judged("|;main/|;inner", 0, false), "%s: a part that ends at a 0", version);
	native_rsp = base + PART;
	set_natives(base + 2 * PART, 0, COUNT_NO_RULE, false);
	ok(judged("|;main/|;inner", 0, false), "%s: a part whose end is unknown", version);
	set_natives(base + PART, base - PART, 0, true);
	ok(loses(COUNT_WALK_FIBER, 1, "", BROKEN | SAMPLE_COMPLETE), "%s: another end", version);
	native_rsp = 0;
	test_another_stack(base - PART);
	n_native_ips = 0;
	native_stop = COUNT_NO_MAPPINGS;
	native_flags = 0;
	ok(judged("|;main/|;inner", SECTION_INFERRED, false), "%s: no native frame", version);
	native_rsp = base + PART;
	ok(judged("|;main/|;inner", 0, false), "%s: the same, and rsp is in the stack", version);
	native_rsp = 0;
}

/* A fiber that no other fiber waits for: it was transferred to, or it yields. */
static void test_lone_fiber(void)
{
	uint64_t base, end;

	reset(nth);
	make_fiber(0, 512);
	enter("inner");
	end = get(ec);
	base = set_machine_stack(end, MACHINE_SIZE + end % 4096);
	set_natives(base + PART, end & ~15ULL, COUNT_ZERO_RETURN, false);
	ok(judged("|;inner", SECTION_WHOLE, true), "%s: a fiber that was transferred to", version);
	call_c("yield");
	ok(loses(COUNT_FIBER_ALONE, 1, "|;inner;yield", 0), "%s: one that may yield", version);
}

/* Threads that share native threads, such as those of ractors: the machine stack is behind the VM
 * stack and a guard page. */
static void test_shared_thread(void)
{
	uint64_t base, end;

	reset(nth);
	enter("main");
	base = get(ec) + 8 * get(ec + 8) + 4096;
	end = base + MACHINE_SIZE - 16;
	set_machine_stack(end, MACHINE_SIZE - 16);
	set_natives(base + PART, end & ~15ULL, COUNT_ZERO_RETURN, false);
	ok(judged("|;main", SECTION_WHOLE, true), "%s: the whole stack of a ractor", version);
	set_natives(base + PART, base + 2 * PART, COUNT_NO_RULE, false);
	ok(judged("|;main", 0, false), "%s: a part of it", version);
	set_natives(base - 2 * PART, base - PART, COUNT_ZERO_RETURN, false);
	ok(loses(COUNT_WALK_FIBER, 1, "", BROKEN), "%s: natives of another thread", version);
}

static void test_native_thread(void)
{
	uint64_t base, end;

	reset(nth);
	enter("main");
	base = make(MACHINE_SIZE);
	end = base + MACHINE_SIZE;
	set_machine_stack(end, MACHINE_SIZE);
	set_natives(base + PART, base + 2 * PART, COUNT_NO_RULE, false);
	ok(judged("|;main", 0, false), "%s: a part of a native thread's stack", version);
	set_natives(base + PART, end + PART, 0, true);
	ok(judged("|;main", 0, true), "%s: all of it, beyond what Ruby knows", version);
	set_natives(base + PART, end, COUNT_ZERO_RETURN, false);
	ok(judged("|;main", 0, false), "%s: a 0 at its end is no coroutine's", version);
	set_natives(base - 2 * PART, base - PART, COUNT_ZERO_RETURN, false);
	ok(judged("|;main/", SECTION_INFERRED, false), "%s: natives of a coroutine", version);
	set_natives(base - 2 * PART, base - PART, COUNT_NO_RULE, false);
	ok(judged("|;main", SECTION_INFERRED, false), "%s: natives of somewhere else", version);
	end = get(ec); /* up to 3.1 the VM stack is in the machine stack */
	base = set_machine_stack(end, MACHINE_SIZE + end % 4096 + 16);
	set_natives(base + PART, end + PART, 0, true);
	ok(judged("|;main", 0, true), "%s: a native thread's that ends like a fiber's", version);
	set_machine_stack(end, 0);
	ok(judged("|;main", 0, true), "%s: a stack whose size is unknown", version);
	set_natives(base - 2 * PART, base - PART, COUNT_ZERO_RETURN, false);
	ok(judged("|;main", SECTION_INFERRED, false), "%s: the same, with a return to 0", version);
}

static void test_machine_stacks(void)
{
	test_fiber_stack();
	test_lone_fiber();
	test_shared_thread();
	test_native_thread();
	n_native_ips = native_stop = native_flags = 0;
}

static void test_many_fibers(void)
{
	char want[1024] = "|;f";

	reset(nth);
	enter("f");
	for (int i = 1; i < FIBERS_MAX; i++) {
		resume_fiber();
		enter("f");
		strcat(want, i + 1 < FIBERS_MAX ? "|;f" : "/|;f");
	}
	run();
	ok(walked(want, 0), "%s: many fibers", version);
	resume_fiber();
	enter("g");
	run();
	ok(host.sample.head.flags == TRUNCATED &&
		   host.sample.head.sections[0].n == 2 * FIBERS_MAX + 1,
	   "%s: too many", version);
}

/* --- the thread --- */

static void test_garbage(void)
{
	reset(nth);
	enter("f");
	put32(objspace + o->objspace_flags, ~(1U << 5));
	run();
	ok(walked("|;f", 0), "%s: no garbage collection", version);
	put32(objspace + o->objspace_flags, 1 << 5);
	run();
	ok(walked("|;f;(garbage collection)", 0), "%s: garbage collection", version);
	put(vm + o->vm_objspace, NOWHERE);
	run();
	ok(walked("|;f;(garbage collection)", 0), "%s: where that is told is known", version);
	walker__attach(&proc);
	run();
	ok(walked("|;f", 0), "%s: or cannot be known", version);
	put(thread + o->thread_vm, NOWHERE);
	walker__attach(&proc);
	run();
	ok(walked("|;f", 0), "%s: nor the VM", version);
}

static bool no_state(bool is_loss)
{
	return loses(COUNT_WALK_NO_STATE, is_loss, "", 0);
}

static void test_state(void)
{
	uint64_t other;

	reset(nth);
	enter("f");
	set_ec(0);
	ok(no_state(false), "%s: a thread that is not Ruby's", version);
	set_ec(ec);
	other = make(512);
	put(ec + o->ec_thread, other);
	ok(no_state(true), "%s: a state of another thread", version);
	put(other + o->thread_ec, ec);
	run();
	ok(walked("|;f", 0), "%s: which has to know of it", version);
	put(ec + o->ec_thread, NOWHERE);
	ok(no_state(true), "%s: a state of no thread", version);
	set_ec(NOWHERE);
	ok(no_state(true), "%s: a state that cannot be read", version);
	proc.state_at = NOWHERE;
	walker__attach(&proc);
	ok(no_state(true), "%s: nor where it is", version);
	space += 2;
	ok(no_state(true), "%s: a process that is not known", version);
	space -= 2;
}

/* Frames of another runtime precede Ruby's. */
static void test_other_walker(void)
{
	struct bpf_perf_event_data ctx = { 0 };
	const struct rec_sample *sample = &host.sample.head;
	struct scratch *scratch = scratch__get();
	uint64_t own[32];
	uint32_t n_own;

	reset(nth);
	enter("f");
	run();
	n_own = sample->sections[0].n;
	memcpy(own, host.sample.words, sizeof(own));
	scratch->sample.sections[0] = (struct rec_section) { .n = 1, .walker = WALKER_PYTHON };
	scratch->sample.n_sections = 1;
	scratch->words[0] = 47;
	scratch->n_words = 2;
	walk_ruby(&ctx);
	ok(sample->n_sections == 2 && sample->sections[0].n == 1 &&
		   sample->sections[0].walker == WALKER_PYTHON && sample->sections[1].n == n_own &&
		   sample->sections[1].walker == WALKER_RUBY && !sample->sections[1].flags &&
		   host.sample.words[0] == 47 && !memcmp(&host.sample.words[2], own, n_own * 16),
	   "%s: behind another runtime's frames", version);
}

/* Frames of other runtimes leave room for one pair, and then for no section. */
static void test_no_room(void)
{
	const struct rec_sample *sample = &host.sample.head;
	struct bpf_perf_event_data ctx = { 0 };
	struct scratch *scratch = scratch__get();
	uint64_t before = counted(COUNT_WALK_TRUNCATED);

	reset(nth);
	for (int i = 0; i < 5; i++)
		enter("f");
	run();
	scratch->sample.sections[0] = (struct rec_section) { .n = 7, .walker = WALKER_PYTHON };
	scratch->sample.n_sections = 1;
	scratch->n_words = SAMPLE_WORDS_MAX - 3;
	walk_ruby(&ctx);
	ok(sample->n_sections == 2 && sample->sections[0].n == 7 && !sample->sections[0].flags &&
		   sample->sections[1].n == 1 && sample->sections[1].flags == SECTION_TRUNCATED &&
		   sample->flags == SAMPLE_RUNTIME_TRUNCATED &&
		   host.sample_bytes == sizeof(*sample) + 8 * (SAMPLE_WORDS_MAX - 1),
	   "%s: little room is left", version);
	scratch->sample.n_sections = SECTIONS_MAX;
	scratch->sample.flags = 0;
	scratch->n_words = 10;
	walk_ruby(&ctx);
	ok(sample->n_sections == SECTIONS_MAX && sample->flags == SAMPLE_RUNTIME_TRUNCATED &&
		   host.sample_bytes == sizeof(*sample) + 8 * 10,
	   "%s: no section is left", version);
	is_int(counted(COUNT_WALK_TRUNCATED) - before, 2, "%s: both are counted", version);
}

static void test_tls_of_module(void)
{
	uint64_t dtv, block;

	reset(nth);
	if (proc.state == RUBY_STATE_KEY)
		return;
	enter("f");
	dtv = make(16 * 8);
	block = make(64);
	put(tcb + 8, dtv);
	put(block + 24, ec);
	proc.state = RUBY_STATE_TLS_OF_MODULE;
	proc.state_at = 24;
	proc.tls_module = 5;
	walker__attach(&proc);
	ok(no_state(false), "%s: a thread that has no such block", version);
	put(dtv + 16 * 5, block);
	run();
	ok(walked("|;f", 0), "%s: a variable in libruby", version);
	put(tcb + 8, NOWHERE);
	ok(no_state(true), "%s: a table that cannot be read", version);
	put(tcb + 8, dtv);
	put(dtv, 5);
	put(dtv + 8 * 5, block);
	proc.libc.values = 128;
	walker__attach(&proc);
	run();
	ok(walked("|;f", 0), "%s: musl: a variable in libruby", version);
	put(dtv, 4);
	ok(no_state(false), "%s: musl: a thread whose table is shorter", version);
}

int main(void)
{
	/* A jmp_buf has 40 bytes, or 200. */
	static const int shifts[] = { 160, 0 };

	walker__open();
	for (nth = 0; nth < ARRAY_SIZE(synthetic_versions); nth++) {
		if (!reset(nth))
			continue;
		test_methods();
		test_kinds();
		test_blocks();
		test_deep_blocks();
		test_block_methods();
		test_entries();
		test_half_made();
		test_flags();
		test_unreadable();
		test_endless();
		test_places();
		test_depth(RUNTIME_FRAMES_MAX, true, RUNTIME_PAIRS_MAX - 1, 0);
		test_depth(RUNTIME_FRAMES_MAX, false, RUNTIME_FRAMES_MAX + 1, 0);
		test_depth(RUNTIME_FRAMES_MAX + 1, false, RUNTIME_FRAMES_MAX + 1, TRUNCATED);
		test_depth(RUNTIME_FRAMES_MAX + 1, true, RUNTIME_PAIRS_MAX - 1, TRUNCATED);
		for (size_t i = 0; i < ARRAY_SIZE(shifts); i++) {
			fiber_shift = shifts[i];
			test_fibers();
		}
		fiber_shift = 0;
		if (o->ec_machine)
			test_machine_stacks();
		test_many_fibers();
		test_garbage();
		test_state();
		test_other_walker();
		test_no_room();
		test_tls_of_module();
	}
	walker__close();
	return tap__done();
}
