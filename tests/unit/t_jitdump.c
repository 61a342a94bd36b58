// SPDX-License-Identifier: GPL-2.0-or-later
/* Jitdump files, made here record by record: code that appears and moves, lines, truncated or
 * invalid records, and other clocks. */
#include "core/target/jitdump.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/base/util.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

#define NOW 1000000

static struct jit_file file = { .fd = -1 };
static struct jit_index index_;
static struct jitdump dump;
static FILE *out;

/* --- writing --- */

static void u32(uint32_t value)
{
	fwrite(&value, sizeof(value), 1, out);
}

static void u64(uint64_t value)
{
	fwrite(&value, sizeof(value), 1, out);
}

static void text(const char *string)
{
	fwrite(string, strlen(string) + 1, 1, out);
}

static void header(uint32_t magic, uint32_t version, uint32_t machine, uint64_t flags)
{
	u32(magic), u32(version), u32(40), u32(machine), u32(0), u32(4711), u64(1), u64(flags);
}

static void prefix(uint32_t id, uint32_t size, uint64_t time)
{
	u32(id), u32(size), u64(time);
}

static void load(uint64_t time, uint64_t address, uint64_t size, const char *name)
{
	char code[4096] = "";

	prefix(0, 56 + strlen(name) + 1 + min_of(size, sizeof(code)), time);
	u32(4711), u32(4711), u64(address), u64(address), u64(size), u64(1);
	text(name);
	fwrite(code, min_of(size, sizeof(code)), 1, out);
}

static void move(uint64_t time, uint64_t from, uint64_t to, uint64_t size)
{
	prefix(1, 64, time);
	u32(4711), u32(4711), u64(to), u64(from), u64(to), u64(size), u64(1);
}

struct line {
	uint64_t address;
	uint32_t line;
	const char *file;
};

static void lines(uint64_t time, uint64_t address, const struct line *list, size_t n)
{
	size_t size = 32, i;

	for (i = 0; i < n; i++)
		size += 16 + strlen(list[i].file) + 1;
	prefix(2, size, time);
	u64(address), u64(n);
	for (i = 0; i < n; i++)
		u64(list[i].address), u32(list[i].line), u32(0), text(list[i].file);
}

static void begin(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/dump", workdir);
	if (out)
		fclose(out);
	out = fopen(path, "w");
	if (!out)
		exit(1);
	header(0x4a695444, 1, EM_X86_64, 0);
}

/* --- reading --- */

static int64_t read_more(void)
{
	fflush(out);
	return jitdump__read(&dump, &file, UINT64_MAX, 500, NOW, &index_);
}

static int64_t read_all(void)
{
	int root = open(workdir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	fflush(out);
	jit_file__close(&file);
	jit_index__done(&index_);
	dump = (struct jitdump) {};
	if (jit_file__open(root, "dump", getuid(), 0, &file, NULL))
		exit(1);
	close(root);
	return read_more();
}

static const char *name_at(uint64_t address, uint64_t time)
{
	static char name[64];
	struct jit_entry entry;

	if (!jit_index__find(&index_, address, time, &entry))
		return "";
	return jitdump__name(&file, &entry, name, sizeof(name)) ? name : "(lost)";
}

/* Returns "file:line", or "". */
static const char *line_at(uint64_t address, uint64_t time, uint32_t skew)
{
	static char label[96];
	struct jit_entry entry;
	uint32_t line;
	char name[64];

	if (!jit_index__find(&index_, address, time, &entry) ||
	    !jitdump__line(&file, &entry, address, skew, name, sizeof(name), &line))
		return "";
	snprintf(label, sizeof(label), "%s:%u", name, line);
	return label;
}

static void test_names(void)
{
	begin();
	load(100, 0x1000, 0x100, "first");
	prefix(4, 24, 100), u64(0);  /* unwinding information */
	prefix(99, 24, 100), u64(0); /* unknown type */
	load(200, 0x1000, 0x100, "second");
	load(NOW + 1, 0x8000, 0x10, "of the future");
	prefix(3, 16, 300); /* type: close */
	ok(read_all() > 0, "a file is read");
	is_int(dump.symbols, 3, "three pieces of code");
	is_str(name_at(0x10ff, 100), "first", "at its first nanosecond");
	is_str(name_at(0x10ff, 199), "first", "at its last");
	is_str(name_at(0x1000, 200), "second", "then the next one");
	is_str(name_at(0x1000, 50), "first", "what came later, where nothing was before");
	is_str(name_at(0x1100, 200), "", "behind it");
	is_str(name_at(0x8000, 500), "of the future", "a time that cannot be is not believed");
	is_int(dump.skipped, 0, "nothing skipped");
}

static void test_moves(void)
{
	begin();
	load(100, 0x1000, 0x100, "here");
	move(200, 0x1000, 0x2000, 0x100);
	load(300, 0x1000, 0x100, "next");
	move(400, 0x2000, 0x2080, 0x100); /* target overlaps the source */
	move(500, 0x7000, 0x9000, 0x100);
	read_all();
	is_str(name_at(0x1001, 150), "here", "before it moves");
	is_str(name_at(0x1001, 250), "", "nothing where it was");
	is_str(name_at(0x2001, 250), "here", "but where it went");
	is_str(name_at(0x1001, 350), "next", "its place is used again");
	is_str(name_at(0x2001, 450), "", "it moves on");
	is_str(name_at(0x2081, 450), "here", "a little");
	is_int(dump.skipped, 1, "what was never there cannot move");
}

static void test_lines(void)
{
	static const struct line list[] = { { 0x1000, 10, "a.js" },    { 0x1020, 12, "\377" },
					    { 0x1040, 3, "lib/b.js" }, { 0x1040, 4, "\377" },
					    { 0x1080, 11, "a.js" },    { 0x10f0, 0, "a.js" } };
	static const struct line skewed[] = { { 0x3040, 1, "v.js" },
					      { 0x3060, 2, "v.js" },
					      { 0x313f, 3, "v.js" } };
	static const struct line wild[] = { { 0x4000, 1, "w.js" }, { 0xdead0000, 2, "w.js" } };

	begin();
	lines(90, 0x1000, list, ARRAY_SIZE(list));
	load(100, 0x1000, 0x100, "with lines");
	load(100, 0x2000, 0x100, "without");
	lines(90, 0x3000, skewed, ARRAY_SIZE(skewed));
	load(100, 0x3000, 0x100, "skewed");
	lines(90, 0x4000, wild, ARRAY_SIZE(wild));
	load(100, 0x4000, 0x100, "wild");
	lines(90, 0x1000, list, ARRAY_SIZE(list));
	load(100, 0x5000, 0x100, "other code's lines");
	move(200, 0x1000, 0x6000, 0x100);
	read_all();
	is_str(line_at(0x1000, 100, 0), "a.js:10", "the first address");
	is_str(line_at(0x101f, 100, 0), "a.js:10", "the last before the next line");
	is_str(line_at(0x1020, 100, 0), "a.js:12", "a file's name that is not repeated");
	is_str(line_at(0x1050, 100, 0), "lib/b.js:4", "the last one of an address");
	is_str(line_at(0x10ef, 100, 0), "a.js:11", "back in the first file");
	is_str(line_at(0x10f0, 100, 0), "", "line 0 is none");
	is_str(line_at(0x2000, 100, 0), "", "code without lines");
	is_str(line_at(0x3000, 100, 0x40), "v.js:1", "addresses with something added");
	is_str(line_at(0x30ff, 100, 0x40), "v.js:3", "to the end");
	is_str(line_at(0x4000, 100, 0), "", "addresses outside of the code: nothing is believed");
	is_str(line_at(0x5000, 100, 0), "", "lines of other code");
	is_str(line_at(0x6020, 250, 0), "a.js:12", "lines go with code that moves");
}

static void test_growth(void)
{
	uint64_t taken;

	begin();
	load(100, 0x1000, 0x100, "whole");
	fflush(out);
	taken = read_all();
	prefix(0, 56 + 4 + 16, 200); /* the rest follows later */
	u32(4711), u32(4711);
	is_int(read_more(), 0, "a record that is not all there is not taken");
	is_int(dump.symbols, 1, "one symbol until now");
	u64(0x2000), u64(0x2000), u64(16), u64(2), text("new"), u64(0);
	is_int(read_more(), 0, "nor one that lacks eight bytes");
	u64(0);
	is_int(read_more(), 76, "then it is");
	is_str(name_at(0x2000, 200), "new", "by its name");
	is_int(file.done, taken + 76, "all was taken once");
}

static void test_clocks(void)
{
	begin();
	rewind(out);
	header(0x4a695444, 1, EM_X86_64, 1);
	load(123, 0x1000, 0x100, "first");
	read_all();
	load(456, 0x1000, 0x100, "second");
	fflush(out);
	jitdump__read(&dump, &file, UINT64_MAX, 700, NOW, &index_);
	is_str(name_at(0x1000, 699), "first", "times of another clock: when it was read counts");
	is_str(name_at(0x1000, 700), "second", "and only that");
}

static void test_refusals(void)
{
	static const uint64_t bad[][2] = { { 0x1000, 0 },
					   { 0x1000, 1ULL << 32 },
					   { 0xffffffff81000000, 16 },
					   { 0xfffffffffffffff0, 32 },
					   { 0x7ffffffffffffff0, 32 } };
	size_t i;

	begin();
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		load(100, bad[i][0], bad[i][1], "bad");
	load(100, 0x1000, 16, "good");
	read_all();
	is_int(dump.skipped, ARRAY_SIZE(bad), "code that is nowhere");
	is_str(name_at(0x1000, 100), "good", "does not matter to the rest");

	begin();
	load(100, 0x1000, 16, "good");
	prefix(0, 20, 100), u32(0); /* too short for its type */
	load(100, 0x2000, 16, "after");
	prefix(0, 8, 100); /* shorter than its header */
	load(100, 0x3000, 16, "never");
	read_all();
	is_str(name_at(0x2000, 100), "after", "a record that is too short is left out");
	is_str(name_at(0x3000, 100), "", "behind one of no length nothing is read");
	ok(dump.broken, "and never again");
	is_int(dump.skipped, 2, "both are counted");

	begin();
	rewind(out);
	header(0x4454694a, 1, EM_X86_64, 0);
	load(100, 0x1000, 16, "swapped");
	read_all();
	ok(dump.broken && !dump.symbols, "another byte order");
	begin();
	rewind(out);
	header(0x4a695444, 2, EM_X86_64, 0);
	read_all();
	ok(dump.broken, "another version");
	begin();
	rewind(out);
	header(0x4a695444, 1, EM_AARCH64, 0);
	read_all();
	ok(dump.broken, "another machine");
}

int main(void)
{
	workdir__make();
	test_names();
	test_moves();
	test_lines();
	test_growth();
	test_clocks();
	test_refusals();
	fclose(out);
	jit_file__close(&file);
	jit_index__done(&index_);
	return tap__done();
}
