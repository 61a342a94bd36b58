// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel half's unwinder in HotSpot's code: a made-up code cache with compiled methods, stubs
 * and interpreted frames, interrupted at the places where the frame differs. */
#include "tests/unit/jvm_code.h"

static void test_whole(void)
{
	set_callers();
	sampler__run(regs);
	ok(has_frame(0, (callee + 64) | X, AT(6)) && has_callers(), "compiled frames, and a stub");
}

/* Words of the frame that are not pushed yet, or popped already: the return address is at the stack
 * pointer, or one word above it. */
static void test_places(void)
{
	static const struct {
		const char *name, code[24];
		uint32_t at;	 /* offset of the pc in the code */
		uint32_t before; /* bytes of `code` before the pc */
		int missing;	 /* missing words of the frame */
	} places[] = {
		{ "stack bang", "\x89\x84\x24\x00\xc0\xfe\xff\x55", 0, 0, 5 },
		{ "push rbp", "\x55\x48\x83\xec\x20\0\0", 7, 0, 5 },
		{ "sub rsp after push rbp", "\x55\x48\x83\xec\x20\0\0", 8, 1, 4 },
		{ "mov rbp, rsp", "\x55\x48\x8b\xec\x48\x83\xec\x20", 1, 1, 4 },
		{ "sub rsp after mov rbp", "\x55\x48\x8b\xec\x48\x83\xec\x20", 4, 4, 4 },
		{ "sub rsp without push", "\x90\x48\x81\xec\x28\0\0\0", 1, 1, 5 },
		{ "mov [rsp + 32], rbp", "\x48\x89\x6c\x24\x20\0\0", 8, 0, 0 },
		{ "entry barrier", "\x41\x81\x7f\x20\x01\0\0\0", 10, 0, 0 },
		{ "add rsp", "\x48\x83\xc4\x20\x5d\xc3", 64, 0, 0 },
		{ "pop rbp", "\x48\x83\xc4\x20\x5d\xc3", 68, 4, 4 },
		{ "poll", "\x5d\x49\x3b\x67\x28\x0f\x87\x01\0\0\0\xc3", 65, 1, 5 },
		{ "poll's jump", "\x5d\x49\x3b\x67\x28\x0f\x87\x01\0\0\0\xc3", 69, 5, 5 },
		{ "poll, wide", "\x5d\x49\x3b\xa7\x28\x01\0\0\x0f\x87\x01\0\0\0\xc3", 65, 1, 5 },
		{ "wide poll's jump", "\x5d\x49\x3b\xa7\x28\x01\0\0\x0f\x87\x01\0\0\0\xc3", 72, 8,
		  5 },
		{ "another jump", "\x48\x39\xc1\x90\x90\x0f\x87\x01\0\0\0\xc3", 69, 5, 0 },
		{ "ret", "\x5d\xc3", 65, 1, 5 },
		{ "entry barrier's jump", "\x41\x81\x7f\x20\x01\0\0\0\x0f\x85", 11, 8, 0 },
		{ "inline cache's jump", "\x49\x3b\xc2\x0f\x85\x66\x6d\xe3\xff", 10, 3, 5 },
		{ "mov rbp, rsp as the last step", "\x48\x8b\xec\x48\x83\xc5\x10", 9, 0, 0 },
		{ "add rbp as the last step", "\x48\x8b\xec\x48\x83\xc5\x10", 9, 3, 0 },
		{ "pending exception", "\x49\x81\x7f\x08\0\0\0\0\x0f\x85\x01\0\0\0\xc3", 64, 0, 5 },
		{ "comparison", "\x49\x81\x7f\x08\0\0\0\0\x0f\x85\x02\0\0\0\xc3", 64, 0, 0 },
		{ "slow poll, C1", "\x49\xba\1\2\3\4\5\6\0\0\x4d\x89\x97\x58\x03\0\0\xe9\1\2\3\0",
		  64, 0, 5 },
		{ "no poll, C1", "\x49\xba\1\2\3\4\5\6\0\0\x4d\x89\x97\x58\x03\0\0\x90\1\2\3\0", 64,
		  0, 0 },
		{ "slow poll, C2", "\x4c\x8d\x15\1\2\3\0\x4d\x89\x97\x58\x03\0\0\xe9", 64, 0, 5 },
		{ "slow poll saves", "\x4c\x8d\x15\1\2\3\0\x4d\x89\x97\x58\x03\0\0\xe9", 71, 7, 5 },
		{ "slow poll jumps", "\x4d\x89\x97\x58\x03\0\0\xe9\1\2\3\0", 71, 7, 5 },
		{ "slow poll jumps, narrow", "\x4d\x89\x57\x58\xe9\1\2\3\0", 68, 4, 5 },
		{ "jump to the caller's handler", "\x5d\xe9\1\2\3\0", 65, 1, 5 },
		{ "jump to what was resolved", "\x5d\xff\xe0", 65, 1, 5 },
		{ "jump within the frame", "\x90\xe9\1\2\3\0", 65, 1, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		set_callers();
		put_code(callee + places[i].at - places[i].before, places[i].code,
			 sizeof(places[i].code));
		regs[UNWIND_REG_PC] = callee + places[i].at;
		regs[UNWIND_REG_RSP] = AT(places[i].missing);
		if (places[i].missing == 4)
			stack[4] = 0xbad;
		sampler__run(regs);
		ok(has_frame(0, (callee + places[i].at) | X, AT(6)) && has_callers(), "at %s",
		   places[i].name);
	}
}

/* The polls of a return of JDK 8 to 15, behind `pop rbp`. An earlier call left a return address at
 * the end that a whole frame would have. */
static void test_older_polls(void)
{
	static const struct {
		const char *name, code[17];
		uint32_t before; /* bytes of `code` before the pc */
	} polls[] = {
		{ "of a page", "\x5d\x85\x05\x00\x10\0\0\xc3", 1 },
		{ "of a page far away", "\x5d\x49\xba\0\x10\0\0\0\x7f\0\0\x41\x85\x02\xc3", 1 },
		{ "of a page far away, its address loaded",
		  "\x5d\x49\xba\0\x10\0\0\0\x7f\0\0\x41\x85\x02\xc3", 11 },
		{ "of the thread", "\x5d\x4d\x8b\x97\x08\x01\0\0\x41\x85\x02\xc3", 1 },
		{ "of the thread, its address loaded",
		  "\x5d\x4d\x8b\x97\x08\x01\0\0\x41\x85\x02\xc3", 8 },
		{ "of the thread, near", "\x5d\x4d\x8b\x57\x08\x41\x85\x02\xc3", 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(polls); i++) {
		set_callers();
		put_code(callee + 64 - polls[i].before, polls[i].code, 16);
		regs[UNWIND_REG_PC] = callee + 64;
		regs[UNWIND_REG_RSP] = AT(5);
		put_call(caller + 195, callee);
		stack[10] = caller + 200;
		sampler__run(regs);
		ok(has_frame(0, (callee + 64) | X, AT(6)) && has_callers(), "a poll %s",
		   polls[i].name);
	}
}

/* A blob longer than a tag can express, and longer than one read of the tags. */
static void test_segments(void)
{
	static const uint32_t at[] = { 1, 63, 64, 65, 253, 254, 255, 600 };

	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		set_callers();
		callee = put_blob(200, 700, true, 6);
		regs[UNWIND_REG_PC] = HEAP + ((200 + at[i]) << SEGMENT_LOG2) + 0x60;
		sampler__run(regs);
		ok(has_frame(0, regs[UNWIND_REG_PC] | X, AT(6)) && has_callers(),
		   "%u segments behind the blob's first", at[i]);
	}
	set_callers();
	put_blob(0, 20, true, 6);
	put_blob(199, 2, true, 7);
	callee = put_blob(201, 10, true, 6);
	regs[UNWIND_REG_PC] = callee + 64;
	sampler__run(regs);
	ok(has_frame(0, (callee + 64) | X, AT(6)) && has_callers(), "between other blobs");
}

#define RBP_1 AT(40)

/* Sets an interpreted frame at RBP_1 whose caller's stack ends at word @sender. */
static void set_interpreted(int sender)
{
	set_callers();
	stack[39] = AT(sender);
	stack[37] = METHOD;
	stack[40] = 0xbad;
	stack[41] = caller + 100;
	stack[sender + 9] = stub + 50;
	stack[sender + 8] = AT(80);
	stack[80] = AT(90);
	stack[81] = PC(0);
	regs[UNWIND_REG_RBP] = RBP_1;
	regs[UNWIND_REG_PC] = INTERPRETER + 0x800;
}

static void test_interpreted(void)
{
	static const int senders[] = { 42, 43, 50 };

	for (size_t i = 0; i < ARRAY_SIZE(senders); i++) {
		set_interpreted(senders[i]);
		sampler__run(regs);
		ok(has_frame(0, (INTERPRETER + 0x800) | X, AT(42)) &&
			   has_frame(1, caller + 100, AT(senders[i] + 10)) &&
			   has_frame(2, stub + 50, AT(82)) && has_frame(3, PC(0), AT(82)),
		   "interpreted, %d words of its caller's moved", senders[i] - 42);
	}
	set_callers(); /* the caller's rbp has any value */
	stack[0] = caller + 100;
	stack[9] = stub + 50;
	stack[10] = stub + 50;
	stack[9] = AT(30);
	regs[UNWIND_REG_PC] = INTERPRETER;
	sampler__run(regs);
	ok(has_frame(0, INTERPRETER | X, AT(1)) && has_frame(1, caller + 100, AT(11)) &&
		   has_frame(2, stub + 50, AT(32)),
	   "at the interpreter's entry, called from compiled code");
	for (int pushed = 0; pushed < 2; pushed++) { /* with two arguments, and rbp */
		set_callers();
		stack[2] = caller + 100;
		stack[1] = 0xbad;
		stack[14] = stub + 50;
		stack[13] = AT(30);
		stack[12] = callee + 64; /* return address of an earlier call */
		regs[UNWIND_REG_PC] = INTERPRETER + 8 * pushed;
		regs[UNWIND_REG_RSP] = AT(2 - pushed);
		regs[UNWIND_REG_RBP] = 0xbad;
		regs[UNWIND_REG_R13] = AT(5);
		sampler__run(regs);
		ok(has_frame(0, regs[UNWIND_REG_PC] | X, AT(3)) &&
			   has_frame(1, caller + 100, AT(15)) && has_frame(2, stub + 50, AT(32)),
		   "arguments pushed%s", pushed ? ", and rbp" : "");
	}
}

static struct scratch *scratch;

/* The address of the bytecode is a word nearer to rbp in JDK 8. The words at the place of a later
 * JDK belong to another method. */
static void test_bytecodes(void)
{
	static const uint32_t zero = 0;
	uint64_t const_method;

	scratch = bpf_map_lookup_elem(&scratches, &zero);
	memcpy(&const_method, texts, sizeof(const_method)); /* value of this field in METHOD */
	for (int is_8 = 0; is_8 < 2; is_8++) {
		set_interpreted(42);
		jvm->bcp_words = is_8 ? JVM_BCP_WORDS_8 : JVM_BCP_WORDS;
		stack[40 - JVM_BCP_WORDS_8] = const_method + (is_8 ? 7 : 9);
		stack[40 - JVM_BCP_WORDS] = const_method + (is_8 ? 9 : 8);
		sampler__run(regs);
		ok(scratch->n_runtime_frames &&
			   FRAME_KEY_INDEX(scratch->runtime_frames[0].key) == (is_8 ? 7 : 8),
		   "the bytecode, JDK %s", is_8 ? "8" : "9 on");
	}
	jvm->bcp_words = JVM_BCP_WORDS;
}

/* An entry has pushed only the first words of its frame; the words below are of an earlier frame.
 */
static void test_entered(void)
{
	uint64_t const_method, made;

	memcpy(&const_method, texts, sizeof(const_method));
	set_interpreted(42);
	stack[40 - JVM_BCP_WORDS] = const_method + 8;
	regs[UNWIND_REG_RSP] = AT(40 - JVM_BCP_WORDS);
	sampler__run(regs);
	made = scratch->runtime_frames[0].key;
	is_int(FRAME_KEY_INDEX(made), 8, "a frame that has just been made");
	for (int sp = 40; sp > 40 - JVM_BCP_WORDS; sp--) {
		set_interpreted(42);
		stack[40 - JVM_BCP_WORDS] = const_method + 8;
		regs[UNWIND_REG_RSP] = AT(sp);
		regs[UNWIND_REG_R13] = AT(42);
		sampler__run(regs);
		ok(scratch->runtime_frames[0].key != made &&
			   has_frame(0, (INTERPRETER + 0x800) | X, AT(42)) &&
			   has_frame(1, caller + 100, AT(52)),
		   "%d words pushed", 40 - sp);
	}
}

/* Returns true if the last sample has these @n runtime frames. */
static bool has_notes(const struct runtime_frame *want, uint32_t n)
{
	for (uint32_t i = 0; i < n && i < scratch->n_runtime_frames; i++)
		if (scratch->runtime_frames[i].key != want[i].key ||
		    scratch->runtime_frames[i].address != want[i].address) {
			tap__diag("frame %u is %#llx, want %#llx", i,
				  (unsigned long long)scratch->runtime_frames[i].key,
				  (unsigned long long)want[i].key);
			return false;
		}
	return scratch->n_runtime_frames == n;
}

/* Takes a sample with frames cached from an earlier one, after a change of @word. Returns true if
 * the result equals that without the cache. */
static bool is_same_cached(uint64_t *word, uint64_t change)
{
	static struct runtime_frame want[NATIVE_FRAMES_MAX];
	static struct host_sample plain;
	uint32_t n;

	host__set(&cfg_cached, 1);
	sampler__run(regs);
	*word += change;
	host__set(&cfg_cached, 0);
	sampler__run(regs);
	plain = host.sample;
	n = scratch->n_runtime_frames;
	memcpy(want, scratch->runtime_frames, n * sizeof(want[0]));
	host__set(&cfg_cached, 1);
	sampler__run(regs);
	return has_notes(want, n) && plain.head.n_native == host.sample.head.n_native &&
	       !memcmp(plain.words, host.sample.words, 16 * (size_t)plain.head.n_native);
}

static void test_cached(void)
{
	static const struct {
		const char *name;
		int at;
		uint64_t change;
		uint32_t n_cached; /* frames that come from the cache */
	} words[] = {
		{ "nothing", 0, 0, 4 },
		{ "the bytecode", 40 - JVM_BCP_WORDS, 1, 3 },
		{ "the method", 40 + INTERPRETED_METHOD, 8, 3 },
		{ "the caller's stack pointer", 40 + INTERPRETED_SENDER_SP, 8, 0 },
		{ "what no frame depends on", 40 - 2, 8, 4 },
		{ "a return address", 51, 1, 0 }, /* another stub's: cut there */
	};
	static const uint32_t zero = 0;
	uint64_t const_method;

	scratch = bpf_map_lookup_elem(&scratches, &zero);
	memcpy(&const_method, texts, sizeof(const_method)); /* value of this field in METHOD */
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		set_interpreted(42);
		/* The method called a compiled one, which is interrupted. */
		regs[UNWIND_REG_PC] = callee + 64;
		stack[4] = RBP_1;
		stack[5] = INTERPRETER + 0x900;
		stack[40 - JVM_BCP_WORDS] = const_method + 8;
		ok(is_same_cached(&stack[words[i].at], words[i].change), "changed is %s",
		   words[i].name);
		is_int(scratch->cached.n_cached, words[i].n_cached, "so many frames are kept");
	}
	stack[51]--;
	sampler__run(regs);
	host.now_ns += CACHED_NS;
	sampler__run(regs);
	is_int(scratch->cached.n_cached, 1, "the native ones, after some time");
	host__set(&cfg_cached, 0);
}

/* The call before the only possible return address leads into the adapter, or to an unknown place.
 */
static void test_frameless_stub(void)
{
	static const struct {
		const char *name;
		bool proven;
	} calls[] = { { "called by memory", false },
		      { "called by a register with its address", true },
		      { "called by a register with another address", false },
		      { "called by another stub's address", false },
		      { "called by code that jumps to it", false },
		      { "called by code that jumps elsewhere", false } };

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		uint64_t adapter, returns = caller + 100;

		set_callers();
		adapter = put_blob(300, 10, false, 0);
		regs[UNWIND_REG_PC] = adapter + 5;
		regs[UNWIND_REG_RSP] = AT(5);
		if (i == 0)
			put_code(returns - 7, "\x41\xff\x92\x10\x00\x00\x00", 7);
		else if (i < 3)
			put_far_call(returns - FAR_CALL, i == 1 ? adapter : callee);
		else
			put_call(returns - 5, i == 3 ? stub : caller + 300);
		if (i > 3)
			put_jump_with_method(caller + 300, i == 4 ? adapter + 2 : stub);
		sampler__run(regs);
		ok(has_frame(0, (adapter + 5) | X, AT(6)) &&
			   has_frame(1, calls[i].proven ? returns : INFERRED(returns), AT(16)) &&
			   has_frame(2, stub + 50, AT(32)) &&
			   !(host.sample.head.flags & SAMPLE_COMPLETE) == !calls[i].proven,
		   "an adapter without a frame, %s", calls[i].name);
	}
}

/* A stub pushes registers, as slow_subtype_check does. One contains an address in the code cache,
 * and rbp is that of a frame other than the caller's. The call of the stub decides. */
static void test_stub_that_pushes(void)
{
	for (int n = 0; n <= 8; n++) {
		uint64_t pushing;

		set_callers();
		pushing = put_blob(300, 10, false, 0);
		put_call(caller + 95, pushing + 2);
		put_code(pushing + 2, "\x57\x56\x41\x50\x51\x50\x52\x9c\x53", 9);
		memmove(stack + n, stack, 100 * sizeof(*stack));
		memset(stack, 0, (5 + n) * sizeof(*stack));
		stack[14 + n] = AT(30 + n);
		stack[5 + n / 2] = n ? callee + 64 : caller + 100;
		stack[5 + n] = caller + 100;
		regs[UNWIND_REG_PC] = pushing + 20;
		regs[UNWIND_REG_RSP] = AT(5);
		regs[UNWIND_REG_RBP] = AT(30 + n);
		sampler__run(regs);
		ok(has_frame(0, (pushing + 20) | X, AT(6 + n)) &&
			   has_frame(1, caller + 100, AT(16 + n)) &&
			   has_frame(2, stub + 50, AT(32 + n)),
		   "%d words that a stub has pushed", n);
	}
}

/* The caller pushed arguments, which it pops behind the call. An earlier call left a return address
 * at the end that the frame would have without them. */
static void test_stub_with_arguments(void)
{
	static const struct {
		const char *code;
		size_t bytes;
		int n; /* number of words */
	} callers[] = {
		{ "\x58", 1, 1 },
		{ "\x41\x58\x5e", 3, 2 }, /* pop %r8; pop %rsi */
		/* ...; cmp $0,%esi; je: the code behind it belongs to another function */
		{ "\x41\x58\x5e\x83\xfe\x00\x74\x10\x5f\x5e", 10, 2 },
		/* ...; cmp $0,%r8d; jne; pop; pop */
		{ "\x5e\x41\x58\x41\x83\xf8\x00\x75\x10\x5f\x5e", 11, 4 },
		{ "\x5e\x58\x83\xf8\x00\x0f\x85\x10\x00\x00\x00\x5f\x5e", 13, 4 },
		{ "\x5d\xc3", 2, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(callers); i++) {
		uint64_t pushing;
		int n = callers[i].n;

		set_callers();
		pushing = put_blob(300, 10, false, 0);
		put_call(caller + 95, pushing + 2);
		put_code(caller + 100, callers[i].code, callers[i].bytes);
		memmove(stack + 6 + n, stack + 6, 100 * sizeof(*stack));
		if (n)
			stack[15] = caller + 200;
		if (n > 2)
			stack[16] = stack[17] = caller + 200;
		stack[14 + n] = AT(30 + n);
		regs[UNWIND_REG_PC] = pushing + 20;
		regs[UNWIND_REG_RSP] = AT(5);
		regs[UNWIND_REG_RBP] = AT(30 + n);
		sampler__run(regs);
		ok(has_frame(0, (pushing + 20) | X, AT(6)) &&
			   has_frame(1, caller + 100, AT(16 + n)) &&
			   has_frame(2, stub + 50, AT(32 + n)) &&
			   host.sample.head.flags & SAMPLE_COMPLETE,
		   "a stub with arguments on the stack, caller %zu", i);
	}
}

/* C2 temporarily pushes a word. Without a call of the method the word is not a proof. */
static void test_pushed(void)
{
	for (int i = 1; i <= 8; i++) {
		bool called = i <= 4;
		int n = (i - 1) % 4 + 1;

		set_callers();
		if (!called)
			put_call(caller + 95, stub);
		memmove(stack + n, stack, 100 * sizeof(*stack));
		memset(stack, 0, n * sizeof(*stack));
		stack[14 + n] = AT(30 + n);
		sampler__run(regs);
		ok(has_frame(0, (callee + 64) | X, AT(6 + n)) &&
			   has_frame(1, called ? caller + 100 : INFERRED(caller + 100),
				     AT(16 + n)) &&
			   has_frame(2, stub + 50, AT(32 + n)) &&
			   !(host.sample.head.flags & SAMPLE_COMPLETE) == !called,
		   "%d words more than the frame has, %s", n, called ? "called" : "not called");
	}
}

/* A method is interrupted while it has two words pushed: before the call that needs them, and
 * behind that. An earlier call left a return address at the end that the frame would have without
 * them. */
static void test_interrupted_with_words(void)
{
	for (int popping = 0; popping < 2; popping++) {
		uint64_t returns = popping ? caller + 100 : INFERRED(caller + 100);

		set_callers();
		if (popping)
			put_code(callee + 64, "\x41\x58\x5e", 3); /* pop %r8; pop %rsi */
		else
			put_call(callee + 64, stub);
		memmove(stack + 2, stack, 100 * sizeof(*stack));
		put_call(caller + 195, stub);
		stack[5] = caller + 200;
		stack[16] = AT(32);
		stack[0] = regs[UNWIND_REG_RDX] = 0x1234560;
		sampler__run(regs);
		ok(has_frame(0, (callee + 64) | X, AT(8)) && has_frame(1, returns, AT(18)) &&
			   has_frame(2, stub + 50, AT(34)) &&
			   !(host.sample.head.flags & SAMPLE_COMPLETE) == !popping,
		   "interrupted with two words pushed, %s a call", popping ? "behind" : "before");
	}
}

/* The outermost frame of a virtual thread on the stack returns to a stub. The frames that mounted
 * the thread follow. */
static void test_barrier(void)
{
	for (int n = 2; n <= 20; n += 6) {
		set_callers();
		stack[15] = put_blob(300, 10, false, 0) + 9;
		stack[14] = 0xbad; /* rbp may be invalid here */
		stack[16 + n] = caller + 100;
		stack[16 + n + 10] = stub + 50;
		stack[16 + n + 9] = AT(60);
		stack[61] = PC(0);
		stack[60] = AT(70);
		jvm->call_stub_return = stub + 50;
		sampler__run(regs);
		ok(has_frame(2, stack[15], AT(17 + n)) && has_frame(3, caller + 100, AT(27 + n)) &&
			   has_frame(4, stub + 50, AT(62)) && has_frame(5, PC(0), AT(62)),
		   "the return barrier, with %d words behind it", n);
	}
	jvm->call_stub_return = 0;
}

/* The stub method_entry_barrier has a word between its frame and the return address, and saves
 * registers, which may have any value. */
static void test_cookie(void)
{
	set_callers();
	jvm->call_stub_return = stub + 50;
	stack[5] = stub + 20;
	stack[8] = caller + 8;
	stack[4] = AT(10);
	stack[10] = 0xbad;
	stack[11] = ~0ULL;
	stack[12] = caller + 100;
	stack[22] = stub + 50;
	stack[21] = AT(30);
	sampler__run(regs);
	ok(has_frame(1, stub + 20, AT(13)) && has_frame(2, caller + 100, AT(23)) &&
		   has_frame(3, stub + 50, AT(32)),
	   "an entry barrier");
	jvm->call_stub_return = 0;
}

/* Stubs that throw end without a return address on the stack: it is in rdx. They do not record the
 * length of their prologue. */
static void test_throwing(void)
{
	int32_t never = -1;

	set_callers();
	callee = put_blob(300, 10, false, 4);
	memcpy(heap + (callee - HEAP) - CODE_AT + offsets.blob_frame_complete, &never, 4);
	put_code(callee + 20, "\x5d\x5a\x41\xff\xe2", 5); /* pop rbp; pop rdx; jmp r10 */
	regs[UNWIND_REG_PC] = callee + 22;
	regs[UNWIND_REG_RSP] = AT(6);
	regs[UNWIND_REG_RDX] = caller + 100;
	sampler__run(regs);
	ok(has_frame(0, (callee + 22) | X, AT(16)) && has_frame(1, stub + 50, AT(32)),
	   "at the end of a stub that throws");
	set_callers();
	callee = put_blob(300, 10, false, 4);
	memcpy(heap + (callee - HEAP) - CODE_AT + offsets.blob_frame_complete, &never, 4);
	stack[3] = stack[0] = caller + 100; /* copy of the return address */
	stack[13] = stub + 50;
	stack[12] = AT(30);
	regs[UNWIND_REG_PC] = callee + 21;
	sampler__run(regs);
	ok(has_frame(0, (callee + 21) | X, AT(4)) && has_frame(1, caller + 100, AT(14)),
	   "in the midst of it");
}

/* The blob that finds the handler of an exception: the address that threw is in rdx, which the blob
 * pushes. If the blob has no frame, the word at its return address belongs to the handler's frame.
 */
static void test_exception(void)
{
	static const char code[] = "\x52\x48\x83\xec\x08\x48\x89\x2c\x24" /* push rdx; ... */
				   "\x48\x83\xc4\x08\x5a\x4c\x8b\xc0";	  /* add; pop rdx; ... */
	static const struct {
		const char *name;
		int at, sp; /* offset in `code`; word of the stack */
		bool in_rdx, is_popped;
	} places[] = {
		{ "before it pushes", 0, 6, true, true },  { "pushed", 1, 5, true, false },
		{ "with its frame", 5, 4, true, false },   { "called", 9, 4, false, false },
		{ "before it pops", 13, 5, false, false }, { "popped", 14, 6, true, true },
	};
	int32_t never = -1;
	uint64_t thrown = caller + 100, blob;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		set_callers();
		jvm->exception_pc = 40;
		memcpy(texts + 40, &thrown, sizeof(thrown));
		blob = put_blob(300, 10, false, 2);
		memcpy(heap + (blob - HEAP) - CODE_AT + offsets.blob_frame_complete, &never, 4);
		put_code(blob, code, sizeof(code) - 1);
		stack[6] = stack[7] = callee + 64;
		regs[UNWIND_REG_PC] = blob + places[i].at;
		regs[UNWIND_REG_RSP] = AT(places[i].sp);
		regs[UNWIND_REG_RDX] = places[i].in_rdx ? thrown : 0xbad;
		regs[UNWIND_REG_R15] = TEXTS;
		sampler__run(regs);
		if (places[i].is_popped)
			ok(has_frame(0, (blob + places[i].at) | X, AT(16)) &&
				   has_frame(1, stub + 50, AT(32)),
			   "an exception blob, %s", places[i].name);
		else
			ok(has_frame(0, (blob + places[i].at) | X, AT(6)) &&
				   (has_frame(1, thrown, AT(16)) ||
				    has_frame(1, INFERRED(thrown), AT(16))) &&
				   has_frame(2, stub + 50, AT(32)),
			   "an exception blob, %s", places[i].name);
	}
	jvm->exception_pc = 0;
}

static void test_hostile(void)
{
	set_callers();
	segmap[0] = segmap[1] = segmap[2] = 1; /* the tag of the first segment leads backwards */
	sampler__run(regs);
	is_int(host.sample.head.n_native, 1, "tags that lead out of the heap");
	ok(host.sample.head.stop, "... cut the stack");
	set_callers();
	segmap[(callee + 64 - HEAP) >> SEGMENT_LOG2] = 0xff;
	sampler__run(regs);
	is_int(host.sample.head.n_native, 1, "code that was freed");
	set_callers();
	jvm->offsets.blob_frame_size = 65535;
	jvm->offsets.blob_code = 65530;
	sampler__run(regs);
	ok(host.sample.head.n_native >= 1, "offsets out of bounds");
	set_callers();
	stack[5] = callee + 64; /* endless calls of itself */
	for (int i = 5; i < STACK_WORDS; i += 6)
		stack[i] = callee + 64;
	sampler__run(regs);
	ok(host.sample.head.n_native <= NATIVE_FRAMES_MAX, "no end");
	set_callers();
	regs[UNWIND_REG_RSP] = 0x10; /* unreadable address */
	sampler__run(regs);
	is_int(host.sample.head.stop, COUNT_STACK_READ, "no stack");
}

int main(void)
{
	sampler__open();
	open_jvm();
	test_whole();
	test_places();
	test_segments();
	test_interpreted();
	test_older_polls();
	test_bytecodes();
	test_entered();
	test_cached();
	test_frameless_stub();
	test_stub_that_pushes();
	test_stub_with_arguments();
	test_pushed();
	test_interrupted_with_words();
	test_barrier();
	test_cookie();
	test_throwing();
	test_exception();
	test_hostile();
	sampler__close();
	return tap__done();
}
