// SPDX-License-Identifier: GPL-2.0-or-later
/* Announcements of the code of CRuby's frames, valid and invalid ones. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"
#include "runtimes/ruby/ruby_codes.h"
#include "tests/tap.h"

#define FIXED offsetof(struct rec_code_object, table)

static struct ruby_codes *codes;
static struct rec_code_object *rec;   /* the next announcement, ... */
static struct ruby_code_table *table; /* ... and its table */

static void set_text(char *to, uint8_t *kind, uint16_t *len, const char *from)
{
	*kind = CODE_OBJECT_TEXT_UTF8;
	*len = strlen(from);
	memcpy(to, from, min_of(strlen(from), (size_t)CODE_OBJECT_TEXT_BYTES));
}

static void fill(uint32_t code, const char *label)
{
	memset(rec, 0, sizeof(*rec));
	rec->type = REC_CODE_OBJECT;
	rec->code = code;
	rec->tgid = getpid();
	rec->walker = WALKER_RUBY;
	rec->first_line = 10;
	rec->table_size = sizeof(*table);
	set_text(rec->name, &rec->name_kind, &rec->name_len, label);
	set_text(rec->file, &rec->file_kind, &rec->file_len, "/a/b.rb");
}

static void set_owner(enum ruby_owner owner, const char *name)
{
	table->owner = owner;
	table->owner_len = strlen(name);
	memcpy(table->owner_name, name, min_of(strlen(name), (size_t)RUBY_OWNER_BYTES));
}

/* Adds a record from memory that ends with it, for ASan. */
static int add_bytes(size_t size)
{
	struct rec_code_object *exact = malloc(size);
	int rc;

	memcpy(exact, rec, size);
	rc = ruby_codes__add(codes, exact, size);
	free(exact);
	return rc;
}

static int add(void)
{
	return add_bytes(FIXED + sizeof(*table));
}

static struct runtime_symbol symbol_of(uint32_t code, uint32_t index)
{
	struct runtime_symbol symbol = { .line = 12345 };
	int rc = ruby_codes__symbolize(codes, FRAME_KEY(code, index), &symbol);

	if (rc)
		symbol = (struct runtime_symbol) { .function = strerrorname_np(-rc) };
	return symbol;
}

/* --- names --- */

#define CLASS  RUBY_OWNER_CLASS
#define ITSELF RUBY_OWNER_CLASS_ITSELF
#define OBJECT RUBY_OWNER_OBJECT

static const struct {
	const char *label, *owner;
	enum ruby_owner kind;
	enum ruby_code_kind code;
	bool is_module, is_refinement;
	const char *want;
} labels[] = {
	{ "work", "", RUBY_OWNER_NONE, RUBY_CODE_ISEQ, .want = "work" },
	{ "work", "A::B", CLASS, RUBY_CODE_ISEQ, .want = "A::B#work" },
	{ "work", "A", ITSELF, RUBY_CODE_ISEQ, .want = "A.work" },
	{ "work", "A", OBJECT, RUBY_CODE_ISEQ, .want = "#<A>.work" },
	{ "work", "", CLASS, RUBY_CODE_ISEQ, .want = "#<Class>#work" },
	{ "work", "", ITSELF, RUBY_CODE_ISEQ, .want = "#<Class>.work" },
	{ "work", "", OBJECT, RUBY_CODE_ISEQ, .want = "#<Class>.work" },
	{ "work", "M", CLASS, RUBY_CODE_ISEQ, true, .want = "M#work" },
	{ "work", "", CLASS, RUBY_CODE_ISEQ, true, .want = "#<Module>#work" },
	{ "work", "", ITSELF, RUBY_CODE_ISEQ, true, .want = "#<Module>.work" },
	{ "work", "String", CLASS, RUBY_CODE_ISEQ, true, true,
	  .want = "#<refinement:String>#work" },
	{ "work", "", CLASS, RUBY_CODE_ISEQ, true, true, .want = "#<refinement>#work" },
	{ "work", "#<Class:0x000078f0aBcD>::In", CLASS, RUBY_CODE_ISEQ,
	  .want = "#<Class>::In#work" },
	{ "work", "#<Class:0x1>::#<Module:0x2>", CLASS, RUBY_CODE_ISEQ,
	  .want = "#<Class>::#<Module>#work" },
	{ "work", ":0:0xx:0x1", CLASS, RUBY_CODE_ISEQ, .want = "#<Class>#work" },
	{ "work", "\xc3\x84rger\xff", CLASS, RUBY_CODE_ISEQ,
	  .want = "\xc3\x84rger\xef\xbf\xbd#work" },

	{ "block in work", "A", CLASS, RUBY_CODE_ISEQ, .want = "block in A#work" },
	{ "block (2 levels) in work", "A", ITSELF, RUBY_CODE_ISEQ,
	  .want = "block (2 levels) in A.work" },
	{ "rescue in work", "A", CLASS, RUBY_CODE_ISEQ, .want = "rescue in A#work" },
	{ "ensure in rescue in block (12 levels) in work", "A", CLASS, RUBY_CODE_ISEQ,
	  .want = "ensure in rescue in block (12 levels) in A#work" },
	{ "block in work", "", RUBY_OWNER_NONE, RUBY_CODE_ISEQ, .want = "block in work" },
	{ "block (x levels) in work", "A", CLASS, RUBY_CODE_ISEQ,
	  .want = "A#block (x levels) in work" },
	{ "block (2 levels) of work", "A", CLASS, RUBY_CODE_ISEQ,
	  .want = "A#block (2 levels) of work" },
	{ "block in", "A", CLASS, RUBY_CODE_ISEQ, .want = "A#block in" },
	{ "block in ", "A", CLASS, RUBY_CODE_ISEQ, .want = "block in A#" },
	{ "", "A", CLASS, RUBY_CODE_ISEQ, .want = "A#" },
	{ "<main>", "A", CLASS, RUBY_CODE_ISEQ, .want = "<main>" },
	{ "block in <top (required)>", "A", CLASS, RUBY_CODE_ISEQ,
	  .want = "block in <top (required)>" },
	{ "<class:A>", "", RUBY_OWNER_NONE, RUBY_CODE_ISEQ, .want = "<class:A>" },

	{ "<module:M>", "A", CLASS, RUBY_CODE_ISEQ, .want = "<module:M>" },
	{ "block in <class:B>", "A", ITSELF, RUBY_CODE_ISEQ, .want = "block in <class:B>" },
	{ "<compiled>", "A", CLASS, RUBY_CODE_ISEQ, .want = "<compiled>" },
	{ "singleton class", "A", CLASS, RUBY_CODE_ISEQ, .want = "singleton class" },

	/* Names of methods may begin with '<', too. */
	{ "<=>", "A", CLASS, RUBY_CODE_ISEQ, .want = "A#<=>" },
	{ "<", "A", CLASS, RUBY_CODE_ISEQ, .want = "A#<" },
	{ "<=>", "A", CLASS, RUBY_CODE_C, .want = "A#<=>" },
	{ "<", "A", CLASS, RUBY_CODE_METHOD, .want = "A#<" },
	{ "block in x", "A", CLASS, RUBY_CODE_METHOD, .want = "A#block in x" },
	{ "each", "Array", CLASS, RUBY_CODE_C, .want = "Array#each" },
	{ "sleep", "Kernel", ITSELF, RUBY_CODE_C, true, .want = "Kernel.sleep" },
	/* Strings that are not the path of a class: 3.2 may have any string there. */
	{ "x", "hello world", CLASS, RUBY_CODE_ISEQ, .want = "#<Class>#x" },
	{ "x", "lower", CLASS, RUBY_CODE_ISEQ, .want = "#<Class>#x" },
	{ "puts", "", RUBY_OWNER_NONE, RUBY_CODE_C, .want = "puts" },
};

static void test_labels(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(labels); i++) {
		fill(1, labels[i].label);
		table->kind = labels[i].code;
		set_owner(labels[i].kind, labels[i].owner);
		table->is_module = labels[i].is_module;
		table->is_refinement = labels[i].is_refinement;
		if (add())
			tap__diag("%s refused", labels[i].label);
		is_str(symbol_of(1, 1).function, labels[i].want, "label: %s", labels[i].want);
	}
}

static void test_refinements(void)
{
	fill(1, "f");
	table->is_module = table->is_refinement = 1;
	set_owner(CLASS, "String");
	memcpy(table->owner_name + RUBY_WITHIN_AT, "Quote:0x12", 10);
	table->within_len = 10;
	add();
	is_str(symbol_of(1, 1).function, "#<refinement:String@Quote>#f", "a refinement's module");
	table->is_refinement = 0;
	add();
	is_str(symbol_of(1, 1).function, "String#f", "others have none");
	table->is_refinement = 1;
	table->within_len = 0;
	table->owner_len = UINT32_MAX;
	memset(table->owner_name, 'X', RUBY_OWNER_BYTES);
	add();
	is_int(strlen(symbol_of(1, 1).function), strlen("#<refinement:...>#f") + RUBY_WITHIN_AT,
	       "as much of a long name as there is room for");
	table->within_len = UINT32_MAX;
	add();
	is_int(strlen(symbol_of(1, 1).function),
	       strlen("#<refinement:...@...>#f") + RUBY_OWNER_BYTES, "and of the module's");
}

static void test_texts(void)
{
	char text[600], want[1200];

	fill(2, "x");
	rec->name_kind = 0;
	set_owner(CLASS, "A");
	add();
	is_str(symbol_of(2, 1).function, "[unreadable name]", "a name that could not be read");
	fill(2, "x");
	rec->file_kind = 0;
	add();
	ok(!symbol_of(2, 1).file, "a file that could not be read");
	is_str(symbol_of(2, 1).function, "x", "it has its name");

	rec->name_kind = 0;
	rec->name_len = 4;
	rec->table_address = (uintptr_t) "fetched";
	rec->file_len = UINT16_MAX;
	rec->address = 8;
	add();
	is_str(symbol_of(2, 1).function, "fetc", "a name that only user space can read");
	ok(!symbol_of(2, 1).file, "a file that it cannot");

	memset(text, 'N', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	rec->name_len = UINT16_MAX;
	rec->table_address = (uintptr_t)text;
	add();
	snprintf(want, sizeof(want), "%.*s...", CODE_OBJECT_TEXT_BYTES, text);
	is_str(symbol_of(2, 1).function, want, "as much of it as there is room for");
	fill(2, text);
	set_owner(CLASS, "A");
	add();
	snprintf(want, sizeof(want), "A#%.*s...", CODE_OBJECT_TEXT_BYTES, text);
	is_str(symbol_of(2, 1).function, want, "a name that is too long");
	fill(2, "x");
	set_owner(CLASS, text);
	add();
	snprintf(want, sizeof(want), "%.*s...#x", RUBY_OWNER_BYTES, text);
	is_str(symbol_of(2, 1).function, want, "an owner whose name is too long");
	table->owner_len = UINT32_MAX;
	add();
	is_str(symbol_of(2, 1).function, want, "or longer than there can be");
	table->owner_name[1] = 0;
	add();
	is_str(symbol_of(2, 1).function, "N...#x", "or shorter than it says");
	table->owner = 200;
	table->kind = 200;
	table->is_module = table->is_refinement = 77;
	add();
	is_str(symbol_of(2, 1).function, "#<refinement:N...>.x", "kinds that there are not");
}

/* --- lines --- */

#define ENTRY_BYTES 12

/* An iseq of 30 words: line 10 from word 0 on, 11 from word 2, 13 from word 5. */
static void set_lines(void)
{
	static const uint32_t starts[] = { 0, 2, 5 };
	static const int32_t lines[] = { 10, 11, 13 };
	uint64_t imm[6] = { 0 };

	for (uint32_t at = 0; at < 54; at++)
		for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
			imm[at / 9] += (uint64_t)(starts[i] <= at) << at % 9 * 7;
	table->iseq_size = 30;
	table->n_entries = ARRAY_SIZE(lines);
	table->entry_size = ENTRY_BYTES;
	table->positions_size = sizeof(imm);
	memcpy(table->positions_data, imm, sizeof(imm));
	table->entries_size = ARRAY_SIZE(lines) * ENTRY_BYTES;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		memcpy(table->entries_data + i * ENTRY_BYTES, &lines[i], sizeof(lines[i]));
}

/* Checks the lines of a frame "not begun, behind word 0, 2, 3, 5, 29". */
static void check_lines(const char *want, const char *what)
{
	static const uint32_t at[] = { 0, 1, 2, 3, 5, 6, 30 };
	char got[128] = "";

	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%u", i ? " " : "",
			 symbol_of(3, at[i]).line);
	is_str(got, want, "%s", what);
	is_int(symbol_of(3, RUBY_INDEX_UNKNOWN).line, 0, "%s: of no known instruction", what);
}

#define GOOD  "10 10 10 11 11 13 13"
#define FIRST "10 10 10 10 10 10 10" /* line of the method, as no better line is available */

static void test_lines(void)
{
	uint8_t positions[48], entries[3 * ENTRY_BYTES];

	fill(3, "f");
	set_lines();
	memcpy(positions, table->positions_data, sizeof(positions));
	memcpy(entries, table->entries_data, sizeof(entries));
	add();
	check_lines(GOOD, "lines");
	table->positions_size = table->entries_size = 0;
	table->positions = (uintptr_t)positions;
	table->entries = (uintptr_t)entries;
	add();
	check_lines(GOOD, "lines that are read from the process");
	table->entries_size = sizeof(entries) - 1;
	memset(table->entries_data, 0xff, sizeof(table->entries_data));
	add();
	check_lines(GOOD, "some of them");
	table->positions = 8;
	add();
	check_lines(FIRST, "positions that cannot be read");
	table->n_entries = 1;
	table->entries_size = ENTRY_BYTES;
	memcpy(table->entries_data, &(int32_t) { 12 }, 4);
	add();
	check_lines("12 12 12 12 12 12 12", "one entry needs none");
	fill(3, "f");
	add();
	check_lines(FIRST, "no lines");
}

/* A table that exceeds a record; the process has all of it. */
static void test_long_lines(void)
{
	const uint32_t n = RUBY_ENTRIES_BYTES / ENTRY_BYTES + 100;
	uint8_t *entries = calloc(n, ENTRY_BYTES), positions[48 + 80] = { 0 };
	int bad = 0;

	if (!entries)
		return;
	fill(3, "f");
	set_lines();
	for (uint32_t i = 0; i < n; i++)
		memcpy(entries + i * ENTRY_BYTES, &(int32_t) { 1000 + i }, 4);
	memset(positions + 48 + 16, 0xff, 64);
	for (uint64_t i = 1, ranks = 0; i < 8; i++) {
		ranks |= i * 64 << (i - 1) * 9;
		memcpy(positions + 48 + 8, &ranks, 8);
	}
	table->iseq_size = 54 + 512;
	table->n_entries = n;
	table->entries = (uintptr_t)entries;
	table->entries_size = RUBY_ENTRIES_BYTES;
	table->positions = (uintptr_t)positions;
	table->positions_size = sizeof(positions);
	memcpy(table->positions_data, positions, sizeof(positions));
	memcpy(table->entries_data, entries, RUBY_ENTRIES_BYTES);
	is_int(add(), 0, "a long table");
	for (uint32_t i = 0; i < n; i++)
		bad += symbol_of(3, 54 + i + 1).line != 1000 + i;
	is_int(bad, 0, "all of its lines");
	rec->tgid = 1 << 30;
	add();
	is_int(symbol_of(3, 60).line, 10, "its process is gone");
	free(entries);
}

static void test_hostile_lines(void)
{
	static const struct {
		const char *what;
		uint32_t iseq_size, n_entries, entry_size, positions_size, entries_size;
	} cases[] = {
		{ "no size per entry", 30, 3, 0, 48, 36 },
		{ "a huge size per entry", 30, 3, UINT32_MAX, 48, UINT32_MAX },
		{ "a size that is too big", 30, 3, 65, 48, 195 },
		{ "too many entries", 30, 1000001, 12, 48, 36 },
		{ "as many as there can be", 30, UINT32_MAX, 12, 48, UINT32_MAX },
		{ "an iseq that is too long", UINT32_MAX, 3, 12, UINT32_MAX, 36 },
		{ "and about as long", UINT32_MAX - 400, 3, 12, UINT32_MAX, 36 },
		{ "more here than there is room for", 60000, 1000, 12, UINT32_MAX, UINT32_MAX },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		fill(3, "f");
		set_lines();
		table->iseq_size = cases[i].iseq_size;
		table->n_entries = cases[i].n_entries;
		table->entry_size = cases[i].entry_size;
		table->positions_size = cases[i].positions_size;
		table->entries_size = cases[i].entries_size;
		is_int(add(), 0, "%s", cases[i].what);
		check_lines(FIRST, cases[i].what);
	}
}

/* --- records --- */

static void test_records(void)
{
	is_str(symbol_of(4, 0).function, "ENOENT", "not announced");
	fill(4, "first");
	is_int(add(), 0, "announced");
	is_str(symbol_of(4, 1).function, "first", "its name");
	is_str(symbol_of(4, 1).file, "/a/b.rb", "its file");
	fill(4, "second");
	is_int(add(), 0, "announced again");
	is_str(symbol_of(4, 1).function, "second", "the later one counts");
	is_str(symbol_of(5, 0).function, "ENOENT", "no other number");

	fill(5, "x");
	is_int(add_bytes(FIXED + sizeof(*table) - 1), -EBADMSG, "too short");
	is_int(add_bytes(FIXED), -EBADMSG, "without a table");
	is_int(ruby_codes__add(codes, rec, 0), -EBADMSG, "empty");
	rec->name_kind = 3;
	is_int(add(), -EBADMSG, "a kind of name that there is not");
	fill(5, "x");
	rec->file_kind = 255;
	is_int(add(), -EBADMSG, "a kind of file name");
	fill(0, "x");
	is_int(add(), -EBADMSG, "number 0");
	is_str(symbol_of(5, 0).function, "ENOENT", "none of them is kept");
	fill(4, "third");
	rec->name_kind = 3;
	add();
	is_str(symbol_of(4, 1).function, "second", "nor takes another's place");
	for (uint32_t code = 1000; code < 3000; code++) {
		fill(code, "many");
		add();
	}
	is_str(symbol_of(2999, 1).function, "many", "many of them");
}

static void test_natives(void)
{
	fill(6, "each");
	table->kind = RUBY_CODE_C;
	table->native = 0x12345678;
	add();
	ok(ruby_codes__native(codes, FRAME_KEY(6, 0)) == 0x12345678, "a native method's function");
	table->native = 0;
	add();
	ok(ruby_codes__native(codes, FRAME_KEY(6, 0)) == ANCHOR_FUNCTION_UNKNOWN,
	   "one that could not be read");
	table->kind = RUBY_CODE_ISEQ;
	table->native = 0x12345678;
	add();
	ok(!ruby_codes__native(codes, FRAME_KEY(6, 0)), "an iseq has none");
	table->kind = RUBY_CODE_METHOD;
	add();
	ok(!ruby_codes__native(codes, FRAME_KEY(6, 0)), "nor has a block");
	ok(!ruby_codes__native(codes, FRAME_KEY(7, 0)), "nor what was not announced");
	ok(ruby_codes__native(codes, FRAME_KEY(RUBY_GC_CODE, 0)) == ANCHOR_FUNCTION_UNKNOWN,
	   "the garbage collector is somewhere");
	is_str(symbol_of(RUBY_GC_CODE, 0).function, "(garbage collection)", "it has a name");
	ok(!symbol_of(RUBY_GC_CODE, 0).file && !symbol_of(RUBY_GC_CODE, 0).line, "and no place");
}

int main(void)
{
	codes = ruby_codes__new();
	rec = malloc(sizeof(*rec));
	if (!codes || !rec)
		return 1;
	table = (struct ruby_code_table *)rec->table;
	test_labels();
	test_refinements();
	test_texts();
	test_lines();
	test_long_lines();
	test_hostile_lines();
	test_records();
	test_natives();
	free(rec);
	ruby_codes__free(codes);
	ruby_codes__free(NULL);
	return tap__done();
}
