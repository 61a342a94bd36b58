// SPDX-License-Identifier: GPL-2.0-or-later
/* The CPython walker on made-up frames, code objects and strings, one by one. t_python_chains tests
 * chains of frames. */
#include "tests/unit/python_synthetic.h"

/* Makes the thread run only the code @code. */
static void run_code(uint64_t code)
{
	enter();
	call_code(code);
	run();
}

/* --- frames --- */

/* Memory around a frame is unreadable, at any place in a page. */
static void test_places(void)
{
	uint64_t code, copy;
	int bad = 0;

	reset(minor);
	code = make_code("f");
	enter();
	call_code(code);
	copy = frame;
	used = (used + 4095) & ~4095UL;
	host.ranges[0].size = used;
	for (size_t at = used; at < used + 4096; at += 8) {
		uint64_t alone = (uintptr_t)arena + at;

		memcpy((void *)alone, (void *)copy, o->frame_bytes);
		set_frame(alone);
		host.n_ranges = 1;
		host__add_range(alone, (void *)alone, o->frame_bytes);
		run();
		bad += !walked("|;f", 0);
	}
	is_int(bad, 0, "3.%u: a frame alone in memory, at every place in a page", minor);
}

static void test_index(void)
{
	static const uint32_t want[] = {
		[PYTHON_INSTR_ADDRESS] = -16,
		[PYTHON_INSTR_BYTES] = -1,
		[PYTHON_INSTR_UNITS] = -2,
	};
	uint64_t code;

	reset(minor);
	code = make_code("f");
	run_code(code);
	is_int(FRAME_KEY_INDEX(frames[0].key), INDEX, "3.%u: the instruction", minor);
	put(frame + o->frame_instr, o->instr == PYTHON_INSTR_ADDRESS ? code + o->code_bytecode - 16
								     : 7ULL << 32 | UINT32_MAX);
	run();
	is_int((int32_t)FRAME_KEY_INDEX(frames[0].key), (int32_t)want[o->instr],
	       "3.%u: before the first one", minor);
	put(frame + o->frame_instr,
	    o->instr == PYTHON_INSTR_ADDRESS
		    ? code + o->code_bytecode + 0x12344
		    : (uint64_t)0x12344 >> (o->instr == PYTHON_INSTR_UNITS));
	run();
	is_int(FRAME_KEY_INDEX(frames[0].key), 0x12344, "3.%u: far behind it", minor);
}

/* --- code objects --- */

static void test_name(const char *what, const void *chars, size_t len, unsigned int kind,
		      bool ascii, const char *want)
{
	reset(minor);
	run_code(make_code_of(make_text(chars, len, kind, ascii), 0));
	is_str(key__name(frames[0].key), want, "3.%u: %s", minor, what);
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
	uint64_t outer, inner, text;

	reset(minor);
	enter();
	call_code(outer = make_code("outer"));
	enter();
	call_code(inner = make_code("inner"));
	put(inner + o->code_file, NOWHERE);
	ok(loses(COUNT_WALK_CODE, 1, "|;outer|;inner", 0),
	   "3.%u: a file name that cannot be read is counted", minor);
	text = get(outer + o->code_name);
	put32(text + o->object_bytes + 16, (1 << 2 | 1 << 6) << o->unicode_shift); /* not compact */
	host.now_ns += 2 * CODE_OBJECT_RECHECK_NS;
	ok(loses(COUNT_WALK_CODE, 1, "|;?|;inner", 0), "3.%u: a name that is no compact string",
	   minor);
	put32(text + o->object_bytes + 16, (3 << 2 | 1 << 5) << o->unicode_shift);
	ok(loses(COUNT_WALK_CODE, 1, "|;?|;inner", 0), "3.%u: a name of three bytes per character",
	   minor);
	put(outer + o->code_name, NOWHERE);
	ok(loses(COUNT_WALK_CODE, 1, "|;?|;inner", 0), "3.%u: a name that cannot be read", minor);
}

static void test_record(void)
{
	struct runtime_symbol symbol;
	uint64_t code;

	reset(minor);
	code = make_code_of(make_ascii("f"), 3 * CODE_OBJECT_TABLE_BYTES);
	run_code(code);
	is_int(last_rec.table_size, 3 * CODE_OBJECT_TABLE_BYTES, "3.%u: size of a long line table",
	       minor);
	is_int(last_rec_bytes, sizeof(struct rec_code_object),
	       "3.%u: as much as there is room for is sent", minor);
	ok(last_rec.address == code && last_rec.walker == WALKER_PYTHON &&
		   last_rec.tgid == (uint32_t)getpid() && last_rec.first_line == 42 &&
		   last_rec.table_format == o->line_format,
	   "3.%u: the other fields of the record", minor);
	is_int(python_codes__symbolize(names, frames[0].key, &symbol), 0, "3.%u: it has a symbol",
	       minor);
	is_str(symbol.file, "/some/file.py", "3.%u: the file's name", minor);
	reset(minor);
	code = make_code("f");
	put(code + o->code_line_table, NOWHERE);
	run_code(code);
	is_int(last_rec_bytes, REC_CODE_OBJECT_HEADER + 2 * CODE_OBJECT_TEXT_BYTES,
	       "3.%u: no line table to be read", minor);
	ok(walked("|;f", 0), "3.%u: the name is there all the same", minor);
}

static void test_losses(void)
{
	uint64_t before = counted(COUNT_CODE_LOST);

	reset(minor);
	host.ring_full = true;
	run_code(make_code("f"));
	host.ring_full = false;
	is_int(counted(COUNT_CODE_LOST), before + 1, "3.%u: a full ring is counted", minor);
	run();
	ok(walked("|;f", 0), "3.%u: the next sample sends the code object again", minor);
}

static void test_reuse(void)
{
	uint64_t code, codes, text;

	reset(minor);
	code = make_code("first");
	run_code(code);
	codes = n_codes;
	run();
	host.now_ns += 2 * CODE_OBJECT_RECHECK_NS;
	run();
	ok(walked("|;first", 0) && n_codes == codes, "3.%u: a code object is sent once", minor);
	put(code + o->code_name, make_ascii("second"));
	run();
	ok(walked("|;second", 0) && n_codes == codes + 1,
	   "3.%u: other code in its place, with the next sample", minor);

	/* The same memory, down to the name's, with another content. */
	text = get(code + o->code_name);
	memcpy((void *)(text + o->unicode_ascii_data), "Second", 6);
	put(text + o->object_bytes + 8, 12345); /* its hash */
	run();
	ok(walked("|;Second", 0), "3.%u: a name of the same length in the same place", minor);
	put(text + o->object_bytes + 8, UINT64_MAX); /* not computed yet */
	run();
	memcpy((void *)(text + o->unicode_ascii_data), "SECOND", 6);
	run();
	ok(walked("|;SECOND", 0), "3.%u: the same of a name without a hash", minor);

	/* The same, with an unchanged name. */
	text = get(code + o->code_file);
	memcpy((void *)(text + o->unicode_ascii_data), "/other", 6);
	put(text + o->object_bytes + 8, 12345);
	run();
	ok(key__file(frames[0].key) && strncmp(key__file(frames[0].key), "/other", 6) == 0,
	   "3.%u: another file's name in the same place", minor);
}

/* From 3.12 on code objects have versions. If the version is unchanged, no text is read. */
static void test_versions(void)
{
	uint64_t code, codes;

	if (!o->code_version)
		return;
	reset(minor);
	code = make_code("first");
	put32(code + o->code_version, 1000);
	run_code(code);
	codes = n_codes;
	put(get(code + o->code_name) + o->object_bytes + 8, 12345);
	run();
	ok(walked("|;first", 0) && n_codes == codes, "3.%u: a code object of the same version",
	   minor);
	memcpy((void *)(get(code + o->code_name) + o->unicode_ascii_data), "other", 5);
	put32(code + o->code_version, 1001);
	run();
	ok(walked("|;other", 0) && n_codes == codes + 1, "3.%u: and of another version", minor);
}

/* Tests the cache of a CPU: one code object per slot, of one process. */
static void test_slots(void)
{
	uint64_t code, other, codes, name;

	reset(minor);
	name = make_ascii("neighbour");
	code = make_code("mine");
	used = code + 32 * CODE_SLOTS - (uintptr_t)arena;
	other = make_code_of(name, 0);
	enter();
	call_code(code);
	call_code(other);
	call_code(code);
	run();
	codes = n_codes;
	run();
	ok(walked("|;mine;neighbour;mine", 0) && n_codes == codes,
	   "3.%u: two code objects of one slot", minor);

	/* Another process has different code at this address. */
	space++;
	walker__attach(&proc);
	put(code + o->code_name, make_ascii("theirs"));
	run();
	ok(walked("|;theirs;neighbour;theirs", 0), "3.%u: the same address in another process",
	   minor);
	space--;
	name = get(code + o->code_name);
	put(code + o->code_name, make_ascii("mine"));
	run();
	ok(walked("|;mine;neighbour;mine", 0), "3.%u: and back", minor);
	space++;
	put(code + o->code_name, name);
	run();
	ok(walked("|;theirs;neighbour;theirs", 0), "3.%u: neither was forgotten", minor);
	space--;
}

/* --- the thread state --- */

static bool no_state(bool is_loss)
{
	return loses(COUNT_WALK_NO_STATE, is_loss, "", 0);
}

static void test_keys(void)
{
	uint64_t block;

	reset(minor);
	block = make(16 * PTHREAD_KEYS_PER_BLOCK);
	enter();
	call("f");
	set_key(NO_KEY_YET);
	ok(no_state(false), "3.%u: the key does not exist yet", minor);
	set_key(5);
	ok(no_state(false), "3.%u: the thread has no Python", minor);
	set_key(40);
	ok(no_state(false), "3.%u: nor has a thread without a second block of keys", minor);
	put(thread + PTHREAD_SPECIFIC_BLOCKS + 8, block);
	put(block + 16 * 8 + 8, tstate);
	run();
	ok(walked("|;f", 0), "3.%u: a key in the second block", minor);
	put(thread + PTHREAD_SPECIFIC_BLOCKS + 8, NOWHERE);
	ok(no_state(true), "3.%u: the second block cannot be read", minor);
	set_key(PTHREAD_KEYS_MAX);
	ok(no_state(true), "3.%u: a key that there cannot be", minor);
}

static void test_musl_keys(void)
{
	uint64_t values;

	reset(minor);
	enter();
	call("f");
	proc.libc = musl;
	walker__attach(&proc);
	ok(no_state(false), "3.%u: musl: the thread has no values", minor);
	set_state(tstate);
	values = get(thread + musl.values);
	run();
	ok(walked("|;f", 0), "3.%u: musl: its values are an array", minor);
	set_key(MUSL_KEYS_MAX - 1);
	ok(no_state(false), "3.%u: musl: the thread has no Python", minor);
	put(values + 8 * (MUSL_KEYS_MAX - 1), tstate);
	run();
	ok(walked("|;f", 0), "3.%u: musl: the last key", minor);
	set_key(MUSL_KEYS_MAX);
	ok(no_state(true), "3.%u: musl: a key that there cannot be", minor);
	set_key(3);
	put(thread + musl.values, NOWHERE);
	ok(no_state(true), "3.%u: musl: values that cannot be read", minor);
}

/* The variable's block is in the thread's table of modules. */
static void test_tls_of_module(void)
{
	uint64_t dtv, block;

	reset(minor);
	enter();
	call("f");
	dtv = make(DTV_ENTRY_BYTES * 8);
	block = make(64);
	put(thread + TCB_DTV, dtv);
	put(block + 24, tstate);
	proc.state = PYTHON_STATE_TLS_OF_MODULE;
	proc.state_at = 24;
	proc.tls_module = 5;
	walker__attach(&proc);
	ok(no_state(false), "3.%u: a thread that has no such block", minor);
	put(dtv + DTV_ENTRY_BYTES * 5, DTV_UNALLOCATED);
	ok(no_state(false), "3.%u: or none yet", minor);
	put(dtv + DTV_ENTRY_BYTES * 5, block);
	run();
	ok(walked("|;f", 0), "3.%u: a variable in libpython", minor);
	put(block + 24, 0);
	ok(no_state(false), "3.%u: a thread that has no Python", minor);
	put(dtv + DTV_ENTRY_BYTES * 5, NOWHERE);
	ok(no_state(true), "3.%u: a block that cannot be read", minor);
	put(thread + TCB_DTV, NOWHERE);
	ok(no_state(true), "3.%u: a table that cannot be read", minor);
	proc.tls_module = TLS_MODULES_MAX;
	walker__attach(&proc);
	ok(no_state(true), "3.%u: a module that there cannot be", minor);
}

static void test_musl_tls(void)
{
	uint64_t dtv, block;

	reset(minor);
	enter();
	call("f");
	dtv = make(8 * 8);
	block = make(64);
	put(thread + TCB_DTV, dtv);
	put(block + 24, tstate);
	put(dtv + 8 * 5, block);
	proc.libc = musl;
	proc.state = PYTHON_STATE_TLS_OF_MODULE;
	proc.state_at = 24;
	proc.tls_module = 5;
	walker__attach(&proc);
	put(dtv, 4);
	ok(no_state(false), "3.%u: musl: a thread whose table is shorter", minor);
	put(dtv, 5);
	run();
	ok(walked("|;f", 0), "3.%u: musl: a variable in libpython", minor);
	put(dtv + 8 * 5, 0);
	ok(no_state(false), "3.%u: musl: a thread that has no such block", minor);
	put(dtv + 8 * 5, NOWHERE);
	ok(no_state(true), "3.%u: musl: a block that cannot be read", minor);
	put(thread + TCB_DTV, NOWHERE);
	ok(no_state(true), "3.%u: musl: a table that cannot be read", minor);
}

static void test_thread_state(void)
{
	reset(minor);
	enter();
	call("f");
	set_state(0);
	ok(no_state(false), "3.%u: a thread without Python", minor);
	set_state(tstate);
	put(tstate + o->tstate_thread_id, thread + 64);
	ok(no_state(true), "3.%u: a state that belongs to another thread", minor);
	set_state(NOWHERE);
	ok(no_state(true), "3.%u: a state that cannot be read", minor);
	proc.state_at = NOWHERE;
	walker__attach(&proc);
	ok(no_state(true), "3.%u: the key cannot be read", minor);
	walker__attach(&proc);
	thread = NOWHERE;
	ok(no_state(true), "3.%u: nor can the thread", minor);
	space += 2;
	ok(no_state(true), "3.%u: a process that is not known", minor);
	space -= 2;
}

/* A thread may execute its own copy of the instructions: _PyInterpreterFrame.tlbc_index. */
static void test_copies(void)
{
	uint64_t code, copy, other, array;

	reset(minor);
	code = make_code("f");
	copy = make(64);
	other = make(64);
	array = make(32);
	put(array, 3); /* number of copies; the first is the code object's own */
	put(array + 8, code + o->code_bytecode);
	put(array + 16, copy);
	put(array + 24, other);
	put(code + o->code_copies, array);
	enter();
	call_code(code);
	put32(frame + o->frame_copy, 1);
	put(frame + o->frame_instr, copy + 12);
	run();
	is_int(FRAME_KEY_INDEX(frames[0].key), 12, "3.%ut: an instruction of a copy", minor);
	put(frame + o->frame_instr, copy + 14);
	run();
	is_int(FRAME_KEY_INDEX(frames[0].key), 14, "3.%ut: which is remembered", minor);
	put32(frame + o->frame_copy, 2);
	put(frame + o->frame_instr, other + 6);
	run();
	is_int(FRAME_KEY_INDEX(frames[0].key), 6, "3.%ut: another copy of the same", minor);
	put32(frame + o->frame_copy, 3);
	ok(loses(COUNT_WALK_CODE, 1, "|;f", 0), "3.%ut: one that is not there: counted", minor);
	is_int(FRAME_KEY_INDEX(frames[0].key), INDEX_UNKNOWN, "3.%ut: and no line", minor);
	put(code + o->code_copies, NOWHERE);
	put32(frame + o->frame_copy, 1);
	host.now_ns += 1000000000;
	ok(loses(COUNT_WALK_CODE, 1, "|;f", 0), "3.%ut: not readable: the same", minor);
}

static void test_version(void)
{
	test_places();
	test_index();
	test_names();
	test_bad_names();
	test_record();
	test_reuse();
	test_versions();
	test_slots();
	test_losses();
	test_thread_state();
	if (minor < 15) {
		test_keys();
		test_musl_keys();
	} else {
		test_tls_of_module();
		test_musl_tls();
	}
}

int main(void)
{
	walker__open();
	for (minor = MINOR_FIRST; minor <= MINOR_LAST; minor++)
		test_version();
	without_gil = true;
	for (minor = 13; minor <= MINOR_LAST; minor++) {
		test_version();
		if (minor > 13)
			test_copies();
	}
	walker__close();
	return tap__done();
}
