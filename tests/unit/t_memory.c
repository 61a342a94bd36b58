// SPDX-License-Identifier: GPL-2.0-or-later
/* The sources of memory (core/base/memory.h): a live process (the test itself), recorded pages,
 * core files that gdb made, and malformed ones. */
#include "core/base/memory.h"
#include "core/files/memory_core.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "core/base/util.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

#define PAGE	   4096
#define FILE_BYTES (2 * PAGE + 100)

/* Mappings of the child of this test: two pages with a hole between them, and a file that ends
 * within its third page. They are mapped before the fork, so that both processes have their
 * addresses. */
static unsigned char *pages, *file_pages;
static pid_t child;

static void map_all(void)
{
	char path[256], text[FILE_BYTES];
	int fd;

	pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < 3 * PAGE; i++)
		pages[i] = i * 7 + (i >> 8);
	snprintf(path, sizeof(path), "%s/mapped", workdir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = 'a' + i % 23;
	if (write(fd, text, sizeof(text)) != sizeof(text))
		exit(1);
	file_pages = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	munmap(pages + PAGE, PAGE);
}

static void start_child(void)
{
	child = fork();
	if (!child) {
		cpu_set_t one; /* the kernel writes the number into the thread's memory */

		CPU_ZERO(&one);
		CPU_SET(sched_getcpu(), &one);
		sched_setaffinity(0, sizeof(one), &one);
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}

/* --- */

struct seen {
	int n, ret;
	uint64_t address;
	size_t size;
};

static void see(void *ctx, uint64_t address, size_t size, int ret)
{
	struct seen *seen = ctx;

	*seen = (struct seen) { seen->n + 1, ret, address, size };
}

static uint64_t at(const void *pointer)
{
	return (uintptr_t)pointer;
}

static void check_live(struct memory *memory, const char *what)
{
	unsigned char bytes[2 * PAGE];
	struct seen seen = {};

	memory__observe(memory, see, &seen);
	ok(!memory__read(memory, at(pages), bytes, PAGE) && !memcmp(bytes, pages, PAGE),
	   "%s: bytes of a page", what);
	ok(seen.n == 1 && !seen.ret && seen.address == at(pages) && seen.size == PAGE,
	   "%s: the observer is told", what);
	is_int(memory__read(memory, at(pages) + PAGE - 8, bytes, 16), -EFAULT,
	       "%s: a read into a hole fails", what);
	is_int(seen.ret, -EFAULT, "%s: and the observer is told", what);
	memory__observe(memory, NULL, NULL);
	is_int(memory__read(memory, at(pages) + PAGE, bytes, 1), -EFAULT, "%s: a hole", what);
	is_int(memory__read(memory, 0, bytes, 8), -EFAULT, "%s: address 0", what);
	is_int(memory__read(memory, UINT64_MAX - 3, bytes, 8), -EFAULT, "%s: a range that wraps",
	       what);
	is_int(memory__read(memory, at(file_pages) + 3 * PAGE, bytes, 8), -EFAULT,
	       "%s: a page behind the end of its file", what);
	ok(!memory__read(memory, at(file_pages) + FILE_BYTES - 4, bytes, 8) &&
		   !memcmp(bytes + 4, "\0\0\0\0", 4),
	   "%s: zeroes behind the end of a file", what);
	is_int(seen.n, 2, "%s: an observer that has been taken away is not told", what);
}

static void test_process(void)
{
	struct memory *memory;
	char byte;
	pid_t dead = fork();

	if (!dead)
		_exit(0);
	memory__of_process(child, &memory);
	check_live(memory, "process");
	memory__free(memory);
	memory__of_self(&memory);
	check_live(memory, "self");
	memory__free(memory);
	waitpid(dead, NULL, 0);
	memory__of_process(dead, &memory);
	is_int(memory__read(memory, at(pages), &byte, 1), -EFAULT, "process: of a dead one");
	memory__free(memory);
	memory__free(NULL);
}

/* --- recorded pages --- */

static void test_pages(void)
{
	struct memory *memory;
	char bytes[64];

	memory__of_pages(&memory);
	is_int(memory__read(memory, 0x1000, bytes, 1), -EFAULT, "pages: empty");
	is_int(memory__add_mapping(memory, 0x2000, 0x2000), -EINVAL, "pages: empty mapping");
	is_int(memory__add_mapping(memory, 0x2000, 0x1000), -EINVAL, "pages: mapping upside down");
	is_int(memory__add_mapping(memory, 0x1000, 0x2000), 0, "pages: a mapping");
	is_int(memory__add_mapping(memory, 0x1fff, 0x3000), -EINVAL,
	       "pages: mappings that overlap");
	is_int(memory__add_mapping(memory, 0x2000, 0x3000), 0, "pages: the mapping behind it");
	is_int(memory__add_bytes(memory, 0x1018, "defg", 4), 0, "pages: bytes");
	is_int(memory__add_bytes(memory, 0x1010, "--abc---", 8), 0, "pages: bytes before them");
	is_int(memory__add_bytes(memory, 0x1017, "x", 1), -EINVAL, "pages: bytes that overlap");
	is_int(memory__add_bytes(memory, 0x1000, bytes, 64), -EINVAL, "pages: bytes around others");
	is_int(memory__add_bytes(memory, 0x1030, "", 0), -EINVAL, "pages: no bytes");
	is_int(memory__add_bytes(memory, UINT64_MAX - 1, "wrap", 4), -EINVAL,
	       "pages: bytes that wrap");
	is_int(memory__add_bytes(memory, 0x1ffe, "edge", 4), 0, "pages: across two mappings");
	ok(!memory__read(memory, 0x1012, bytes, 8) && !memcmp(bytes, "abc---de", 8),
	   "pages: a read across two ranges");
	ok(!memory__read(memory, 0x1ffe, bytes, 4) && !memcmp(bytes, "edge", 4),
	   "pages: a read across two mappings");
	is_int(memory__read(memory, 0x101a, bytes, 4), -ENODATA,
	       "pages: mapped, but not recorded to its end");
	is_int(memory__read(memory, 0x1800, bytes, 4), -ENODATA, "pages: mapped, not recorded");
	is_int(memory__read(memory, 0x2ffe, bytes, 4), -EFAULT, "pages: out of a mapping");
	is_int(memory__read(memory, 0x0ffe, bytes, 4), -EFAULT, "pages: into a mapping");
	is_int(memory__read(memory, UINT64_MAX, bytes, 4), -EFAULT, "pages: a range that wraps");
	is_int(memory__add_bytes(memory, 0x9000, "loose", 5), 0, "pages: bytes of no mapping");
	ok(!memory__read(memory, 0x9000, bytes, 5) && !memcmp(bytes, "loose", 5),
	   "pages: are there");
	is_int(memory__add_missing(memory, 0x9003, "--und", 5), 0, "pages: bytes around others");
	is_int(memory__add_missing(memory, 0x8ffe, "a l----- end", 12), 0,
	       "pages: bytes on both sides");
	ok(!memory__read(memory, 0x8ffe, bytes, 12) && !memcmp(bytes, "a looseund", 10) &&
		   !memcmp(bytes + 10, "nd", 2),
	   "pages: only what was missing is added");
	is_int(memory__add_missing(memory, UINT64_MAX - 1, "wrap", 4), -EINVAL,
	       "pages: missing bytes that wrap");
	memory__free(memory);
}

/* --- core files --- */

static struct memory *open_core(const char *name, struct err *err)
{
	struct memory *memory = NULL;
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", workdir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return memory__of_core(fd, path, &memory, err) ? NULL : memory;
}

/* Compares page by page. Pages that the process itself cannot read (guard pages, the clock's) may
 * differ. */
static void compare_mappings(const struct memory *core)
{
	static unsigned char live[PAGE], got[PAGE];
	char path[64], line[4096], wrong[256] = "";
	unsigned n = 0, of_files = 0, missing = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", child);
	maps = fopen(path, "re");
	while (fgets(line, sizeof(line), maps)) {
		uint64_t start, end;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) != 2 || strstr(line, "[v"))
			continue;
		for (uint64_t page = start; page < end; page += PAGE) {
			struct iovec to = { live, PAGE }, from = { (void *)page, PAGE };

			if (process_vm_readv(child, &to, 1, &from, 1, 0) != PAGE)
				continue;
			n++;
			of_files += strstr(line, " r-xp ") && strchr(line, '/');
			if (!memory__read(core, page, got, PAGE) && !memcmp(live, got, PAGE))
				continue;
			missing++;
			snprintf(wrong, sizeof(wrong), "%" PRIx64 " in %.200s", page, line);
		}
	}
	fclose(maps);
	if (!ok(n > 100 && of_files > 50 && !missing,
		"core: all of %u pages, %u of them code of files", n, of_files))
		tap__diag("%u are not equal, the last: %s", missing, wrong);
}

static void test_core(void)
{
	unsigned char bytes[2 * PAGE];
	char command[400];
	struct err err = {};
	struct memory *core = open_core("core", &err);

	if (!ok(core, "core: can be read"))
		return;
	compare_mappings(core);
	is_int(memory__read(core, at(pages) + PAGE - 8, bytes, 16), -EFAULT,
	       "core: a read into a hole fails");
	is_int(memory__read(core, 0, bytes, 8), -EFAULT, "core: address 0");
	is_int(memory__read(core, UINT64_MAX - 3, bytes, 8), -EFAULT, "core: a range that wraps");
	is_int(memory__read(core, at(file_pages) + 3 * PAGE, bytes, 8), -EFAULT,
	       "core: a page behind the end of its file");
	ok(!memory__read(core, at(file_pages) + PAGE - 4, bytes, 8) &&
		   !memcmp(bytes, file_pages + PAGE - 4, 8),
	   "core: a read across two pages of a file");
	memory__free(core);
	snprintf(command, sizeof(command), "cd '%s' && head -c 100000 core > cut", workdir);
	if (system(command) == 0)
		memory__free(open_core("cut", NULL)); /* its headers may be complete */
}

static void count_read(void *ctx, uint64_t address, size_t size, int ret)
{
	(void)address, (void)size, (void)ret;
	++*(unsigned *)ctx;
}

/* Pages at 0x10000 and 0x11000, and 16 bytes of the next page. */
static void test_cached(void)
{
	static unsigned char two[8192], part[16] = { 1, 2, 3 };
	struct memory *inner = NULL, *cached = NULL;
	unsigned char got[16];
	unsigned n = 0;

	memset(two, 7, sizeof(two));
	memory__of_pages(&inner);
	memory__add_bytes(inner, 0x10000, two, sizeof(two));
	memory__add_bytes(inner, 0x12000, part, sizeof(part));
	memory__cached(inner, &cached);
	memory__observe(inner, count_read, &n);
	is_int(memory__read(cached, 0x10ff8, got, 16), 0, "cached: across pages");
	ok(got[0] == 7 && got[15] == 7 && n == 2, "cached: each page is read once");
	memory__read(cached, 0x10000, got, 16);
	is_int(n, 2, "cached: and not again");
	memory__forget(cached);
	memory__read(cached, 0x10000, got, 16);
	is_int(n, 3, "cached: until it is forgotten");
	is_int(memory__read(cached, 0x12000, got, 3), 0, "cached: of a page that is there in part");
	ok(!memcmp(got, part, 3), "cached: its bytes");
	is_int(memory__read(cached, 0x13000, got, 1), -EFAULT, "cached: what is not there");
	is_int(memory__read(cached, UINT64_MAX - 3, got, 8), -EFAULT, "cached: what wraps");
	memory__free(cached);
	memory__free(inner);
}

static void test_patched(void)
{
	const struct memory_patch patches[] = { { 0x10004, 0x0807060504030201 },
						{ 0x500, 0x11 },
						{ UINT64_MAX - 3, 0x22 } };
	static const unsigned char want[16] = { 9, 9, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9 };
	struct memory *inner = NULL, *patched = NULL;
	unsigned char nines[16], got[16];

	memset(nines, 9, sizeof(nines));
	memory__of_pages(&inner);
	memory__add_bytes(inner, 0x10000, nines, sizeof(nines));
	memory__patched(inner, &patched);
	memory__patch(patched, patches, 3);
	is_int(memory__read(patched, 0x10000, got, 16), 0, "patched: around a word");
	ok(!memcmp(got, want, 16), "patched: its bytes, and others'");
	is_int(memory__read(patched, 0x10008, got, 2), 0, "patched: within it");
	ok(got[0] == 5 && got[1] == 6, "patched: a part of it");
	is_int(memory__read(patched, 0x500, got, 8), 0, "patched: where nothing is");
	ok(got[0] == 0x11 && !got[7], "patched: what was put there");
	is_int(memory__read(patched, 0x500, got, 9), -EFAULT, "patched: and not behind it");
	is_int(memory__read(patched, UINT64_MAX - 3, got, 8), -EFAULT, "patched: what wraps");
	memory__patch(patched, NULL, 0);
	memory__read(patched, 0x10000, got, 16);
	ok(!memcmp(got, nines, 16), "patched: no more");
	memory__free(patched);
	memory__free(inner);
}

int main(void)
{
	char command[512];

	workdir__make();
	map_all();
	start_child();
	test_process();
	test_pages();
	test_cached();
	test_patched();
	snprintf(command, sizeof(command),
		 "cd '%s' && gcore -o core %d >log 2>&1 && mv core.%d core", workdir, child, child);
	if (system(command) == 0)
		test_core();
	else
		ok(false, "gcore makes a core file");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return tap__done();
}
