// SPDX-License-Identifier: GPL-2.0-or-later
/* Files of compiled code that several processes share, and files that are made to be expensive.
 * Their memory, bytes and time are bounded. Code beyond a bound has no names and is counted. */
#include "core/target/jit_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/quota.h"
#include "core/base/stop.h"
#include "core/base/util.h"
#include "core/target/jit_maps.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

#define USER   4711
#define PIECES 50000 /* pieces of code in a file */
#define MIB    (1ULL << 20)

static struct jit_sources *sources;
static char path[300];

/* Writes a map of pieces of code, each @bytes long and @stride bytes after the previous one. */
static void write_map(const char *mode, unsigned n, unsigned stride, unsigned bytes)
{
	FILE *file = fopen(path, mode);

	for (unsigned i = 0; file && i < n; i++)
		fprintf(file, "%x %x piece %u\n", 0x10000 + i * stride, bytes, i);
	if (!file || fclose(file))
		exit(1);
}

static struct jit_source *open_source(uint32_t uid)
{
	struct jit_source *source = NULL;
	struct jit_file file = JIT_FILE_NONE;
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (jit_file__open(root, path, getuid(), 0, &file, NULL) ||
	    jit_sources__share(sources, &file, false, uid, path, &source))
		exit(1);
	close_fd(&root);
	return source;
}

static struct perf_map_counts counts;

static void look(struct jit_source *source, enum jit_look how, uint64_t now)
{
	if (jit_source__look(source, how, now, &counts))
		exit(1);
}

static const char *name_of(struct jit_source *source, uint64_t address)
{
	static struct jit_symbol symbol;
	struct jit_entry entry;

	if (!jit_source__find(source, address, UINT64_MAX, &entry))
		return "";
	return jit_source__symbol(source, jit_source__edition(source), &entry, address, 0, &symbol)
		       ? symbol.name
		       : "(lost)";
}

/* Sets the limit of @kind for a file to @burst, and no other limits. */
static void limit(enum quota_kind kind, uint64_t burst)
{
	static struct quota_limits limits;

	for (int i = 0; i < QUOTA_LEVELS; i++)
		for (int k = 0; k < QUOTA_KINDS; k++)
			limits.limits[i][k] = (struct quota_limit) { UINT64_MAX / 2, 0 };
	limits.limits[QUOTA_FILE][kind].burst = burst;
	quota__set_limits(&limits);
}

static bool is_over(void)
{
	enum quota_level level;
	const char *name = quota__over(0, &level);

	return name && !strcmp(name, path) && quota__over_count() == 1;
}

static void test_sharing(void)
{
	struct jit_source *a, *b, *other;
	uint64_t retained;

	quota__set_limits(NULL);
	write_map("w", PIECES, 16, 16);
	a = open_source(USER);
	b = open_source(USER);
	ok(a == b, "a file has one source");
	look(a, JIT_LOOK_ALL, 100);
	retained = quota__retained();
	ok(retained >= PIECES * sizeof(struct jit_entry), "its index is charged: %lu",
	   (long)retained);
	look(b, JIT_LOOK_ALL, 200);
	is_int(quota__retained(), retained, "and there once");
	is_int(counts.symbols, PIECES, "its lines are read once");
	other = open_source(USER + 1);
	ok(other != a, "another user has a source and a budget of its own");
	jit_source__release(other);
	jit_source__release(a);
	is_str(name_of(b, 0x10000 + 16 * 7 + 3), "piece 7", "it stays for the other");
	jit_source__release(b);
	is_int(quota__retained(), 0, "and goes with the last");
	jit_source__release(NULL);
}

/* Reads the file for two processes that share one map. */
static void test_processes(void)
{
	struct procfs_info one = { .pid = getpid(), .inner_pid = 2000000001, .uid = getuid() };
	struct procfs_info two = one;
	struct jit_maps *maps[2];
	struct jit_place place;
	char names[2][64];
	uint32_t version;

	two.inner_pid++;
	snprintf(names[0], sizeof(names[0]), "/tmp/perf-%u.map", one.inner_pid);
	snprintf(names[1], sizeof(names[1]), "/tmp/perf-%u.map", two.inner_pid);
	snprintf(path, sizeof(path), "%s", names[0]);
	unlink(names[1]);
	write_map("w", 10, 16, 16);
	if (link(names[0], names[1]) || jit_maps__new(&one, sources, &maps[0]) ||
	    jit_maps__new(&two, sources, &maps[1]))
		exit(1);
	jit_maps__look(maps[0], JIT_LOOK_ALL, 100);
	jit_maps__look(maps[1], JIT_LOOK_ALL, 100);
	version = jit_maps__version(maps[1]);
	is_int(jit_maps__version(maps[1]), version, "nothing has changed");
	write_map("a", 20, 16, 16);
	jit_maps__look(maps[0], JIT_LOOK_ALL, 200);
	ok(jit_maps__version(maps[1]) != version,
	   "what one process's look has found, another's answers are of, too");
	ok(jit_maps__find(maps[1], 0x10000 + 15 * 16, 300, &place), "it has the new code");
	write_map("w", 1, 16, 16);
	jit_maps__look(maps[0], JIT_LOOK_ALL, 300);
	ok(!jit_maps__find(maps[1], 0x10000 + 15 * 16, 400, &place), "and the file written anew");
	jit_maps__free(maps[0]);
	ok(jit_maps__find(maps[1], 0x10000, 400, &place), "it outlives the other");
	jit_maps__free(maps[1]);
	unlink(names[0]);
	unlink(names[1]);
	snprintf(path, sizeof(path), "%s/map", workdir);
}

static void test_memory(void)
{
	struct jit_source *source;

	limit(QUOTA_INDEXED, MIB);
	write_map("w", 100, 16, 16);
	source = open_source(USER);
	look(source, JIT_LOOK_ALL, 100);
	is_str(name_of(source, 0x10000), "piece 0", "a file within its budget");
	write_map("a", PIECES, 16, 16);
	look(source, JIT_LOOK_ALL, 200);
	is_str(name_of(source, 0x10000), "", "over the budget there is no index");
	is_int(quota__retained(), 0, "nor memory of it");
	ok(quota__retained_max() <= MIB, "there never was more: %lu", (long)quota__retained_max());
	ok(is_over(), "which is counted by name");
	write_map("w", 10, 16, 16);
	look(source, JIT_LOOK_FILES, 300);
	is_str(name_of(source, 0x10000), "", "it is not tried again at once");
	look(source, JIT_LOOK_FILES, 300 + 20 * NSEC_PER_SEC);
	is_str(name_of(source, 0x10000), "piece 0", "but later: it may have become less");
	jit_source__release(source);
}

/* A file that is rewritten before each read. */
static void test_rewriting(void)
{
	struct jit_source *source;
	struct stat st;
	unsigned n = 0;

	write_map("w", PIECES, 16, 16);
	if (stat(path, &st))
		exit(1);
	limit(QUOTA_READ, 10 * st.st_size);
	source = open_source(USER);
	counts = (struct perf_map_counts) {};
	for (n = 0; n < 100 && !is_over(); n++) {
		write_map("w", PIECES - n, 16, 16);
		look(source, JIT_LOOK_FILES, 100 + n);
	}
	ok(is_over(), "a file that is written anew all the time comes to its limit");
	ok(counts.symbols <= 11 * PIECES && n > 5, "%lu lines of %u readings are read",
	   (long)counts.symbols, n);
	is_str(name_of(source, 0x10000), "", "then it has no names");
	jit_source__release(source);
}

/* Each search would scan thousands of entries. */
static void test_overlaps(void)
{
	enum { SEARCHES = 1000000 };
	struct jit_source *source;
	struct jit_entry entry;
	int n = 0;

	limit(QUOTA_CPU_NS, 2 * NSEC_PER_SEC);
	write_map("w", PIECES, 1, PIECES);
	source = open_source(USER);
	look(source, JIT_LOOK_ALL, 100);
	ok(jit_source__find(source, 0x10000 + PIECES / 2, 50, &entry), "ranges that overlap");
	while (n < SEARCHES && jit_source__find(source, 0x10000 + PIECES / 2, n, &entry))
		n++;
	ok(n < SEARCHES && is_over(), "searches that are long end: after %d", n);
	jit_source__release(source);
}

static void test_huge(void)
{
	struct jit_source *source;
	int fd;

	quota__set_limits(NULL);
	write_map("w", 1, 16, 16);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 4ULL << 30))
		exit(1);
	close(fd);
	source = open_source(USER);
	counts = (struct perf_map_counts) {};
	look(source, JIT_LOOK_ALL, 100);
	ok(is_over() && !counts.symbols, "a map of 4 GiB is not read at all");
	jit_source__release(source);
	if (truncate(path, 1ULL << 30))
		exit(1);
	quota__set_limits(NULL);
	source = open_source(USER + 1);
	look(source, JIT_LOOK_ALL, 100);
	ok(counts.symbols == 1 && !strcmp(name_of(source, 0x10000), "piece 0"),
	   "a line before a GiB of zeroes");
	jit_source__release(source);
	unlink(path);
}

static void test_stop(void)
{
	struct jit_source *source;

	quota__set_limits(NULL);
	write_map("w", PIECES, 16, 16);
	source = open_source(USER);
	counts = (struct perf_map_counts) {};
	stop__request();
	look(source, JIT_LOOK_ALL, 100);
	is_int(counts.symbols, 0, "nothing is read after a stop");
	stop__clear();
	look(source, JIT_LOOK_ALL, 200);
	is_int(counts.symbols, PIECES, "what was left is read when the stop is withdrawn");
	is_str(name_of(source, 0x10000 + 16 * (PIECES - 1)), "piece 49999", "to the end");
	is_int(quota__over_count(), 0, "a stop is no fault of the file");
	jit_source__release(source);
}

int main(void)
{
	workdir__make();
	snprintf(path, sizeof(path), "%s/map", workdir);
	sources = jit_sources__new();
	if (!sources)
		exit(1);
	test_sharing();
	test_processes();
	test_memory();
	test_rewriting();
	test_overlaps();
	test_huge();
	test_stop();
	jit_sources__free(sources);
	jit_sources__free(NULL);
	return tap__done();
}
