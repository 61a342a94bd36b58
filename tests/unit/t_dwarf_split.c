// SPDX-License-Identifier: GPL-2.0-or-later
/* Inlined calls whose description is in .dwo files and .dwp packages, made by the installed
 * compilers and packers. A description is found at its place, never read from another build, and
 * reported with a reason if it is missing. */
#include <inttypes.h>
#include <sys/stat.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/elf/debug_missing.h"
#include "core/elf/symbols.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

/* Writes two units with other names at the same places, so that the test notices a mix-up. */
static void write_unit(const char *name, const char *file)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "extern volatile int sink;\n"
		 "static inline __attribute__((always_inline)) void in_%s(int x)\n"
		 "{\n"
		 "	for (int i = 0; i < x; i++)\n"
		 "		sink += x * 3;\n"
		 "}\n"
		 "void of_%s(int x)\n"
		 "{\n"
		 "	in_%s(x);\n"
		 "}\n",
		 name, name, name);
	workdir__write(file, text);
}

static bool build(const char *compiler, int version)
{
	write_unit("one", "one.c");
	write_unit("two", "two.c");
	workdir__write("main.c",
		       "volatile int sink;\nvoid of_one(int);\nvoid of_two(int);\n"
		       "int main(int n, char **v) { of_one(n); of_two(n); return !v; }\n");
	return workdir__try("rm -rf obj prog* && mkdir obj && cd obj && "
			    "for f in one two main; do %s -c -O2 -g -gdwarf-%d -gsplit-dwarf "
			    "../$f.c -o $f.o || exit 1; done && %s -o ../prog *.o",
			    compiler, version, compiler);
}

/* Returns the number of @name's units for which the inlined call and both lines are right. */
static int count_right(const char *name)
{
	static const char *const units[] = { "one", "two" };
	struct symbol_frame frames[SYMBOL_INLINES_MAX];
	char path[128], function[32], inlined[32];
	struct elf_file *file = NULL;
	struct symbols *symbols = NULL;
	uint64_t start, size;
	int right = 0, n;

	snprintf(path, sizeof(path), "%s/%s", workdir, name);
	if (elf_file__open(workdir__open(name), path, &file, NULL) ||
	    symbols__new(file, "", &symbols))
		exit(1);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		snprintf(function, sizeof(function), "of_%s", units[i]);
		snprintf(inlined, sizeof(inlined), "in_%s", units[i]);
		if (elf_file__find_symbol(file, function, &start, &size))
			continue;
		for (uint64_t at = start; at < start + size; at++) {
			n = symbols__resolve(symbols, at, frames, ARRAY_SIZE(frames));
			if (n != 2 || frames[0].line != 5)
				continue;
			right += !strcmp(frames[0].function, inlined) && frames[1].line == 9 &&
				 frames[1].file && strstr(frames[1].file, units[i]) &&
				 !strcmp(frames[1].function, function);
			break;
		}
	}
	symbols__free(symbols);
	elf_file__free(file);
	return right;
}

/* Returns true if a sentence names @name's two units and the first file. */
static bool is_missed(const char *name)
{
	const struct debug_missing *missing;
	char text[DEBUG_MISSING_BYTES], path[128];

	snprintf(path, sizeof(path), "%s/%s: no inlined frames of 2 ", workdir, name);
	for (size_t i = 0; (missing = debug_missing__get(i)); i++) {
		debug_missing__text(missing, text);
		if (strstr(text, path) && strstr(text, "one.dwo"))
			return true;
	}
	return false;
}

static void check(const char *what, const char *command, const char *name)
{
	if (!workdir__try("{ %s; } >log 2>&1", command)) {
		tap__skip("this machine's tools cannot", "%s", what);
		return;
	}
	is_int(count_right(name), 2, "%s", what);
}

static void test_places(const char *compiler, int version)
{
	char lost[32];

	if (!build(compiler, version)) {
		tap__skip("not there", "%s, DWARF %d", compiler, version);
		return;
	}
	tap__diag("%s, DWARF %d", compiler, version);
	workdir__run("rm -rf away && cp -r obj away");
	check("where they were built", "true", "prog");
	check("compressed by zlib", "objcopy --compress-debug-sections=zlib obj/one.dwo", "prog");
	check("compressed by zstd", "objcopy --compress-debug-sections=zstd obj/two.dwo", "prog");
	check("beside the program", "mv obj/*.dwo .", "prog");
	workdir__run("rm -f *.dwo");
	/* The dwp of binutils 2.40 omits DWARF 5, and llvm-dwp 14 hangs on files of gcc. */
	if (version == 4)
		check("a package of dwp", "cd away && dwp one.dwo two.dwo -o ../prog.dwp", "prog");
	if (!strcmp(compiler, "clang"))
		check("a package of llvm-dwp",
		      "cd away && timeout 20 llvm-dwp one.dwo two.dwo -o ../prog.dwp", "prog");
	if (version == 4 || !strcmp(compiler, "clang"))
		check("a package, compressed", "objcopy --compress-debug-sections=zstd prog.dwp",
		      "prog");
	ok(!is_missed("prog"), "nothing was missing");
	snprintf(lost, sizeof(lost), "prog-%.3s-%d", compiler, version);
	workdir__run("rm -rf *.dwp && cp prog %s", lost);
	is_int(count_right(lost), 0, "gone");
	ok(is_missed(lost), "and that is reported");
}

/* Files of another build have other IDs. */
static void test_stale(void)
{
	if (!build("gcc", 5))
		return;
	workdir__run("cp prog prog-stale && cp obj/one.dwo old.dwo");
	workdir__run("sed -i 's/in_/zz_/' one.c && cd obj && gcc -c -O2 -g -gdwarf-5 -gsplit-dwarf "
		     "../one.c -o one.o");
	is_int(count_right("prog-stale"), 1, "only the unit whose file is of the same build");
	workdir__run("cp old.dwo obj/one.dwo");
	is_int(count_right("prog-stale"), 2, "and both with the old file");
}

/* Damaged packages and files: any result except a crash, a hang or names of another unit. */
static void test_damaged(const char *name)
{
	char path[128];
	size_t len;
	unsigned char *bytes = workdir__read(name, &len);
	int wrong = 0;
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", workdir, name);
	srand(1);
	for (int i = 0; i < 300; i++) {
		unsigned char saved[8];
		size_t at[8];

		for (int k = 0; k < 8; k++) {
			at[k] = rand() % len;
			saved[k] = bytes[at[k]];
			bytes[at[k]] = i % 3 ? rand() : 0xff;
		}
		out = fopen(path, "w");
		if (!out || fwrite(bytes, 1, len, out) != len || fclose(out))
			exit(1);
		wrong += count_right("prog") > 2;
		for (int k = 7; k >= 0; k--)
			bytes[at[k]] = saved[k];
	}
	out = fopen(path, "w");
	if (!out || fwrite(bytes, 1, len, out) != len || fclose(out))
		exit(1);
	is_int(wrong, 0, "%s: 300 damaged ones", name);
	is_int(count_right("prog"), 2, "and the whole one");
	is_int(quota__retained(), 0, "no memory is left charged");
	free(bytes);
}

int main(void)
{
	workdir__make();
	for (int version = 4; version <= 5; version++) {
		test_places("gcc", version);
		test_places("clang", version);
	}
	test_stale();
	if (build("gcc", 5)) {
		test_damaged("obj/one.dwo");
		if (build("gcc", 4) &&
		    workdir__try("dwp obj/one.dwo obj/two.dwo -o prog.dwp && rm obj/*.dwo"))
			test_damaged("prog.dwp");
	}
	return tap__done();
}
