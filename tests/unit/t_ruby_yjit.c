// SPDX-License-Identifier: GPL-2.0-or-later
/* The CRuby walker on an innermost frame of YJIT's code, whose pc may be that of an earlier call.
 */
#include "tests/unit/ruby_synthetic.h"

#define CODE_START ((uintptr_t)code)
#define C_CODE	   (CODE_START + 0x20000000) /* in reach of a `call` */
#define EXEC	   (C_CODE + 0x80000)	     /* rb_vm_exec */
#define EXEC_BYTES 0x1000
#define RETURNS	   2048 /* offset of a return address in the code */

static uint8_t code[4096];
static size_t nth; /* index in synthetic_versions */

static void native(uint64_t ip)
{
	native_ips[n_native_ips++] = ip;
}

/* Resets to a C function, called by compiled code, that executes in a frame of "f". */
static void reset_yjit(void)
{
	reset(nth);
	proc.jit_start = CODE_START;
	proc.jit_end = CODE_START + sizeof(code);
	proc.exec_start = EXEC;
	proc.exec_end = EXEC + EXEC_BYTES;
	walker__attach(&proc);
	memset(code, 0x90, sizeof(code));
	host__add_range(CODE_START, code, sizeof(code));
	enter("main");
	call("f");
	n_native_ips = 0;
	native((C_CODE + 8) | NATIVE_EXACT);
	native(C_CODE + 0x100);
	native(CODE_START + RETURNS);
	native(EXEC + 0x10);
}

/* Writes instructions into the code, @before bytes before the return address. */
static void put_code(size_t before, const void *bytes, size_t n)
{
	memcpy(code + RETURNS - before, bytes, n);
}

/* Writes `movabs $pc,%rax; mov %rax,(%r13)`, and the call. */
static void put_store(size_t before)
{
	uint64_t pc = get(cfp);

	put_code(before, "\x48\xb8", 2);
	put_code(before - 2, &pc, 8);
	put_code(before - 10, "\x49\x89\x45\x00", 4);
	put_code(2, "\xff\xd0", 2);
}

/* Writes an instruction of @opcode with @target: `call` is 0xe8, `jmp` 0xe9. */
static void put_branch(size_t before, uint8_t opcode, uint64_t target)
{
	int32_t relative = target - (CODE_START + RETURNS - before + 5);

	put_code(before, &opcode, 1);
	put_code(before - 1, &relative, sizeof(relative));
}

static uint32_t index_of(size_t n)
{
	return FRAME_KEY_INDEX(sample__key(n));
}

static bool has_line(void)
{
	run();
	return walked("|;main;f", 0) && index_of(0) == INDEX && index_of(1) == INDEX;
}

static bool has_no_line(void)
{
	run();
	return walked("|;main;f", 0) && index_of(0) == RUBY_INDEX_UNKNOWN && index_of(1) == INDEX;
}

static void test_place(void)
{
	reset_yjit();
	ok(has_no_line(), "%s: the code does not store this pc: no line, but the caller's",
	   version);
	put_store(60);
	ok(has_line(), "%s: the code stores this pc", version);
	put(cfp, get(cfp) + 8);
	run();
	is_int(index_of(0), RUBY_INDEX_UNKNOWN, "%s: it stores another one", version);
	reset_yjit();
	put_store(ZJIT_BEFORE);
	ok(has_line(), "%s: as far before it as is read", version);
	reset_yjit();
	put_store(ZJIT_BEFORE + 8);
	ok(has_no_line(), "%s: stored nowhere near", version);
}

static void test_natives(void)
{
	reset_yjit();
	put_store(60);
	native_ips[0] = (CODE_START + RETURNS) | NATIVE_EXACT;
	ok(has_no_line(), "%s: compiled code itself executes", version);
	native_ips[0] = C_CODE | NATIVE_EXACT;
	native_ips[2] |= NATIVE_EXACT;
	ok(has_no_line(), "%s: a signal has interrupted compiled code", version);
	n_native_ips = 2;
	ok(has_no_line(), "%s: the native stack is cut before", version);
	native(EXEC + EXEC_BYTES - 1);
	native(CODE_START + RETURNS);
	memset(code, 0x90, sizeof(code));
	ok(has_line(), "%s: the interpreter runs the frame, compiled code an outer one", version);
	n_native_ips = 2;
	proc.jit_start = proc.jit_end = 0;
	walker__attach(&proc);
	ok(has_line(), "%s: no compiled code in this process", version);
}

/* The words of a sample do not contain native frames that were cached from an earlier sample. */
static void test_cached(void)
{
	struct scratch *scratch = scratch__get();
	struct zjit_call call;

	reset_yjit();
	run();
	scratch->cached.absent = 2;
	is_int(yjit__find(scratch, &proc, &call), YJIT_NONE,
	       "%s: the interpreter's native frame is an earlier sample's", version);
	scratch->cached.absent = 1;
	ok(yjit__find(scratch, &proc, &call) == YJIT_CALLS && call.returns == CODE_START + RETURNS,
	   "%s: so is one around compiled code", version);
	scratch->cached.absent = 0;
}

static void test_c_frame(void)
{
	reset_yjit();
	call_c("length");
	run();
	ok(walked("|;main;f;length", 0) && index_of(1) == INDEX,
	   "%s: the caller of a C method has its line", version);
}

/* The interrupted pc is between the store and the call. */
static void test_between(void)
{
	static const struct {
		const char *bytes, *what;
		size_t n;
	} ends[] = {
		{ "\xff\xd0", "a call by a register", 2 },
		{ "\x4d\x89\x6c\x24\x10", "a control frame", 5 },
		{ "\x5b\x41\x5c\x41\x5d", "the end of compiled code", 5 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		reset_yjit();
		put_store(60);
		put_code(30, ends[i].bytes, ends[i].n);
		ok(has_no_line(), "%s: %s lies in between", version, ends[i].what);
	}
	reset_yjit();
	put_store(60);
	put_branch(30, 0xe8, C_CODE + 0x5000);
	ok(has_no_line(), "%s: a call of a C function lies in between", version);
	put_branch(30, 0xe9, CODE_START + 64);
	ok(has_no_line(), "%s: a jump lies in between", version);
	put_branch(30, 0xe8, C_CODE + 3 * ZJIT_NEAR);
	ok(has_line(), "%s: a byte that is no call", version);
	put_branch(5, 0xe8, C_CODE + 0x100);
	ok(has_line(), "%s: the call itself is of that form", version);
}

/* Shorter instructions store a pc below 4 GiB. */
static void test_low(void)
{
	struct zjit_call call = { .record = 0x12345678 };

	call.last_bytes = 0x123456780045c749;
	ok(yjit__stores(&call), "%s: movq $pc,(%%r13)", version);
	call.last_bytes = 0x12345678b8000000;
	ok(yjit__stores(&call), "%s: mov $pc,%%eax", version);
	call.last_bytes = 0x1234567800000000;
	ok(!yjit__stores(&call), "%s: neither", version);
}

int main(void)
{
	walker__open();
	for (nth = 0; nth < ARRAY_SIZE(synthetic_versions); nth++) {
		if (synthetic_versions[nth].major * 10 + synthetic_versions[nth].minor < 31)
			continue;
		test_place();
		test_natives();
		test_cached();
		test_c_frame();
		test_between();
		test_low();
	}
	walker__close();
	return tap__done();
}
