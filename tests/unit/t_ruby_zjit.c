// SPDX-License-Identifier: GPL-2.0-or-later
/* The CRuby walker on frames of ZJIT's code, as zjit.h of 4.1 describes them: the control frame's
 * own pc and iseq are those of an earlier frame. */
#include "tests/unit/ruby_synthetic.h"

#define NATIVE_WORDS 64
#define ZJIT_CODE    ((uintptr_t)code)
#define ZJIT_BYTES   sizeof(code)
#define C_FRAME	     1

static uint8_t code[4096];

static size_t nth;	      /* index in synthetic_versions */
static uint64_t entry_at;     /* address of rb_zjit_entry */
static uint64_t native, slot; /* the native stack, and the next word in it for a record */

static void reset_zjit(uint64_t entry)
{
	reset(nth);
	entry_at = make(8);
	put(entry_at, entry);
	proc.zjit_at = entry_at;
	proc.jit_start = ZJIT_CODE;
	proc.jit_end = ZJIT_CODE + ZJIT_BYTES;
	walker__attach(&proc);
	native = make(8 * NATIVE_WORDS);
	slot = native + 8 * NATIVE_WORDS;
	memset(code, 0x90, sizeof(code));
	n_native_ips = 0;
	host__add_range(ZJIT_CODE, code, sizeof(code));
}

/* Makes the innermost frame one of compiled code, at the instruction before @index. Its pc and iseq
 * are those of "stale". */
static void compile(int index)
{
	uint64_t iseq = get(cfp + 16), record = make(32), stale = make_iseq("stale");

	put(record, get(get(iseq + 16) + 8) + 8 * index);
	put(record + 8, iseq);
	slot -= 8;
	put(slot, record);
	put(cfp, get(get(stale + 16) + 8) + 8);
	put(cfp + 16, stale);
	put(cfp + 48, slot + 8);
}

static uint64_t record(void)
{
	return get(get(cfp + 48) - 8);
}

static void test_frames(void)
{
	reset_zjit(ZJIT_CODE);
	enter("main");
	call("compiled");
	compile(7);
	call("inlined");
	compile(9);
	call_c("each");
	put(cfp + 48, C_FRAME);
	put(cfp, NOWHERE);
	put(cfp + 16, NOWHERE);
	yield("block in inlined");
	compile(2);
	run();
	ok(walked("|;main;compiled;inlined;each;block in inlined", 0), "%s: frames of ZJIT",
	   version);
	is_int(FRAME_KEY_INDEX(sample__key(0)), RUBY_INDEX_UNKNOWN,
	       "%s: nothing proves the innermost one's instruction", version);
	is_int(FRAME_KEY_INDEX(sample__key(2)), 9, "%s: that of an inlined frame", version);
	is_int(FRAME_KEY_INDEX(sample__key(3)), 7, "%s: that of the frame around it", version);
	is_int(FRAME_KEY_INDEX(sample__key(4)), INDEX, "%s: that of an interpreted one", version);
	put(cfp + 48, 0);
	run();
	ok(walked("|;main;compiled;inlined;each;stale", 0),
	   "%s: without a jit_return the control frame is right", version);
}

static void test_off(void)
{
	reset_zjit(0);
	enter("main");
	put(cfp + 48, 0x7f0012345678); /* an address in YJIT's code */
	call("f");
	compile(7);
	run();
	ok(walked("|;main;stale", 0), "%s: without ZJIT jit_return means nothing", version);
	put(entry_at, ZJIT_CODE);
	put(get(thread + o->thread_ec) + 16, cfp);
	run();
	ok(walked("|;?;f", 0), "%s: ZJIT is switched on", version);
}

static void test_unreadable(void)
{
	uint64_t at;

	reset_zjit(ZJIT_CODE);
	enter("main");
	call("f");
	compile(7);
	at = get(cfp + 48);
	put(cfp + 48, C_FRAME);
	ok(loses(COUNT_WALK_CODE, 1, "|;main;?", 0), "%s: the mark of C methods elsewhere",
	   version);
	put(cfp + 48, NOWHERE);
	ok(loses(COUNT_WALK_CODE, 1, "|;main;?", 0), "%s: no native frame", version);
	put(cfp + 48, at);
	put(record(), get(record()) + 8 * ISEQ_WORDS);
	ok(loses(COUNT_WALK_CODE, 1, "|;main;?", 0), "%s: a pc outside of its iseq", version);
	put(record() + 8, NOWHERE);
	ok(loses(COUNT_WALK_CODE, 1, "|;main;?", 0), "%s: no iseq", version);
	put(at - 8, NOWHERE);
	ok(loses(COUNT_WALK_CODE, 1, "|;main;?", 0), "%s: no record", version);
	put(at - 8, 0);
	ok(loses(COUNT_WALK_CODE, 1, "|;main;?", 0), "%s: a record that is not there yet", version);
}

#define RETURNS 2048 /* offset of a return address in the code */

/* Makes compiled code call a C function. The store of the record begins @n bytes before the return
 * address. */
static void call_after(size_t n)
{
	uint64_t at = record();

	memset(code, 0x90, sizeof(code));
	memcpy(code + RETURNS - n, "\x49\xbb", 2); /* mov $record,%r11 */
	memcpy(code + RETURNS - n + 2, &at, 8);
	memcpy(code + RETURNS - n + 10, "\x4c\x89\x5d\xf8", 4); /* mov %r11,-8(%rbp) */
	memcpy(code + RETURNS - 2, "\xff\xd0", 2);		/* call *%rax */
	native_ips[0] = 0x400000 | NATIVE_EXACT;
	native_ips[1] = 0x400100;
	native_ips[2] = ZJIT_CODE + RETURNS;
	n_native_ips = 3;
	run();
}

static uint32_t index_shown(void)
{
	return FRAME_KEY_INDEX(sample__key(0));
}

/* Writes a call (`call rel32`) of @target at byte @at. */
static void put_call(size_t at, uint64_t target)
{
	int32_t relative = target - (ZJIT_CODE + at + 5);

	code[at] = 0xe8;
	memcpy(code + at + 1, &relative, sizeof(relative));
}

/* Compiled code stores its position only before some calls. */
static void test_line(void)
{
	reset_zjit(ZJIT_CODE);
	enter("main");
	compile(3);
	call("f");
	compile(7);
	native_ips[0] = (ZJIT_CODE + 64) | NATIVE_EXACT;
	n_native_ips = 1;
	run();
	ok(index_shown() == RUBY_INDEX_UNKNOWN && walked("|;main;f", 0),
	   "%s: compiled code itself executes: no line", version);
	is_int(FRAME_KEY_INDEX(sample__key(1)), 3, "%s: ... of the innermost frame", version);
	call_after(40);
	is_int(index_shown(), 7, "%s: a call behind which the record is stored", version);
	call_after(ZJIT_BEFORE);
	is_int(index_shown(), 7, "%s: as far before it as is read", version);
	call_after(ZJIT_BEFORE + 8);
	ok(index_shown() == RUBY_INDEX_UNKNOWN && walked("|;main;f", 0),
	   "%s: the record is stored nowhere near: no line", version);
	put(cfp + 48, 0);
	run();
	is_int(index_shown(), 1, "%s: an interpreted frame has its line", version);
}

static void test_leaf_call(void)
{
	reset_zjit(ZJIT_CODE);
	enter("main");
	compile(7);
	call_after(60);
	is_int(index_shown(), 7, "%s: one call behind the record", version);
	memcpy(code + RETURNS - 30, "\xff\xd0", 2);
	run();
	is_int(index_shown(), RUBY_INDEX_UNKNOWN, "%s: a second call, by a register", version);
	call_after(60);
	put_call(RETURNS - 30, ZJIT_CODE + 16);
	run();
	is_int(index_shown(), RUBY_INDEX_UNKNOWN, "%s: a second call, of compiled code", version);
	put_call(RETURNS - 30, entry_at + 4096);
	run();
	is_int(index_shown(), RUBY_INDEX_UNKNOWN, "%s: ... of a C function", version);
	put_call(RETURNS - 30, entry_at + 3 * ZJIT_NEAR);
	run();
	is_int(index_shown(), 7, "%s: a byte that is no call", version);
	call_after(60);
	put_call(RETURNS - 5, ZJIT_CODE + 16);
	run();
	is_int(index_shown(), 7, "%s: the call itself is of that form", version);
	native_ips[2] |= NATIVE_EXACT;
	run();
	is_int(index_shown(), RUBY_INDEX_UNKNOWN, "%s: a signal's frame", version);
	n_native_ips = 2;
	run();
	is_int(index_shown(), RUBY_INDEX_UNKNOWN, "%s: native frames without compiled code",
	       version);
}

/* 4.0 has ZJIT, but its frames have their own iseq. */
static void test_before(void)
{
	reset_zjit(ZJIT_CODE);
	enter("main");
	call("f");
	compile(7);
	run();
	ok(walked("|;main;stale", 0), "%s: no such frames", version);
}

int main(void)
{
	walker__open();
	for (nth = 0; nth < ARRAY_SIZE(synthetic_versions); nth++) {
		const struct ruby_number_of *number = &synthetic_versions[nth];

		if (number->major < 4)
			continue;
		if (number->minor == 0) {
			test_before();
			continue;
		}
		test_frames();
		test_off();
		test_unreadable();
		test_line();
		test_leaf_call();
	}
	walker__close();
	return tap__done();
}
