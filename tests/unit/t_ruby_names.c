// SPDX-License-Identifier: GPL-2.0-or-later
/* The CRuby walker on made-up code and objects, and the names that it sends, once each. t_ruby_walk
 * tests chains of frames. */
#include "tests/unit/ruby_synthetic.h"

static size_t nth; /* index in synthetic_versions */

/* --- owners --- */

static bool named(uint64_t owner, const char *want)
{
	char text[1200] = "|;";

	enter("<main>");
	call_of(owner, "f", 0);
	snprintf(text, sizeof(text), "|;<main>;%s", want);
	run();
	sp = get(ec); /* back to the start */
	cfp = get(ec) + 8 * get(ec + 8) - o->cfp_size;
	return walked(text, 0);
}

static void test_classes(void)
{
	uint64_t class, module, included;

	reset(nth);
	class = make_class(T_CLASS, "Outer::Inner");
	module = make_class(T_MODULE, "M");
	included = make_class(T_ICLASS, NULL);
	put(included + 8, module);
	ok(named(class, "Outer::Inner#f"), "%s: a class", version);
	ok(named(module, "M#f"), "%s: a module", version);
	ok(named(included, "M#f"), "%s: a module that is included", version);
	ok(named(make_class(T_CLASS, NULL), "#<Class>#f"), "%s: a class without a name", version);
	ok(named(make_class(T_MODULE, NULL), "#<Module>#f"), "%s: a module without", version);
	ok(named(make_class(T_CLASS, "#<Class:0x00007f55>::A"), "#<Class>::A#f"),
	   "%s: a class inside such a one", version);
	ok(named(make_class(T_CLASS, "A::Very::Long::Name::That::Is::Not::Embedded"),
		 "A::Very::Long::Name::That::Is::Not::Embedded#f"),
	   "%s: a long name", version);
	ok(named(make_class(T_OBJECT, "A"), "f"), "%s: no class at all", version);
	put(included + 8, NOWHERE);
	ok(named(included, "f"), "%s: a module that cannot be read", version);
	put(included + 8, 8);
	ok(named(included, "f"), "%s: or is nil", version);
	ok(named(NOWHERE, "f"), "%s: a class that cannot be read", version);
}

static void test_singletons(void)
{
	uint64_t class, object, included, first, of_class;

	reset(nth);
	class = make_class(T_CLASS, "A");
	object = make_class(T_OBJECT, NULL);
	included = make_class(T_ICLASS, NULL);
	put(included + o->class_super, class);
	of_class = make_singleton(class, make_class(T_CLASS, "Super"));
	ok(named(of_class, "A.f"), "%s: a class's own method", version);
	ok(named(make_singleton(make_class(T_MODULE, "M"), 0), "M.f"), "%s: a module's own",
	   version);
	ok(named(make_singleton(make_class(T_CLASS, NULL), 0), "#<Class>.f"),
	   "%s: that of a class without a name", version);
	ok(named(make_singleton(object, class), "#<A>.f"), "%s: an object's own", version);
	ok(named(make_singleton(object, included), "#<A>.f"), "%s: of one that is extended",
	   version);
	ok(named(make_singleton(make_string("text"), class), "#<A>.f"), "%s: a String's own",
	   version);
	ok(named(make_singleton(object, make_singleton(object, class)), "#<A>.f"),
	   "%s: of its singleton class", version);
	ok(named(make_singleton(object, make_class(T_CLASS, NULL)), "#<Class>.f"),
	   "%s: an object whose class has no name", version);
	ok(named(make_singleton(object, NOWHERE), "#<Class>.f"), "%s: or cannot be read", version);
	ok(named(make_singleton(NOWHERE, class), "#<A>.f"), "%s: an object that cannot be read",
	   version);
	first = make_class(T_ICLASS, NULL);
	put(first + o->class_super, first);
	ok(named(make_singleton(object, first), "#<Class>.f"), "%s: a class above itself", version);
}

/* Sets its instance variables __refined_class__ and __defined_at__, in this order. */
static void set_defined_at(uint64_t refinement, uint64_t module)
{
	uint64_t ivs = make(64), table = make(56), ext = make(256);

	if (o->class_iv_table) {
		put(refinement + o->class_ext, ext);
		put(ext + o->class_iv_table, table);
		put(table + 16, 2);
		put(table + 40, 2);
		put(table + 48, ivs);
		put(ivs + 8, 700 << 4);
		put(ivs + 32, 701 << 4);
		put(ivs + 40, module);
		make(192); /* memory that is read with them */
	} else {
		put(refinement + (o->class_ivs ? o->class_ivs : o->class_ext), ivs);
		put(ivs + 8, module);
	}
}

static void test_refinements(void)
{
	uint64_t refinement;

	reset(nth);
	refinement = make_class(T_MODULE, NULL);
	put(refinement + o->class_super, make_class(T_CLASS, "String"));
	set_defined_at(refinement, make_class(T_MODULE, "Quote"));
	ok(named(refinement, "#<refinement:String@Quote>#f"), "%s: a refinement, and its module",
	   version);
	set_defined_at(refinement, make_class(T_MODULE, NULL));
	ok(named(refinement, "#<refinement:String>#f"), "%s: a module without a name", version);
	refinement = make_class(T_MODULE, NULL);
	put(refinement + o->class_super, make_class(T_CLASS, "String"));
	ok(named(refinement, "#<refinement:String>#f"), "%s: none", version);
	put(refinement + o->class_super, make_class(T_CLASS, NULL));
	ok(named(refinement, "#<refinement>#f"), "%s: of a class without a name", version);
	put(refinement + o->class_super, make_class(T_ICLASS, NULL));
	ok(named(refinement, "#<Module>#f"), "%s: a module that includes another", version);
}

/* --- texts --- */

static const char *label_of(uint64_t label)
{
	push(METHOD | LOCAL, make_iseq_of(label, make_string("file.rb")), 0, 0);
	run();
	return key__name(sample__key(0));
}

static void test_texts(void)
{
	static const size_t lengths[] = { 0, 1, 23, 24, 511, 512 };
	static char text[70001], want[CODE_OBJECT_TEXT_BYTES + 8];
	uint64_t string;

	reset(nth);
	memset(text, 'x', sizeof(text) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		snprintf(want, sizeof(want), "%.*s", (int)lengths[i], text);
		is_str(label_of(make_string_of(text, lengths[i])), want, "%s: %zu bytes", version,
		       lengths[i]);
	}
	snprintf(want, sizeof(want), "%.*s...", CODE_OBJECT_TEXT_BYTES, text);
	is_str(label_of(make_string_of(text, 513)), want, "%s: one too many", version);
	is_str(label_of(make_string_of(text, 70000)), want, "%s: far too many", version);
	is_str(label_of(make_string("caf\xc3\xa9\xff")), "caf\xc3\xa9\xef\xbf\xbd",
	       "%s: UTF-8, and what is none", version);
	string = make_string_of(text, 600);
	put(string + 16, -1ULL);
	is_str(label_of(string), want, "%s: a length that there cannot be", version);
	is_str(label_of(make_string_of("a\0b", 3)), "a", "%s: it ends at a NUL byte", version);
}

static void test_bad_texts(void)
{
	uint64_t string;

	reset(nth);
	string = make_string_of("a text that takes more room than there is", 41);
	put(string + 24, NOWHERE);
	is_str(label_of(string), "[unreadable name]", "%s: bytes that cannot be read", version);
	ok(!last_rec.name_kind && last_rec.name_len == 41, "%s: but where they are is told",
	   version);
	is_str(label_of(8), "[unreadable name]", "%s: nil", version);
	push(METHOD | LOCAL | FINISH, make_iseq_of(NOWHERE, 0), 0, 0);
	is_str(label_of(make_class(T_OBJECT, NULL)), "[unreadable name]", "%s: no String", version);
	reset(nth);
	push(METHOD | LOCAL | FINISH, make_iseq_of(NOWHERE, 0), 0, 0);
	ok(loses(COUNT_WALK_CODE, 1, "|;[unreadable name]", 0),
	   "%s: a String that cannot be read is counted", version);
}

/* Pages that the process did not touch yet: only user space can read them from the process. */
static void test_untouched(void)
{
	static const char label[] = "a label that is in a file and was not read yet";
	static const char path[] = "/a/path/that/is/in/a/file.rb";
	struct runtime_symbol symbol = { 0 };
	uint64_t strings[2];

	reset(nth);
	strings[0] = make_string(label);
	strings[1] = make_string(path);
	put(strings[0] + 24, (uintptr_t)label);
	put(strings[1] + 24, (uintptr_t)path);
	push(METHOD | LOCAL | FINISH, make_iseq_of(strings[0], strings[1]), 0, 0);
	run();
	ruby_codes__symbolize(names, sample__key(0), &symbol);
	is_str(symbol.function, label, "%s: a name in a page that was not touched", version);
	is_str(symbol.file, path, "%s: and a file's", version);
}

static const char *file_of(uint64_t path)
{
	struct runtime_symbol symbol = { 0 };

	push(METHOD | LOCAL, make_iseq_of(make_string("f"), path), 0, 0);
	run();
	ruby_codes__symbolize(names, sample__key(0), &symbol);
	return symbol.file;
}

static void test_files(void)
{
	uint64_t array, at;

	reset(nth);
	is_str(file_of(make_string("-e")), "-e", "%s: a path", version);
	array = make_array(2, &at);
	put(at, make_string("short.rb"));
	put(at + 8, make_string("/real/path/of/short.rb"));
	is_str(file_of(array), "short.rb", "%s: a path with the real one", version);
	array = make_array(4, &at);
	put(at, make_string("in/an/array/of/the/heap.rb"));
	is_str(file_of(array), "in/an/array/of/the/heap.rb", "%s: in another array", version);
	put(array + 32, NOWHERE);
	ok(!file_of(array), "%s: an array that cannot be read", version);
	ok(!file_of(NOWHERE), "%s: a path that cannot be read", version);
	ok(!file_of(8), "%s: no path", version);
}

/* --- symbols --- */

static const char *symbol_of(uint64_t id)
{
	push(CFUNC | LOCAL, 0, make_method(0, id), 0);
	run();
	return key__name(sample__key(0));
}

static void test_symbols(void)
{
	uint64_t method;

	reset(nth);
	put(operator_pairs + 16 * '+', make_string("+"));
	put(operator_pairs + 16 * o->last_op_id, make_string("last"));
	put(operator_pairs + 16 * 300, make_string("serial"));
	is_str(symbol_of('+'), "+", "%s: an operator", version);
	is_str(symbol_of(o->last_op_id), "last", "%s: the last of them", version);
	is_str(symbol_of(300 << 4), "serial", "%s: a symbol of the first array", version);
	is_str(symbol_of(make_id("each_with_index_and_more")), "each_with_index_and_more",
	       "%s: of another one", version);
	is_str(symbol_of(5000 << 4), "[unreadable name]", "%s: a symbol that there is not",
	       version);
	is_str(symbol_of(-1ULL), "[unreadable name]", "%s: or cannot be", version);

	method = make_method(0, make_id("f"));
	put(method + 16, NOWHERE);
	push(CFUNC | LOCAL, 0, method, 0);
	run();
	is_str(key__name(sample__key(0)), "[unreadable name]", "%s: no definition", version);
	ok(ruby_codes__native(names, sample__key(0)) == ANCHOR_FUNCTION_UNKNOWN,
	   "%s: so its function is not known", version);
	proc.symbols = 0;
	walker__attach(&proc);
	is_str(symbol_of(make_id("f")), "[unreadable name]", "%s: a build without symbols",
	       version);
	ok(ruby_codes__native(names, sample__key(0)) == FUNCTION, "%s: functions are known",
	   version);
}

/* --- instructions and lines --- */

static uint32_t index_at(uint64_t pc)
{
	put(cfp, pc);
	run();
	return FRAME_KEY_INDEX(sample__key(0));
}

static uint32_t line_at(uint64_t pc)
{
	struct runtime_symbol symbol = { 0 };

	index_at(pc);
	ruby_codes__symbolize(names, sample__key(0), &symbol);
	return symbol.line;
}

static void test_lines(void)
{
	uint64_t iseq, encoded;

	reset(nth);
	iseq = make_iseq("f");
	encoded = get(get(iseq + 16) + 8);
	push(METHOD | LOCAL | FINISH, iseq, 0, 0);
	is_int(line_at(encoded), FIRST_LINE, "%s: a frame that has not begun", version);
	is_int(line_at(encoded + 8 * 2), FIRST_LINE, "%s: the first line", version);
	is_int(line_at(encoded + 8 * 3), FIRST_LINE + 1, "%s: the second", version);
	is_int(line_at(encoded + 8 * 6), FIRST_LINE + 2, "%s: the third", version);
	is_int(index_at(encoded + 8 * ISEQ_WORDS), ISEQ_WORDS, "%s: behind the last one", version);
	is_int(index_at(encoded + 8 * ISEQ_WORDS + 8), RUBY_INDEX_UNKNOWN, "%s: and further",
	       version);
	is_int(index_at(encoded - 8), RUBY_INDEX_UNKNOWN, "%s: ahead of the first", version);
	is_int(index_at(0), RUBY_INDEX_UNKNOWN, "%s: none, as compiled code has it", version);
	is_int(line_at(0), 0, "%s: its line", version);
	is_int(n_codes ? last_rec.first_line : 0, FIRST_LINE, "%s: the method's first line",
	       version);
}

/* A table that exceeds the space in a record. */
static void test_long_lines(void)
{
	const uint32_t n = 2000, words = 54 + 512 * 20;
	uint64_t iseq, body, entries, positions;

	reset(nth);
	iseq = make_iseq("f");
	body = get(iseq + 16);
	entries = make(n * o->entry_size);
	positions = make(48 + 20 * 80);
	for (uint32_t i = 0; i < n; i++)
		put32(entries + i * o->entry_size, 1000 + i);
	for (uint32_t i = 0; i < 6; i++)
		put(positions + 8 * i, 0x0102040810204081); /* first entry of all words */
	for (uint32_t i = 0; i < 20; i++)
		put32(positions + 48 + 80 * i, 1 + 100 * i);
	put32(body + 4, words);
	put(body + 8, make(8));
	put(body + o->body_entries, entries);
	put32(body + o->body_n_entries, n);
	put(body + o->body_positions, positions);
	push(METHOD | LOCAL | FINISH, iseq, 0, 0);
	is_int(line_at(get(body + 8) + 8), 1000, "%s: a long table", version);
	is_int(last_table.positions_size, RUBY_POSITIONS_BYTES, "%s: what there is room for",
	       version);
	is_int(last_table.entries_size, RUBY_ENTRIES_BYTES, "%s: of both of its parts", version);
	is_int(line_at(get(body + 8) + 8 * (54 + 512 * 19 + 10)), 1000 + 1900, "%s: its last lines",
	       version);
	put(body + o->body_entries, NOWHERE);
	put(body + 80, make_string("g")); /* so that the iseq is new */
	host.now_ns += 2 * RUBY_RECHECK_NS(1);
	is_int(line_at(get(body + 8) + 8), FIRST_LINE, "%s: a table that cannot be read", version);
	ok(walked("|;g", 0), "%s: has a name all the same", version);
}

/* --- once per content --- */

static void test_reuse(void)
{
	uint64_t iseq, codes;

	reset(nth);
	iseq = make_iseq("first");
	push(METHOD | LOCAL | FINISH, iseq, make_method(make_class(T_CLASS, "A"), make_id("m")), 0);
	run();
	codes = n_codes;
	for (int i = 0; i < 3; i++) {
		run();
		host.now_ns += 2 * RUBY_RECHECK_NS(1);
	}
	ok(walked("|;A#first", 0) && n_codes == codes, "%s: code is sent once", version);
	put(get(iseq + 16) + 80, make_string("second"));
	host.now_ns -= RUBY_RECHECK_NS(1) + 1;
	run();
	ok(walked("|;A#first", 0), "%s: other code in the place of old code, seen soon after",
	   version);
	host.now_ns += RUBY_RECHECK_NS(1);
	run();
	ok(walked("|;A#second", 0) && n_codes == codes + 1, "%s: and later", version);
	/* The process replaces code at this point: each sample compares. */
	put(get(iseq + 16) + 80, make_string("other"));
	host.now_ns++;
	run();
	ok(walked("|;A#other", 0), "%s: other code in the place of other code", version);
	memcpy((void *)(get(get(iseq + 16) + 80) + o->string_embedded), "OTHER", 5);
	host.now_ns++;
	run();
	ok(walked("|;A#OTHER", 0), "%s: down to the label's text", version);
	/* A change at another pc is visible at once. */
	put(get(iseq + 16) + 80, make_string("third"));
	put(get(iseq + 16) + 8, make(8 * ISEQ_WORDS));
	host.now_ns += RUBY_RECHECK_NS(1);
	put(cfp, get(get(iseq + 16) + 8) + 8);
	run();
	ok(walked("|;A#third", 0), "%s: with other instructions", version);
}

/* Tests the cache of a CPU: one frame's code per slot, of one process. */
static void test_slots(void)
{
	uint64_t iseq, codes, label;

	reset(nth);
	iseq = make_iseq("mine");
	label = get(iseq + 16) + 80;
	push(METHOD | LOCAL | FINISH, iseq, 0, 0);
	for (int i = 0; i < 2; i++)
		push(BLOCK | BMETHOD, iseq,
		     make_method(make_class(T_CLASS, "A"), make_id(i ? "b" : "a")), 0);
	run();
	codes = n_codes;
	run();
	ok(walked("|;mine;A#a;A#b", 0) && n_codes == codes, "%s: one iseq in several methods",
	   version);
	space++;
	walker__attach(&proc);
	put(label, make_string("theirs"));
	run();
	ok(walked("|;theirs;A#a;A#b", 0), "%s: the same address in another process", version);
	space--;
	put(label, make_string("mine"));
	run();
	ok(walked("|;mine;A#a;A#b", 0), "%s: and back", version);
	space++;
	run();
	ok(walked("|;theirs;A#a;A#b", 0), "%s: neither was forgotten", version);
	space--;
}

static void test_losses(void)
{
	reset(nth);
	enter("f");
	host.ring_full = true;
	run(); /* the sample is lost, too */
	host.ring_full = false;
	run();
	ok(walked("|;f", 0), "%s: after a full ring the code is sent again", version);
	reset(nth);
	enter("g");
	host.ring_full = true;
	ok(loses(COUNT_CODE_LOST, 1, chain(), host.sample.head.flags), "%s: which is counted",
	   version);
	host.ring_full = false;
}

int main(void)
{
	walker__open();
	for (nth = 0; nth < ARRAY_SIZE(synthetic_versions); nth++) {
		if (!reset(nth))
			continue;
		test_classes();
		test_singletons();
		test_refinements();
		test_texts();
		test_bad_texts();
		test_untouched();
		test_files();
		test_symbols();
		test_lines();
		test_long_lines();
		test_reuse();
		test_slots();
		test_losses();
	}
	walker__close();
	return tap__done();
}
