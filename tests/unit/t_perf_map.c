// SPDX-License-Identifier: GPL-2.0-or-later
/* Perf maps: valid and invalid lines, files that grow and are rewritten, files that must not be
 * read. */
#include "core/target/perf_map.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/util.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

/* --- lines --- */

static void check_line(const char *line, uint64_t start, uint64_t size, const char *name)
{
	struct perf_map_line got = {};
	char text[64] = "";

	if (!ok(perf_map__parse_line(line, strlen(line), &got), "taken: %s", line))
		return;
	snprintf(text, sizeof(text), "%.*s", (int)got.name_len, got.name);
	ok(got.start == start && got.size == size && !strcmp(text, name), "%#lx %#lx '%s'",
	   (long)got.start, (long)got.size, text);
}

static void test_lines(void)
{
	static const char *const bad[] = {
		"",
		"7f00",
		"7f00 10",
		"7f00 10 ",
		"zz 10 name",
		"7f00 name",
		"7f00 0 nothing there",
		"7f00  ",
		" 7f00 10 begins with a blank",
		"0x 10 no digits",
		"7f00 0x name",
		"-1 10 sign",
		"11112222333344445 10 seventeen digits",
		"ffffffff81000000 10 the kernel's",
		"7ffffffffffffff0 100 into the kernel's half",
		"fffffffffffffff0 20 around the end",
		"1000 100000000 more than 4 GiB",
		"1000 ffffffffffffffff everything",
	};

	check_line("7f0000001000 20 leaf", 0x7f0000001000, 0x20, "leaf");
	check_line("0x00007F0000001000 0X20 Ljava.lang.Object; f(int, long)", 0x7f0000001000, 0x20,
		   "Ljava.lang.Object; f(int, long)");
	check_line("10 1  two blanks", 0x10, 1, " two blanks");
	check_line("10\t\t1\ttabs", 0x10, 1, "tabs");
	check_line("10 1 carriage return\r", 0x10, 1, "carriage return");
	check_line("7ffffffffffff000 1000 the last page", 0x7ffffffffffff000, 0x1000,
		   "the last page");
	check_line("10 ffffffff large", 0x10, 0xffffffff, "large");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct perf_map_line got;

		ok(!perf_map__parse_line(bad[i], strlen(bad[i]), &got), "not taken: '%s'", bad[i]);
	}
}

/* --- files --- */

static struct jit_file file = { .fd = -1 };
static struct jit_index index_;
static struct perf_map_counts counts;

static void reset(void)
{
	jit_index__done(&index_);
	counts = (struct perf_map_counts) {};
}

static int open_map(const char *name, uint32_t uid)
{
	int root = open(workdir, O_PATH | O_DIRECTORY | O_CLOEXEC), rc;
	struct err err = {};

	jit_file__close(&file);
	reset();
	rc = jit_file__open(root, name, uid, 0, &file, &err);
	close(root);
	if (rc)
		tap__diag("%s", err.text);
	return rc;
}

__attribute__((format(printf, 2, 3))) static void write_map(const char *mode, const char *fmt, ...)
{
	char path[128];
	va_list args;
	FILE *out;

	snprintf(path, sizeof(path), "%s/map", workdir);
	out = fopen(path, mode);
	va_start(args, fmt);
	if (!out || vfprintf(out, fmt, args) < 0 || fclose(out))
		exit(1);
	va_end(args);
}

static int64_t read_map(uint64_t since_ns)
{
	return perf_map__read(&file, UINT64_MAX, since_ns, &index_, &counts);
}

/* Returns the map's name for an address at a time; "" without a name, "(lost)" if the file does not
 * have it. */
static const char *name_at(uint64_t address, uint64_t time_ns)
{
	static char name[64];
	struct jit_entry entry;

	if (!jit_index__find(&index_, address, time_ns, &entry))
		return "";
	return perf_map__name(&file, &entry, name, sizeof(name)) ? name : "(lost)";
}

static void test_growth(void)
{
	write_map("w", "1000 10 one\n2000 10 two\nnonsense\n\n3000 0 empty\n4000 10 fo");
	is_int(open_map("map", getuid()), 0, "a map is opened");
	ok(read_map(0) > 0, "and read");
	is_int(counts.symbols, 2, "two symbols");
	is_int(counts.skipped, 2, "two lines that are none; a blank one does not count");
	is_str(name_at(0x100f, 0), "one", "a name");
	is_str(name_at(0x1010, 0), "", "no name");
	is_str(name_at(0x4000, 0), "", "a line without its end is not taken yet");
	is_int(jit_file__look(&file), JIT_FILE_GROWN, "but it is seen to be there");
	is_int(read_map(50), 0, "again nothing of it");
	write_map("a", "ur\n1008 10 over one\n");
	is_int(jit_file__look(&file), JIT_FILE_GROWN, "it has grown");
	ok(read_map(100) > 0, "the rest is read");
	is_str(name_at(0x4000, 0), "four", "the line has its end now");
	is_str(name_at(0x1009, 99), "one", "before the read that found the other one");
	is_str(name_at(0x1009, 100), "over one", "from then on");
	is_str(name_at(0x1001, 100), "one", "where they do not overlap");
	is_int(counts.symbols, 4, "each line was read once");
	is_int(jit_file__look(&file), JIT_FILE_SAME, "nothing new");
}

static void test_rewriting(void)
{
	write_map("w", "1000 10 ten\n5000 10 fifty\n");
	is_int(open_map("map", getuid()), 0, "a map");
	read_map(0);
	write_map("w", "1000 10 new\n");
	is_str(name_at(0x5000, 0), "(lost)", "a name whose line is gone");
	is_int(jit_file__look(&file), JIT_FILE_REWRITTEN, "it is shorter");
	reset();
	read_map(0);
	is_str(name_at(0x1000, 0), "new", "read anew");
	write_map("w", "1000 10 other\n6000 10 and longer\n");
	is_int(jit_file__look(&file), JIT_FILE_REWRITTEN,
	       "it is longer, but does not begin as it did");
	reset();
	read_map(0);
	is_str(name_at(0x6000, 0), "and longer", "read anew");
	write_map("w", "1000 10 other\n7000 10 and longer\n8000 10 more\n");
	is_int(jit_file__look(&file), JIT_FILE_REWRITTEN, "the same, with an equal first line");
}

static void test_parts(void)
{
	char line[64];
	int64_t taken, sum = 0;
	size_t i, n = 0;
	int parts = 0;

	write_map("w", "%s", "");
	for (i = 0; i < 50000; i++)
		write_map("a", "%zx 10 number %zu\n", 0x1000 + 16 * i, i);
	is_int(open_map("map", getuid()), 0, "a long map");
	while ((taken = perf_map__read(&file, 300000, 0, &index_, &counts)) > 0) {
		sum += taken;
		parts++;
	}
	ok(parts > 1 && counts.symbols == 50000 && !counts.skipped, "%ld symbols in %d parts",
	   (long)counts.symbols, parts);
	is_int(sum, file.done, "all bytes");
	for (i = 0; i < 50000; i += 7) {
		snprintf(line, sizeof(line), "number %zu", i);
		n += strcmp(name_at(0x1000 + 16 * i + i % 16, 0), line) != 0;
	}
	is_int(n, 0, "all names");
}

static void test_long_lines(void)
{
	enum { LONG = 1000000 };
	char *text = malloc(LONG + 1), name[32];
	struct jit_entry entry;

	memset(text, 'x', LONG);
	text[LONG] = '\0';
	write_map("w", "1000 10 %s\n2000 10 after\n3000 10 %.5000s\n4000 10 last\n", text, text);
	is_int(open_map("map", getuid()), 0, "a map with long lines");
	read_map(0);
	is_str(name_at(0x2000, 0), "after", "what follows a line that is too long");
	is_str(name_at(0x4000, 0), "last", "and one that is long");
	ok(jit_index__find(&index_, 0x3000, 0, &entry) &&
		   perf_map__name(&file, &entry, name, sizeof(name)) && strlen(name) == 31 &&
		   strspn(name, "x") == 31,
	   "a long name is cut: %s", name);
	ok(counts.skipped >= 1, "%lu lines skipped", (unsigned long)counts.skipped);
	free(text);
}

/* --- trust --- */

static void test_trust(void)
{
	workdir__run(
		"echo '1000 10 x' > real && ln -s real link && mkfifo fifo && mkdir dir sub && "
		"ln -s / sub/root && mkdir -p etc && echo '1000 10 inside' > etc/map && "
		"ln -s /etc/map absolute && ln -s / up");
	is_int(open_map("real", getuid()), 0, "a regular file");
	is_int(open_map("link", getuid()), -ELOOP, "a link");
	is_int(open_map("fifo", getuid()), -EPERM, "a FIFO, without waiting for its writer");
	is_int(open_map("dir", getuid()), -EPERM, "a directory");
	is_int(open_map("none", getuid()), -ENOENT, "nothing");
	is_int(open_map("/real", getuid()), 0, "/ is the directory that was given");
	is_int(open_map("../../../../etc/map", getuid()), 0, "and nothing is above it");
	is_int(open_map("up/etc/map", getuid()), 0, "nor behind a link");
	read_map(0);
	is_str(name_at(0x1000, 0), "inside", "it is the one inside");
	if (getuid()) {
		tap__skip("not root", "files of other users");
		return;
	}
	is_int(open_map("real", 4711), 0, "a file of root's, for a process of another user");
	workdir__run("chown 4712 real");
	is_int(open_map("real", 4712), 0, "a file of the process's user");
	is_int(open_map("real", 4711), -EPERM, "a file of a third");
}

static void test_age(void)
{
	int root = open(workdir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	write_map("w", "1000 10 one\n");
	jit_file__close(&file);
	fstatat(root, "map", &st, 0);
	is_int(jit_file__open(root, "map", getuid(), st.st_mtime, &file, NULL), 0,
	       "written to since the process began");
	jit_file__close(&file);
	is_int(jit_file__open(root, "map", getuid(), st.st_mtime + 1, &file, NULL), -ESTALE,
	       "left over from an earlier one");
	is_int(jit_file__open(root, "map", getuid(), 0, &file, NULL), 0, "a map");
	ok(!jit_file__is_replaced(&file, root, "map"), "it is the one that is open");
	workdir__run("echo > other && mv other map");
	ok(jit_file__is_replaced(&file, root, "map"), "now it is another");
	workdir__run("rm map");
	ok(!jit_file__is_replaced(&file, root, "map"), "one that was removed goes on to be read");
	close(root);
}

int main(void)
{
	workdir__make();
	test_lines();
	test_growth();
	test_rewriting();
	test_parts();
	test_long_lines();
	test_trust();
	test_age();
	jit_file__close(&file);
	reset();
	return tap__done();
}
