// SPDX-License-Identifier: GPL-2.0-or-later
/* The maps of a process, here the test itself: files that appear, grow, are rewritten and
 * disappear. Also the maps of its ancestor, and files that braid does not trust. */
#include "core/target/jit_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/util.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

static char map_path[64], dump_path[64];
static struct jit_sources *sources;
static struct jit_maps *maps;
static struct procfs_info self;

static void remove_files(void)
{
	unlink(map_path);
	unlink(dump_path);
}

static void begin(void)
{
	jit_maps__free(maps);
	remove_files();
	if (jit_maps__new(&self, sources, &maps))
		exit(1);
}

__attribute__((format(printf, 3, 4))) static void write_file(const char *path, const char *mode,
							     const char *fmt, ...)
{
	FILE *file = fopen(path, mode);
	va_list args;

	va_start(args, fmt);
	if (!file || vfprintf(file, fmt, args) < 0 || fclose(file))
		exit(1);
	va_end(args);
}

/* Writes a jitdump file with one piece of code. */
static void write_dump(const char *path, uint64_t time, uint64_t address, const char *name)
{
	uint32_t head[] = { 0x4a695444, 1, 40, 62, 0, 1, 0, 0, 0, 0 };
	uint32_t record[14] = { 0, 56 + 16, time };
	FILE *file = fopen(path, "w");
	char text[16] = "";

	record[6] = record[8] = address;
	record[10] = 0x100;
	snprintf(text, sizeof(text), "%s", name);
	if (!file || !fwrite(head, sizeof(head), 1, file) ||
	    !fwrite(record, sizeof(record), 1, file) || !fwrite(text, 16, 1, file) || fclose(file))
		exit(1);
}

static const char *name_at(uint64_t address, uint64_t time)
{
	static struct jit_symbol symbol;
	struct jit_place place;

	if (!jit_maps__find(maps, address, time, &place))
		return "";
	return jit_maps__symbol(maps, &place, address, 0, &symbol) ? symbol.name : "(lost)";
}

static void test_growth(void)
{
	uint32_t version;

	begin();
	jit_maps__look(maps, JIT_LOOK_FILES, 100);
	is_str(name_at(0x1000, 100), "", "no file");
	write_file(map_path, "w", "1000 100 one\n");
	jit_maps__look(maps, JIT_LOOK_GROWTH, 200);
	is_str(name_at(0x1000, 200), "", "a quick look opens no file");
	version = jit_maps__version(maps);
	jit_maps__look(maps, JIT_LOOK_FILES, 300);
	is_str(name_at(0x1000, 10), "one", "what is there at first has been there before");
	ok(jit_maps__version(maps) != version, "answers have changed, and so has the version");
	version = jit_maps__version(maps);
	jit_maps__look(maps, JIT_LOOK_FILES, 400);
	is_int(jit_maps__version(maps), version, "nothing has changed");
	write_file(map_path, "a", "1000 100 two\n");
	jit_maps__look(maps, JIT_LOOK_GROWTH, 500);
	is_int(jit_maps__looked_ns(maps), 500, "it was looked at");
	is_str(name_at(0x1000, 399), "one", "before the last look without the new line");
	is_str(name_at(0x1000, 400), "two", "from then on");
	remove_files();
	write_file(map_path, "w", "1000 100 three\n");
	jit_maps__look(maps, JIT_LOOK_GROWTH, 600);
	is_str(name_at(0x1000, 600), "two", "a quick look minds no other file");
	jit_maps__look(maps, JIT_LOOK_FILES, 700);
	is_str(name_at(0x1000, 700), "three", "another file in its place");
	write_file(map_path, "w", "1000 80 four\n");
	jit_maps__look(maps, JIT_LOOK_FILES, 800);
	is_str(name_at(0x1000, 800), "four", "the same file, written anew");
	is_str(name_at(0x1090, 800), "", "what is not in it any more");
	unlink(map_path);
	write_file(dump_path, "w", "%s", "");
	jit_maps__look(maps, JIT_LOOK_ALL, 900);
	is_str(name_at(0x1000, 900), "four", "a file that was removed stays readable");
}

static void test_jitdump(void)
{
	char path[128];

	begin();
	write_file(map_path, "w", "1000 100 by the map\n2000 100 only there\n");
	write_dump(dump_path, 250, 0x1000, "by the dump");
	jit_maps__look(maps, JIT_LOOK_ALL, 300);
	is_str(name_at(0x1000, 260), "by the dump", "a jitdump file comes first");
	is_str(name_at(0x2000, 260), "only there", "the map knows more");
	snprintf(path, sizeof(path), "%s/jit-%u.dump", workdir, self.inner_pid);
	write_dump(path, 250, 0x3000, "elsewhere");
	jit_maps__offer(maps, "/lib/libc.so.6", 0, 0);
	jit_maps__look(maps, JIT_LOOK_ALL, 310);
	is_str(name_at(0x3000, 310), "", "a file that nobody has mapped");
	jit_maps__offer(maps, path, 0, 0);
	jit_maps__offer(maps, path, 0, 0);
	jit_maps__look(maps, JIT_LOOK_ALL, 320);
	is_str(name_at(0x3000, 320), "elsewhere", "one that is mapped, wherever it is");
	snprintf(path, sizeof(path), "%s/jit-%u.dump", workdir, self.inner_pid + 1);
	write_dump(path, 250, 0x4000, "another's");
	jit_maps__offer(maps, path, 0, 0);
	jit_maps__look(maps, JIT_LOOK_ALL, 330);
	is_str(name_at(0x4000, 330), "", "one of another process");
	snprintf(path, sizeof(path), "%s/jit-%u.dump.old", workdir, self.inner_pid);
	write_dump(path, 250, 0x4000, "old");
	jit_maps__offer(maps, path, 0, 0);
	jit_maps__look(maps, JIT_LOOK_ALL, 340);
	is_str(name_at(0x4000, 340), "", "one of another name");
}

/* A child has its parent's code, as of the fork, until the child compiles its own. */
/* Names that compilers give such files; '*' stands for the PID. */
static void test_names(void)
{
	static const struct {
		const char *name;
		bool found;
	} cases[] = {
		{ "jit-7-*.dump", true },
		{ "jit-7-*-tUAsFk", true },
		{ "jit-*-tUAsFk.dump", true },
		{ "jit-*-7.dump", true },
		{ "jit-7.dump", false },
		{ "jit-7-8.dump", false },
		{ "jit-*", false },
		{ "jit-*.map", false },
		{ "jit--*.dump", false },
		{ "jit-7-+*.dump", false },
		{ "jit-x-*.dump", false },
		{ "xjit-*.dump", false },
		{ "jit-7-*.dumpling", false },
		{ "jit-", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char path[200];
		const char *star = strchr(cases[i].name, '*');
		int n = star ? star - cases[i].name : (int)strlen(cases[i].name);

		begin();
		if (star)
			snprintf(path, sizeof(path), "%s/%.*s%u%s", workdir, n, cases[i].name,
				 self.inner_pid, star + 1);
		else
			snprintf(path, sizeof(path), "%s/%s", workdir, cases[i].name);
		write_dump(path, 250, 0x3000, "here");
		jit_maps__offer(maps, path, 0, 0);
		jit_maps__look(maps, JIT_LOOK_ALL, 310);
		is_str(name_at(0x3000, 310), cases[i].found ? "here" : "", "mapped: %s",
		       cases[i].name);
		unlink(path);
	}
}

static void test_many(void)
{
	char path[128];
	int n = 0;

	begin();
	for (int i = 1; i <= 40; i++) {
		snprintf(path, sizeof(path), "%s/jit-%d-%u.dump", workdir, 1000000 + i,
			 self.inner_pid);
		write_dump(path, 250, 0x1000 * i, "one");
		jit_maps__offer(maps, path, 0, 0);
	}
	jit_maps__look(maps, JIT_LOOK_ALL, 310);
	for (int i = 1; i <= 40; i++)
		n += !strcmp(name_at(0x1000 * i, 310), "one");
	ok(n >= 16 && n < 40, "files of many threads, up to a limit: %d", n);
}

/* Runs in a process of its own, as the environment is that of its exec. */
static void test_temporary(const char *program)
{
	char command[400];

	snprintf(command, sizeof(command), "TMPDIR=%s '%s' temporary", workdir, program);
	is_int(system(command), 0, "the perf map in the directory for temporary files");
}

static int look_in_temporary(void)
{
	char path[160];
	bool found;

	snprintf(path, sizeof(path), "%s/perf-%u.map", getenv("TMPDIR"), self.inner_pid);
	begin();
	write_file(path, "w", "1000 100 there\n");
	jit_maps__look(maps, JIT_LOOK_FILES, 100);
	found = !strcmp(name_at(0x1000, 100), "there");
	unlink(path);
	return found ? 0 : 1;
}

static void test_fork(void)
{
	struct procfs_info child = self;
	struct jit_maps *parent;
	char path[64];

	begin();
	child.inner_pid = 2000000001;
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", child.inner_pid);
	write_file(map_path, "w", "1000 100 inherited\n2000 100 both\n");
	jit_maps__look(maps, JIT_LOOK_FILES, 100);
	parent = maps;
	if (jit_maps__new(&child, sources, &maps))
		exit(1);
	jit_maps__inherit(maps, &(struct jit_ancestor) { self.inner_pid, self.start_ticks, 150 });
	write_file(path, "w", "2000 100 own\n");
	jit_maps__look(maps, JIT_LOOK_FILES, 200);
	is_str(name_at(0x1000, 300), "inherited", "a child inherits code");
	is_str(name_at(0x2000, 300), "own", "its own file comes first");
	write_file(map_path, "a", "1000 100 the parent's later\n");
	jit_maps__look(maps, JIT_LOOK_FILES, 400);
	is_str(name_at(0x1000, 500), "inherited", "what the parent does later is not its");
	jit_maps__look(parent, JIT_LOOK_FILES, 400);
	jit_maps__free(maps);
	maps = parent;
	is_str(name_at(0x1000, 500), "the parent's later", "but the parent's");
	unlink(path);
}

static void test_refusals(void)
{
	struct timespec long_ago[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
	struct err err = {};

	begin();
	write_file(map_path, "w", "1000 100 left over\n");
	utimensat(AT_FDCWD, map_path, long_ago, 0);
	jit_maps__look(maps, JIT_LOOK_FILES, 100);
	is_str(name_at(0x1000, 100), "", "a file of the PID's former life");
	ok(jit_maps__refusal(maps, &err) && strstr(err.text, map_path) &&
		   strstr(err.text, "older than the process"),
	   "is refused, as is one that only a clock makes old: %s", err.text);
	write_file(map_path, "a", "1000 100 in use\n");
	jit_maps__look(maps, JIT_LOOK_FILES, 200);
	is_str(name_at(0x1000, 200), "in use", "it is written to");
	begin();
	if (symlink("/etc/passwd", map_path))
		exit(1);
	jit_maps__look(maps, JIT_LOOK_FILES, 100);
	ok(jit_maps__refusal(maps, &err) && strstr(err.text, map_path) && strstr(err.text, "link"),
	   "a link is refused: %s", err.text);
	jit_maps__look(maps, JIT_LOOK_FILES, 200);
	ok(!jit_maps__refusal(maps, &err), "which is told once");
	unlink(map_path);
	write_file(map_path, "w", "1000 100 real\nwhat is this\n");
	jit_maps__look(maps, JIT_LOOK_FILES, 300);
	is_str(name_at(0x1000, 300), "real", "a real file is read all the same");
}

static void test_counts(void)
{
	struct jit_maps_counts counts = {};

	begin();
	write_file(map_path, "w", "1000 100 one\nno line\n2000 100 two\n");
	jit_maps__look(maps, JIT_LOOK_FILES, 100);
	jit_maps__count(maps, &counts);
	jit_maps__count(maps, &counts);
	is_int(counts.symbols, 4, "symbols are counted, twice here");
	is_int(counts.skipped, 2, "and what is none");
}

int main(int argc, char **argv)
{
	struct err err = {};

	if (argc < 2)
		workdir__make();
	sources = jit_sources__new();
	if (!sources || procfs__info(getpid(), &self, &err))
		exit(1);
	snprintf(map_path, sizeof(map_path), "/tmp/perf-%u.map", self.inner_pid);
	snprintf(dump_path, sizeof(dump_path), "/tmp/jit-%u.dump", self.inner_pid);
	atexit(remove_files);
	if (argc > 1)
		return look_in_temporary();
	test_growth();
	test_jitdump();
	test_names();
	test_many();
	test_temporary(argv[0]);
	test_fork();
	test_refusals();
	test_counts();
	jit_maps__free(maps);
	jit_maps__free(NULL);
	jit_sources__free(sources);
	jit_sources__free(NULL);
	return tap__done();
}
