// SPDX-License-Identifier: GPL-2.0-or-later
/* The CPython walker on frames, code objects and strings that are made up. */
#include "tests/bpfhost/python_host.h"

#define BROKEN	  SAMPLE_RUNTIME_BROKEN
#define TRUNCATED SAMPLE_RUNTIME_TRUNCATED
#define NOWHERE	  0x5550000ULL

/* --- the memory of the process; addresses are those of this one --- */

static uint8_t arena[1 << 18] __attribute__((aligned(4096)));
static size_t used;
static uint64_t thread, tss, tstate; /* struct pthread, Py_tss_t, PyThreadState */
static const struct python_offsets *o;

static uint64_t make(size_t size)
{
	size_t at = used;

	used += (size + 15) & ~15UL;
	if (used > sizeof(arena))
		abort();
	memset(arena + at, 0, size);
	return (uintptr_t)arena + at;
}

static void put(uint64_t at, uint64_t value)
{
	memcpy((void *)at, &value, sizeof(value));
}

static void put32(uint64_t at, uint32_t value)
{
	memcpy((void *)at, &value, sizeof(value));
}

/* A compact string; `ascii` as CPython sees it. */
static uint64_t make_text(const void *chars, size_t len, unsigned int kind, bool ascii)
{
	uint32_t data = ascii ? o->unicode_ascii_data : o->unicode_compact_data;
	uint64_t text = make(data + len * kind + kind);

	put(text + 16, len);
	put(text + 24, 1000 + len + *(const uint8_t *)chars); /* a hash */
	put32(text + 32, kind << 2 | 1 << 5 | (ascii ? 1 << 6 : 0));
	memcpy((void *)(text + data), chars, len * kind);
	return text;
}

static uint64_t make_ascii(const char *text)
{
	return make_text(text, strlen(text), 1, true);
}

static void set_code(uint64_t code, uint64_t name, uint64_t table_bytes)
{
	uint64_t table = make(PYTHON_BYTES_DATA + table_bytes + 1);

	put(table + PYTHON_BYTES_SIZE, table_bytes);
	put32(code + o->code_first_line, 42);
	put(code + o->code_name, name);
	put(code + o->code_file, make_ascii("/some/file.py"));
	put(code + o->code_line_table, table);
}

static uint64_t make_code(const char *name)
{
	uint64_t code = make(o->code_bytecode + 64);

	set_code(code, make_ascii(name), 0);
	return code;
}

static uint64_t make_frame(uint64_t code, uint64_t previous, bool is_entry)
{
	uint64_t frame = make(o->frame_bytes);

	put(frame + o->frame_code, code);
	put(frame + o->frame_previous, previous);
	put(frame + o->frame_instr, code + o->code_bytecode + 8);
	*(char *)(frame + o->frame_is_entry) = is_entry;
	return frame;
}

static uint64_t make_cframe(uint64_t frame, uint64_t previous)
{
	uint64_t cframe = make(24);

	put(cframe + o->cframe_current_frame, frame);
	put(cframe + o->cframe_current_frame + 8, previous);
	return cframe;
}

static void set_cframe(uint64_t cframe)
{
	put(tstate + o->tstate_cframe, cframe);
}

static void set_key(uint32_t key)
{
	put(tss, 1 | (uint64_t)key << 32);
}

/* A thread that runs no Python frame; the root cframe is returned. */
static uint64_t reset(void)
{
	uint64_t root;

	used = 0;
	host.n_ranges = 0;
	host__add_range((uintptr_t)arena, arena, sizeof(arena));
	host_map__clear(&python_codes);
	host.now_ns += 1000000000;
	thread = make(4096);
	tss = make(8);
	tstate = make(512);
	set_key(3);
	put(thread + PTHREAD_SPECIFIC_FIRST + 16 * 3 + 8, tstate);
	put(tstate + o->tstate_thread_id, thread);
	walker__attach(tss);
	root = make_cframe(0, 0);
	set_cframe(root);
	return root;
}

static void run(void)
{
	walker__run(getpid(), thread);
}

/* Frames of outer(), which calls middle(), which calls inner() in the same eval loop. */
static uint64_t make_chain(uint64_t previous)
{
	uint64_t frame = make_frame(make_code("outer"), previous, true);

	frame = make_frame(make_code("middle"), frame, false);
	return make_frame(make_code("inner"), frame, false);
}

static bool walked(const char *want, uint32_t flags)
{
	bool good = strcmp(chain(), want) == 0 && host.sample.head.flags == flags;

	if (!good)
		tap__diag("'%s', want '%s'; flags %d", chain(), want, host.sample.head.flags);
	return good;
}

/* --- segments --- */

static void test_chains(void)
{
	uint64_t root = reset(), first, second, frame;
	int bad = 0;

	run();
	ok(walked("", 0), "no frames");
	first = make_cframe(make_chain(0), root);
	set_cframe(first);
	run();
	ok(walked("outer;middle;inner", 0), "one segment");
	for (int i = 0; i < 3; i++)
		bad += frame__anchor(i) != first || FRAME_KEY_INDEX(host.sample.words[2 * i]) != 8;
	is_int(bad, 0, "stack addresses and instructions");
	is_int(host.sample.head.walker, WALKER_PYTHON, "the walker's slot");

	memcpy(&frame, (void *)(first + o->cframe_current_frame), 8);
	second = make_cframe(make_frame(make_code("callback"), frame, true), first);
	set_cframe(second);
	run();
	ok(walked("outer;middle;inner;callback", 0), "two segments");
	ok(frame__anchor(0) == second && frame__anchor(1) == first, "each with its address");

	/* The loop has begun: its C frame is linked, what is in it was left there before. */
	set_cframe(make_cframe(make_frame(make_code("old"), root, true), second));
	run();
	ok(walked("outer;middle;inner;callback", 0), "frame left over from an earlier call");
	frame = make_frame(make_code("old"), 0, true);
	set_cframe(make_cframe(make_frame(make_code("older"), frame, false), second));
	run();
	ok(walked("outer;middle;inner;callback", 0), "two frames left over");
}

static void test_broken_chains(void)
{
	static const uint64_t garbage[] = { NOWHERE, 1, 0xdeadbeefdeadbeef, ~0ULL, ~7ULL };
	uint64_t root = reset(), inner, first, frame, code, before;

	inner = make_chain(0);
	first = make_cframe(inner, root);
	for (size_t i = 0; i < ARRAY_SIZE(garbage); i++) {
		set_cframe(make_cframe(garbage[i], first));
		run();
		ok(walked("outer;middle;inner", 0), "garbage in the innermost segment: %#llx",
		   (unsigned long long)garbage[i]);
		before = counted(COUNT_WALK_READ);
		put(first + o->cframe_current_frame, garbage[i]);
		set_cframe(make_cframe(make_frame(make_code("callback"), garbage[i], true), first));
		run();
		ok(walked("callback", BROKEN) && counted(COUNT_WALK_READ) == before + 1,
		   "garbage in the segment outside it");
		put(first + o->cframe_current_frame, inner);
	}
	before = counted(COUNT_WALK_READ);
	set_cframe(make_cframe(make_frame(make_code("f"), 0, false), root));
	run();
	ok(walked("f", BROKEN) && counted(COUNT_WALK_READ) == before + 1,
	   "a frame that is not linked to its caller yet");
	set_cframe(make_cframe(make_frame(make_code("f"), NOWHERE, false), root));
	run();
	ok(walked("", BROKEN) && counted(COUNT_WALK_READ) == before + 2,
	   "or linked to garbage, and there is no segment outside");
	set_cframe(make_cframe(make_frame(NOWHERE, inner, true), first));
	run();
	ok(walked("outer;middle;inner", 0), "no code object in the innermost segment");
	code = make_code("gone");
	put(code + o->code_name, NOWHERE);
	frame = make_frame(code, 0, true);
	first = make_cframe(frame, root);
	set_cframe(make_cframe(make_frame(make_code("callback"), frame, true), first));
	before = counted(COUNT_WALK_CODE);
	run();
	ok(walked("?;callback", 0) && counted(COUNT_WALK_CODE) == before + 1,
	   "a code object outside it that cannot be read");

	set_cframe(make_cframe(make_frame(make_code("callback"), inner, true), NOWHERE));
	run();
	ok(walked("callback", BROKEN), "the C frame outside cannot be read");
	before = counted(COUNT_WALK_NO_STATE);
	set_cframe(NOWHERE);
	run();
	set_cframe(0);
	run();
	ok(walked("", 0) && counted(COUNT_WALK_NO_STATE) == before + 2, "no innermost C frame");
}

static void test_cycles(void)
{
	uint64_t root = reset(), frame, cframe, before = counted(COUNT_WALK_TRUNCATED);

	frame = make_frame(make_code("f"), 0, false);
	put(frame + o->frame_previous, frame);
	set_cframe(make_cframe(frame, root));
	run();
	is_int(host.sample.head.n_runtime, RUNTIME_FRAMES_MAX, "a frame that called itself");
	is_int(host.sample.head.flags, TRUNCATED, "such a stack is cut");
	frame = make_frame(make_code("f"), 0, true);
	put(frame + o->frame_previous, frame);
	cframe = make_cframe(frame, 0);
	put(cframe + o->cframe_current_frame + 8, cframe);
	set_cframe(cframe);
	run();
	is_int(host.sample.head.n_runtime, RUNTIME_FRAMES_MAX, "a C frame that called itself");
	is_int(host.sample.head.flags, TRUNCATED, "such a stack is cut, too");
	put(cframe + o->cframe_current_frame, NOWHERE);
	run();
	ok(walked("", BROKEN), "garbage in it");
	is_int(counted(COUNT_WALK_TRUNCATED) - before, 2, "both are counted");
}

/* `left_over`: begin with so many frames that are walked and forgotten. */
static void test_depth(int n, int left_over, uint32_t flags)
{
	uint64_t root = reset(), code = make_code("f"), frame = 0, cframe;

	for (int i = 0; i < n; i++)
		frame = make_frame(code, frame, !i);
	cframe = make_cframe(frame, root);
	frame = NOWHERE;
	for (int i = 0; i < left_over; i++)
		frame = make_frame(code, frame, !i);
	set_cframe(left_over ? make_cframe(frame, cframe) : cframe);
	run();
	is_int(host.sample.head.n_runtime, min_of(n, RUNTIME_FRAMES_MAX - left_over),
	       "%d frames behind %d: so many", n, left_over);
	is_int(host.sample.head.flags, flags, "%d frames behind %d: flags", n, left_over);
}

/* Nothing around a frame can be read, wherever it is in a page. */
static void test_places(void)
{
	uint64_t root = reset(), code, cframe;
	int bad = 0;

	code = make_code("f");
	cframe = make_cframe(0, root);
	set_cframe(cframe);
	used = (used + 4095) & ~4095UL;
	host.ranges[0].size = used;
	for (size_t at = used; at < used + 4096; at += 8) {
		uint64_t frame = (uintptr_t)arena + at;

		memset((void *)frame, 0, o->frame_bytes);
		put(frame + o->frame_code, code);
		*(char *)(frame + o->frame_is_entry) = 1;
		put(cframe + o->cframe_current_frame, frame);
		host.n_ranges = 1;
		host__add_range(frame, (void *)frame, o->frame_bytes);
		run();
		bad += !walked("f", 0);
	}
	is_int(bad, 0, "a frame alone in memory, at every place in a page");
}

/* --- code objects --- */

static void test_name(const char *what, const void *chars, size_t len, unsigned int kind,
		      bool ascii, const char *want)
{
	uint64_t root = reset(), code = make(o->code_bytecode + 64);

	set_code(code, make_text(chars, len, kind, ascii), 0);
	set_cframe(make_cframe(make_frame(code, 0, true), root));
	run();
	is_str(chain(), want, "%s", what);
}

static void test_names(void)
{
	static const uint16_t greek[] = { 0x3b1, 0x3b2 };
	static const uint32_t han[] = { 0x20000, 'x' };
	static uint32_t wide[200];
	char text[600], want[600];

	test_name("one byte per character",
		  "gr\xf6\xdf"
		  "e",
		  5, 1, false, "größe");
	test_name("two bytes per character", greek, 2, 2, false, "αβ");
	test_name("four bytes per character", han, 2, 4, false, "𠀀x");
	memset(text, 'n', sizeof(text));
	test_name("name of 512 characters", text, 512, 1, true,
		  memset(want, 'n', 512) ? (want[512] = 0, want) : NULL);
	strcpy(want + 512, "...");
	test_name("name of 513 characters", text, 513, 1, true, want);
	test_name("name of 600 characters", text, 600, 1, true, want);
	for (size_t i = 0; i < ARRAY_SIZE(wide); i++)
		wide[i] = 'w';
	memset(want, 'w', 128);
	strcpy(want + 128, "...");
	test_name("name of 200 wide characters", wide, 200, 4, false, want);
}

static void test_bad_names(void)
{
	uint64_t root = reset(), outer = make_code("outer"), inner = make_code("inner"), frame;
	uint64_t cframe, text, before = counted(COUNT_WALK_CODE);

	frame = make_frame(outer, 0, true);
	cframe = make_cframe(frame, root);
	set_cframe(make_cframe(make_frame(inner, frame, true), cframe));
	put(inner + o->code_file, NOWHERE);
	run();
	ok(walked("outer;inner", 0) && counted(COUNT_WALK_CODE) == before + 1,
	   "a file name that cannot be read is counted");
	memcpy(&text, (void *)(outer + o->code_name), sizeof(text));
	put32(text + 32, 1 << 2 | 1 << 6); /* not compact */
	host.now_ns += 2 * CODE_RECHECK_NS;
	run();
	ok(walked("?;inner", 0) && counted(COUNT_WALK_CODE) == before + 2,
	   "a name that is no compact string");
	put32(text + 32, 3 << 2 | 1 << 5);
	run();
	ok(walked("?;inner", 0) && counted(COUNT_WALK_CODE) == before + 3,
	   "a name of three bytes per character");
}

static void test_record(void)
{
	uint64_t root = reset(), code = make(o->code_bytecode + 64);
	struct runtime_symbol symbol;

	set_code(code, make_ascii("f"), 3 * CODE_TABLE_BYTES);
	set_cframe(make_cframe(make_frame(code, 0, true), root));
	run();
	is_int(last_rec.table_size, 3 * CODE_TABLE_BYTES, "size of a long line table");
	is_int(last_rec_bytes, sizeof(struct rec_code), "as much as there is room for is sent");
	ok(last_rec.address == code && last_rec.walker == WALKER_PYTHON &&
		   last_rec.tgid == (uint32_t)getpid() && last_rec.first_line == 42,
	   "the other fields of the record");
	is_int(python_codes__symbolize(names, host.sample.words[0], &symbol), 0, "it has a symbol");
	is_str(symbol.file, "/some/file.py", "the file's name");
	root = reset();
	code = make_code("f");
	put(code + o->code_line_table, NOWHERE);
	set_cframe(make_cframe(make_frame(code, 0, true), root));
	run();
	is_int(last_rec_bytes, REC_CODE_HEADER + 2 * CODE_TEXT_BYTES, "no line table to be read");
	is_str(chain(), "f", "the name is there all the same");
}

static void test_reuse(void)
{
	uint64_t root = reset(), code = make_code("first"), codes;

	set_cframe(make_cframe(make_frame(code, 0, true), root));
	run();
	codes = n_codes;
	run();
	host.now_ns += 2 * CODE_RECHECK_NS;
	run();
	ok(walked("first", 0) && n_codes == codes, "a code object is sent once");
	put(code + o->code_name, make_ascii("second"));
	host.now_ns += CODE_RECHECK_NS - 1;
	run();
	ok(walked("first", 0) && n_codes == codes, "other code in its place, seen soon after");
	host.now_ns += 1;
	run();
	ok(walked("second", 0) && n_codes == codes + 1, "and later");

	/* The same memory, down to the name's, with another content. */
	code = make_code("third");
	set_cframe(make_cframe(make_frame(code, 0, true), root));
	run();
	memcpy(&root, (void *)(code + o->code_name), 8);
	memcpy((void *)(root + o->unicode_ascii_data), "Third", 5);
	put(root + 24, 12345); /* its hash */
	host.now_ns += 2 * CODE_RECHECK_NS;
	run();
	ok(walked("Third", 0), "a name of the same length in the same place");
}

static void test_losses(void)
{
	uint64_t root = reset(), before = counted(COUNT_CODE_LOST);

	set_cframe(make_cframe(make_frame(make_code("f"), 0, true), root));
	host.ring_full = true;
	run();
	host.ring_full = false;
	is_int(counted(COUNT_CODE_LOST), before + 1, "a full ring is counted");
	run();
	is_str(chain(), "f", "the next sample sends the code object again");
}

/* --- the thread state --- */

static bool no_state(bool is_loss)
{
	uint64_t before = counted(COUNT_WALK_NO_STATE);

	run();
	return walked("", 0) && counted(COUNT_WALK_NO_STATE) == before + is_loss;
}

static void test_thread_state(void)
{
	uint64_t root = reset(), block = make(16 * PTHREAD_KEYS_PER_BLOCK);

	set_cframe(make_cframe(make_chain(0), root));
	put(tss, 0);
	ok(no_state(false), "the key does not exist yet");
	set_key(5);
	ok(no_state(false), "the thread has no Python");
	set_key(40);
	ok(no_state(false), "nor has a thread without a second block of keys");
	put(thread + PTHREAD_SPECIFIC_BLOCKS + 8, block);
	put(block + 16 * 8 + 8, tstate);
	run();
	ok(walked("outer;middle;inner", 0), "a key in the second block");
	put(thread + PTHREAD_SPECIFIC_BLOCKS + 8, NOWHERE);
	ok(no_state(true), "the second block cannot be read");
	set_key(PTHREAD_KEYS_MAX);
	ok(no_state(true), "a key that there cannot be");
	set_key(3);
	put(tstate + o->tstate_thread_id, thread + 64);
	ok(no_state(true), "a state that belongs to another thread");
	put(thread + PTHREAD_SPECIFIC_FIRST + 16 * 3 + 8, NOWHERE);
	ok(no_state(true), "a state that cannot be read");
	walker__attach(NOWHERE);
	ok(no_state(true), "the key cannot be read");
	thread = NOWHERE;
	walker__attach(tss);
	ok(no_state(true), "nor can the thread");
}

int main(void)
{
	o = &python_version__find(11)->offsets;
	walker__open();
	test_chains();
	test_broken_chains();
	test_cycles();
	test_depth(RUNTIME_FRAMES_MAX - 1, 0, 0);
	test_depth(RUNTIME_FRAMES_MAX, 0, 0);
	test_depth(RUNTIME_FRAMES_MAX + 1, 0, TRUNCATED);
	test_depth(RUNTIME_FRAMES_MAX - 2, 2, 0);
	test_depth(RUNTIME_FRAMES_MAX, 2, TRUNCATED);
	test_places();
	test_names();
	test_bad_names();
	test_record();
	test_reuse();
	test_losses();
	test_thread_state();
	walker__close();
	return tap__done();
}
