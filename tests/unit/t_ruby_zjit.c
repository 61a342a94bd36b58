// SPDX-License-Identifier: GPL-2.0-or-later
/* The CRuby walker on frames of ZJIT's code, as zjit.h of 4.1 describes them: the control frame's
 * own pc and iseq are those of an earlier frame. */
#include "tests/unit/ruby_made_up.h"

#define NATIVE_WORDS 64
#define ZJIT_CODE    0x60000000ULL
#define ZJIT_BYTES   0x10000
#define C_FRAME	     1

static size_t nth;	      /* of versions_made_up */
static uint64_t entry_at;     /* address of rb_zjit_entry */
static uint64_t native, slot; /* the native stack, and the next word of it for a record */

static void reset_zjit(uint64_t entry)
{
	reset(nth);
	entry_at = make(8);
	put(entry_at, entry);
	proc.zjit_at = entry_at;
	proc.zjit_start = ZJIT_CODE;
	proc.zjit_end = ZJIT_CODE + ZJIT_BYTES;
	walker__attach(&proc);
	native = make(8 * NATIVE_WORDS);
	slot = native + 8 * NATIVE_WORDS;
	scratch__get()->interrupted[UNWIND_REG_PC] = 0x400000;
}

/* The innermost frame becomes one of compiled code, at the instruction before @index. Its pc and
 * iseq are those of "stale". */
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
	is_int(FRAME_KEY_INDEX(sample__key(0)), 2, "%s: the innermost one's instruction", version);
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

/* Compiled code stores where it is at calls only. */
static void test_line(void)
{
	__u64 *pc = &scratch__get()->interrupted[UNWIND_REG_PC];

	reset_zjit(ZJIT_CODE);
	enter("main");
	compile(3);
	call("f");
	compile(7);
	*pc = ZJIT_CODE + ZJIT_BYTES - 1;
	run();
	ok(FRAME_KEY_INDEX(sample__key(0)) == RUBY_INDEX_UNKNOWN && walked("|;main;f", 0),
	   "%s: compiled code itself executes: no line", version);
	is_int(FRAME_KEY_INDEX(sample__key(1)), 3, "%s: ... of the innermost frame", version);
	*pc = ZJIT_CODE + ZJIT_BYTES;
	run();
	is_int(FRAME_KEY_INDEX(sample__key(0)), 7, "%s: what it has called executes", version);
	put(cfp + 48, 0);
	*pc = ZJIT_CODE;
	run();
	is_int(FRAME_KEY_INDEX(sample__key(0)), 1, "%s: an interpreted frame has its line",
	       version);
}

/* 4.0 has ZJIT, and its frames have their iseq themselves. */
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
	for (nth = 0; nth < ARRAY_SIZE(versions_made_up); nth++) {
		const struct ruby_number_of *number = &versions_made_up[nth];

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
	}
	walker__close();
	return tap__done();
}
