// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel half's unwinder in HotSpot's code, at places that tests/long/jvm_steps.t found: edges
 * of stubs, adapters, and entries and ends of interpreted methods. */
#include "tests/unit/jvm_code.h"

static struct scratch *scratch;

/* A call that leads behind the caller's code does not enter the frame there. */
static void test_static_call(void)
{
	for (int jumps = 0; jumps < 2; jumps++) {
		set_callers();
		put_call(caller + 95, caller + 300);
		put_jump_with_method(caller + 300, stub);
		regs[UNWIND_REG_PC] = caller + 300 + 10 * jumps;
		regs[UNWIND_REG_RSP] = AT(5);
		sampler__run(regs);
		ok(has_frame(0, (caller + 300 + 10 * jumps) | X, AT(16)) &&
			   has_frame(1, stub + 50, AT(32)) && has_frame(2, PC(0), AT(32)),
		   "a static call, %s", jumps ? "at the jump" : "before");
	}
}

/* The handler's own call led to the blob. The handler's frame exists, though its return address is
 * not yet that of the exception. */
static void test_exception_from_callee(void)
{
	uint64_t thrown = caller + 100, blob;

	set_callers();
	jvm->exception_pc = 40;
	memcpy(texts + 40, &thrown, sizeof(thrown));
	blob = put_blob(300, 10, false, 2);
	put_call(caller + 145, blob);
	stack[5] = caller + 150;
	stack[4] = 0xbad;
	regs[UNWIND_REG_PC] = blob + 18;
	regs[UNWIND_REG_RSP] = regs[UNWIND_REG_RBP] = AT(4);
	regs[UNWIND_REG_RDX] = thrown;
	regs[UNWIND_REG_R15] = TEXTS;
	sampler__run(regs);
	ok(has_frame(0, (blob + 18) | X, AT(6)) && has_frame(1, caller + 150, AT(16)) &&
		   has_frame(2, stub + 50, AT(32)),
	   "an exception that the callee has thrown");
	jvm->exception_pc = 0;
}

/* A stub that saves registers has set rbp. The end of its future frame contains a return address of
 * another call. */
static void test_saving(void)
{
	uint64_t blob;

	set_callers();
	blob = put_blob(300, 10, false, 8);
	put_call(caller + 95, blob);
	put_code(blob, "\x55\x48\x8b\xec\x48\x83\xec\x10", 8);
	stack[9] = callee + 64;
	regs[UNWIND_REG_PC] = blob + 60;
	regs[UNWIND_REG_RSP] = AT(2);
	regs[UNWIND_REG_RBP] = AT(4);
	sampler__run(regs);
	ok(has_frame(0, (blob + 60) | X, AT(6)) && has_frame(1, caller + 100, AT(16)) &&
		   has_frame(2, stub + 50, AT(32)),
	   "a stub that saves registers");
}

/* Instructions of a blob that resolves calls. The call of it that brought the thread here was
 * resolved meanwhile, and leads elsewhere. The end that the whole frame would have contains a
 * return address of another call. */
static void test_heights(void)
{
	static const char code[] =
		"\x55\x48\x8b\xec\x9c\x48\x83\xec\x08" /* push rbp; mov rbp, rsp; pushf; sub 8 */
		"\x48\x81\xec\x10\x00\x00\x00"	       /* sub rsp, 16 */
		"\x48\x89\x44\x24\x08\x48\x89\x2c\x24" /* mov [rsp + 8], rax; mov [rsp], rbp */
		"\xc5\xf8\x77"			       /* vzeroupper */
		"\x48\x8b\x2c\x24\x48\x8b\x44\x24\x08" /* mov rbp, [rsp]; mov rax, [rsp + 8] */
		"\x48\x81\xc4\x10\x00\x00\x00"	       /* add rsp, 16 */
		"\x48\x83\xc4\x08\x9d\x5d\xff\xe0";    /* add 8; popf; pop rbp; jmp rax */
	static const struct {
		int at, words; /* offset in `code`; words above the return address */
	} places[] = {
		{ 0, 0 },  { 1, 1 },  { 4, 1 },	 { 5, 2 },  { 9, 3 },  { 16, 5 }, { 21, 5 },
		{ 28, 5 }, { 32, 5 }, { 37, 5 }, { 44, 3 }, { 48, 2 }, { 49, 1 }, { 50, 0 }
	};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		uint64_t blob;

		set_callers();
		blob = put_blob(300, 10, false, 12);
		put_code(blob, code, sizeof(code) - 1);
		stack[8] = caller + 100;
		stack[7] = AT(11);
		stack[18] = stub + 50;
		stack[17] = AT(30);
		for (int later = 12; later < 20; later++)
			stack[later] = later == 18 ? stub + 50 : later == 17 ? AT(30) : callee + 64;
		regs[UNWIND_REG_PC] = blob + places[i].at;
		regs[UNWIND_REG_RSP] = AT(8 - places[i].words);
		regs[UNWIND_REG_RBP] = AT(places[i].words > 1 || places[i].at == 4 ? 7 : 11);
		sampler__run(regs);
		ok(has_frame(0, (blob + places[i].at) | X, AT(9)) &&
			   has_frame(1, caller + 100, AT(19)) && has_frame(2, stub + 50, AT(32)) &&
			   host.sample.head.flags & SAMPLE_COMPLETE,
		   "a blob whose call was resolved meanwhile, %d bytes on", places[i].at);
	}
}

/* C1 calls slow_subtype_check: `push rdi; push rsi; call; pop rsi; pop rdi`. The end that the frame
 * would have without these words contains a return address of the interpreter. */
static void test_arguments(void)
{
	static const struct {
		int at, words;
	} places[] = { { 0, 0 }, { 1, 1 }, { 2, 2 }, { 7, 2 }, { 8, 1 }, { 9, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		int words = places[i].words;

		set_callers();
		put_code(callee + 64, "\x57\x56", 2);
		put_call(callee + 66, stub);
		put_code(callee + 71, "\x5e\x5f\x85\xff", 4);
		memmove(stack + words, stack, 100 * sizeof(*stack));
		for (int at = 0; at < words; at++)
			stack[5 + at] = INTERPRETER + 0x600;
		stack[14 + words] = AT(30 + words);
		regs[UNWIND_REG_PC] = callee + 64 + places[i].at;
		sampler__run(regs);
		ok(has_frame(0, regs[UNWIND_REG_PC] | X, AT(6 + words)) &&
			   has_frame(1, caller + 100, AT(16 + words)) &&
			   has_frame(2, stub + 50, AT(32 + words)) &&
			   host.sample.head.flags & SAMPLE_COMPLETE,
		   "a call with arguments on the stack, %d bytes on", places[i].at);
	}
}

/* At the edges of a stub its instructions decide, also for a caller in native code. In its body, an
 * earlier call may have left a word in its variables. */
static void test_stub_edges(void)
{
	static const struct {
		const char *name, code[8];
		int before, words;
	} edges[] = {
		{ "before it pushes rbp", "\x55\x48\x8b\xec", 0, 0 },
		{ "before it sets rbp", "\x55\x48\x8b\xec", 1, 1 },
		{ "at its return", "\x5d\xc3", 1, 0 },
	};
	uint64_t copies;

	for (size_t i = 0; i < ARRAY_SIZE(edges); i++) {
		set_callers();
		copies = put_blob(300, 10, false, 0);
		put_code(copies + 40, edges[i].code, 8);
		put_call(caller + 95, copies + 40);
		regs[UNWIND_REG_PC] = copies + 40 + edges[i].before;
		regs[UNWIND_REG_RSP] = AT(5 - edges[i].words);
		regs[UNWIND_REG_RBP] = AT(14); /* frame of another call of it */
		stack[15] = caller + 100;
		sampler__run(regs);
		ok(has_frame(0, (copies + 40 + edges[i].before) | X, AT(6)) &&
			   has_frame(1, caller + 100, AT(16)),
		   "a stub, %s", edges[i].name);
	}
	set_callers();
	copies = put_blob(300, 10, false, 0);
	put_call(caller + 95, copies);
	put_code(copies, "\x50\x50\x90", 3); /* two pushes */
	regs[UNWIND_REG_PC] = copies + 20;
	regs[UNWIND_REG_RSP] = AT(1);
	sampler__run(regs);
	ok(has_frame(1, INFERRED(caller + 100), AT(16)) &&
		   !(host.sample.head.flags & SAMPLE_COMPLETE),
	   "a return address below other words than pushed ones");
}

/* A function inside the stub has no frame; the frame pointer is the stub's. */
static void test_stub_calls_itself(void)
{
	uint64_t hashes;

	set_callers();
	hashes = put_blob(300, 10, false, 0);
	put_call(caller + 95, hashes);
	put_call(hashes + 30, hashes + 200);
	stack[5] = caller + 100;
	stack[4] = 0xbad;
	stack[2] = hashes + 35;
	regs[UNWIND_REG_PC] = hashes + 220;
	regs[UNWIND_REG_RSP] = AT(2);
	regs[UNWIND_REG_RBP] = AT(4);
	sampler__run(regs);
	ok(has_frame(0, (hashes + 220) | X, AT(3)) && has_frame(1, hashes + 35, AT(6)) &&
		   has_frame(2, caller + 100, AT(16)) && has_frame(3, stub + 50, AT(32)),
	   "a stub's own function");
	put_call(hashes + 210, hashes + 240); /* and calls another one */
	stack[1] = hashes + 215;
	regs[UNWIND_REG_PC] = hashes + 250;
	regs[UNWIND_REG_RSP] = AT(1);
	sampler__run(regs);
	ok(has_frame(0, (hashes + 250) | X, AT(2)) && has_frame(1, hashes + 215, AT(3)) &&
		   has_frame(2, hashes + 35, AT(6)) && has_frame(3, caller + 100, AT(16)) &&
		   has_frame(4, stub + 50, AT(32)),
	   "a stub's own function, called by another one");
}

/* Compiled code calls an interpreted method, while rbp is that of an outer interpreted frame. */
static void set_entry(uint64_t const_method)
{
	set_callers();
	stack[44] = AT(60); /* the frame: sender's stack pointer, method, bytecode */
	stack[43] = AT(46);
	stack[41] = METHOD;
	stack[44 - JVM_BCP_WORDS] = const_method + 8;
	stack[45] = INTERPRETER + 0x600;
	stack[44] = AT(60);
	regs[UNWIND_REG_RBP] = AT(44);
	regs[UNWIND_REG_R13] = AT(6);
	regs[UNWIND_REG_PC] = INTERPRETER + 0x700;
	regs[UNWIND_REG_RSP] = AT(3);
	stack[15] = INTERPRETER + 0x610;
}

static void test_called_entry(void)
{
	uint64_t const_method;

	memcpy(&const_method, texts, sizeof(const_method));
	set_entry(const_method);
	stack[3] = caller + 100;
	sampler__run(regs);
	ok(has_frame(0, (INTERPRETER + 0x700) | X, AT(4)) && has_frame(1, caller + 100, AT(16)),
	   "an entry, the return address on top");
	set_entry(const_method);
	stack[3] = 0;
	regs[UNWIND_REG_RAX] = caller + 100;
	sampler__run(regs);
	ok(has_frame(0, (INTERPRETER + 0x700) | X, AT(16)) && scratch->n_runtime_frames &&
		   FRAME_KEY_INDEX(scratch->runtime_frames[0].key) == 100,
	   "an entry, the return address popped");
}

/* Tests the places of the return address in adapters between compiled and interpreted code. The
 * instructions before the pc determine the place (bpf/jvm_adapters.bpf.h). */
static void test_adapter(void)
{
	static const struct {
		const char *name, *code;
		size_t bytes;
		bool popped, at_r13, inferred;
	} states[] = {
		{ "entered", "\x90", 1, .popped = false },
		{ "with room for arguments", "\x58\x48\x83\xec\x08", 5, .popped = true },
		{ "with the address pushed", "\x58\x48\x83\xec\x08\x50", 6, .inferred = true },
		{ "of the second part, with the address pushed",
		  "\x58\x48\x83\xec\x08\x50\x41\xff\xe3\x58\x48\x83\xec\x08\x50", 15,
		  .popped = false },
		{ "that calls the JVM", "\x4c\x8b\xec\x48\x8b\x04\x24", 7, .at_r13 = true },
	};
	uint64_t adapter, pc;

	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		set_callers();
		strcpy(texts + 32, "I2C/C2I adapters");
		adapter = put_blob(300, 10, false, 0);
		put_call(caller + 95, callee);
		put_code(adapter, states[i].code, states[i].bytes);
		pc = adapter + states[i].bytes;
		stack[1] = states[i].popped || states[i].at_r13 ? 0xbad : caller + 100;
		stack[5] = states[i].at_r13 ? caller + 100 : 0xbad;
		regs[UNWIND_REG_RAX] = states[i].popped ? caller + 100 : 0xbad;
		regs[UNWIND_REG_PC] = pc;
		regs[UNWIND_REG_RSP] = AT(1);
		regs[UNWIND_REG_R13] = states[i].at_r13 ? AT(5) : AT(6);
		sampler__run(regs);
		if (states[i].popped)
			ok(has_frame(0, pc | X, AT(16)) && has_frame(1, stub + 50, AT(32)),
			   "an adapter %s", states[i].name);
		else
			ok(has_frame(0, pc | X, states[i].at_r13 ? AT(6) : AT(2)) &&
				   has_frame(1,
					     states[i].inferred ? INFERRED(caller + 100)
								: caller + 100,
					     AT(16)) &&
				   has_frame(2, stub + 50, AT(32)),
			   "an adapter %s", states[i].name);
		memset(texts + 32, 0, 32);
	}
}

/* Tests the last instructions of an interpreted method. */
static void test_left(void)
{
	static const char end[64] =
		"\x90\x90\x90\x90\x90\x90\x90\x90"
		"\x41\x5d\x48\x8b\xe3\x41\xff\xe5"; /* pop r13; mov rsp, rbx; jmp r13 */

	for (int at = 0; at < 6; at += at ? 3 : 2) {
		set_callers();
		host__add_range(INTERPRETER - 8, end, sizeof(end));
		regs[UNWIND_REG_PC] = INTERPRETER + at;
		regs[UNWIND_REG_RSP] = at < 5 ? AT(3 + !!at) : AT(6);
		stack[3] = caller + 100;
		regs[UNWIND_REG_RBX] = AT(6);
		regs[UNWIND_REG_R13] = caller + 100;
		sampler__run(regs);
		ok(at ? has_frame(1, stub + 50, AT(32))
		      : has_frame(1, caller + 100, AT(16)) && has_frame(2, stub + 50, AT(32)),
		   "the end of an interpreted method, %d bytes on", at);
	}
}

/* JDK 25 clears a flag of the thread before these instructions. */
static void test_left_cleared(void)
{
	static const char end[64] = "\x90\x90\x90\x90\x90\x90\x90\x90"
				    "\x41\xc6\x87\xbe\x03\x00\x00\x00"
				    "\x41\x5d\x48\x8b\xe3\x41\xff\xe5";

	set_callers();
	host__add_range(INTERPRETER - 8, end, sizeof(end));
	regs[UNWIND_REG_PC] = INTERPRETER;
	regs[UNWIND_REG_RSP] = AT(3);
	stack[3] = caller + 100;
	regs[UNWIND_REG_RBX] = AT(6);
	regs[UNWIND_REG_R13] = AT(40);
	sampler__run(regs);
	ok(has_frame(1, caller + 100, AT(16)) && has_frame(2, stub + 50, AT(32)),
	   "the end of an interpreted method, before its flag is cleared");
}

/* A word that is code, but not the JVM's, is not the return address of the JVM's code. Such code
 * may use rbp for any purpose. */
static void test_no_return_address(void)
{
	for (int outer = 0; outer < 3; outer++) {
		set_callers();
		if (outer == 2) {
			regs[UNWIND_REG_PC] = INTERPRETER + 0x800;
			stack[0] = PC(0);
		}
		stack[outer ? 15 : 5] = PC(0);
		stack[outer ? 14 : 4] = regs[UNWIND_REG_RBP] = AT(30);
		sampler__run(regs);
		ok(host.sample.head.n_native == (outer == 1 ? 2 : 1) &&
			   !(host.sample.head.flags & SAMPLE_COMPLETE) &&
			   host.sample.head.stop == COUNT_NO_RULE,
		   "no return address to the JVM's code, %s",
		   outer == 2 ? "in the interpreter"
		   : outer    ? "outer frame"
			      : "innermost frame");
	}
}

int main(void)
{
	static const uint32_t zero = 0;

	sampler__open();
	open_jvm();
	scratch = bpf_map_lookup_elem(&scratches, &zero);
	test_static_call();
	test_exception_from_callee();
	test_saving();
	test_heights();
	test_arguments();
	test_stub_edges();
	test_stub_calls_itself();
	test_called_entry();
	test_adapter();
	test_left();
	test_left_cleared();
	test_no_return_address();
	sampler__close();
	return tap__done();
}
