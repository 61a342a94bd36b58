// SPDX-License-Identifier: GPL-2.0-or-later
/* Addresses of the threads' own data, compared with the threads' report. Covers programs for the
 * machine's own glibc and musl, dynamic and static, with one thread and several, and made-up ones
 * of an older musl. */
#include "core/target/thread_base.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/target/threads.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

#define THREADS_MAX 8
#define WAIT_MS	    10000

static const char program[] =
	"#define _GNU_SOURCE\n"
	"#include <pthread.h>\n"
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"#include <sys/syscall.h>\n"
	"#include <unistd.h>\n"
	"static __thread char own[BYTES] __attribute__((aligned(ALIGN)));\n"
	"static void *stay(void *unused) {\n"
	"    own[0]++;\n"
	"    printf(\"%ld %lx\\n\", (long)syscall(SYS_gettid), (unsigned long)pthread_self());\n"
	"    fflush(stdout);\n"
	"    for (;;) pause();\n"
	"    return unused;\n"
	"}\n"
	"int main(int argc, char **argv) {\n"
	"    pthread_t thread;\n"
	"    for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--)\n"
	"        if (pthread_create(&thread, NULL, stay, NULL)) return 1;\n"
	"    stay(NULL);\n"
	"}\n";

/* Waits until the thread waits. Returns its stack pointer then; 0: it does not wait. */
static uint64_t find_sp(uint32_t pid, uint32_t tid, uint32_t *ret_inner)
{
	struct thread_now now;

	for (int i = 0; i < WAIT_MS; i++, usleep(1000)) {
		if (!thread__read(pid, tid, &now))
			return 0;
		*ret_inner = now.inner_tid;
		if (now.off_cpu && now.sp)
			return now.sp;
	}
	return 0;
}

/* Returns the number of @n threads that are found at their place. Their IDs and places are read
 * from @said. */
static int count_found(uint32_t pid, FILE *said, int n)
{
	struct {
		uint32_t tid;
		uint64_t base, sp;
	} threads[THREADS_MAX];
	struct thread_bases *bases = NULL;
	struct memory *memory = NULL;
	int found = 0;

	for (int i = 0; i < n; i++) {
		uint32_t tid;

		if (fscanf(said, "%" SCNu32 " %" SCNx64, &tid, &threads[i].base) != 2)
			return -1;
		threads[i].sp = find_sp(pid, tid, &threads[i].tid);
	}
	if (memory__of_process(pid, &memory) || thread_bases__new(pid, memory, &bases))
		return -1;
	for (int i = 0; i < n; i++) {
		uint64_t got = thread_bases__find(bases, threads[i].tid, threads[i].sp);

		found += got == threads[i].base;
		if (got != threads[i].base)
			tap__diag("thread %u: %" PRIx64 ", want %" PRIx64, threads[i].tid, got,
				  threads[i].base);
	}
	is_int(thread_bases__find(bases, 0x7fffffff, threads[0].sp), 0,
	       "... and none for a thread that is not there");
	thread_bases__free(bases);
	memory__free(memory);
	return found;
}

static int find_in_program(int n_more)
{
	char path[128], argument[16];
	int out[2], found = -1;
	FILE *said;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/program", workdir);
	snprintf(argument, sizeof(argument), "%d", n_more);
	if (pipe(out))
		return -1;
	pid = fork();
	if (!pid) {
		dup2(out[1], 1);
		execl(path, path, argument, NULL);
		_exit(1);
	}
	close(out[1]);
	said = fdopen(out[0], "r");
	if (said && pid > 0)
		found = count_found(pid, said, n_more + 1);
	if (said)
		fclose(said);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return found;
}

static void test_program(const char *compile)
{
	static const struct {
		int bytes, align;
	} own[] = { { 8, 8 }, { 3000, 8 }, { 100, 512 } };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (!workdir__try("%s -DBYTES=%d -DALIGN=%d -O2 -o program program.c -pthread",
				  compile, own[i].bytes, own[i].align)) {
			tap__skip("not possible here", "%s", compile);
			return;
		}
		is_int(find_in_program(0), 1, "%s, %d bytes: the only thread", compile,
		       own[i].bytes);
		is_int(find_in_program(5), 6, "%s, %d bytes: of six", compile, own[i].bytes);
	}
}

/* --- made-up: musl 1.1.22 to 1.2.1, which has another canary in front of the IDs --- */

#define WORDS	   512 /* number of words of a page */
#define FIRST	   5
#define SECOND	   101
#define THIRD	   300
#define NO_MODULES 400
#define MODULES	   401
#define TID	   0x7000001
#define AT(word)   ((uint64_t)(uintptr_t)&page[word])

static uint64_t *page;

static uint64_t find_in_page(uint32_t tid)
{
	struct thread_bases *bases = NULL;
	struct memory *memory = NULL;
	uint64_t found = 0;

	if (!memory__of_self(&memory) && !thread_bases__new(getpid(), memory, &bases))
		found = thread_bases__find(bases, tid, AT(0));
	thread_bases__free(bases);
	memory__free(memory);
	return found;
}

static void make_thread(int at, int other, uint32_t tid)
{
	page[at] = AT(at);
	page[at + 1] = AT(NO_MODULES);
	page[at + 2] = page[at + 3] = AT(other);
	page[at + 4] = page[at + 5] = UINT64_MAX;
	page[at + 6] = 0;
	page[at + 7] = tid;
}

static void test_synthetic(void)
{
	page = mmap(NULL, 8 * WORDS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		exit(1);
	make_thread(FIRST, SECOND, TID);
	make_thread(SECOND, FIRST, TID + 1);
	ok(find_in_page(TID) == AT(FIRST), "older musl: the first");
	ok(find_in_page(TID + 1) == AT(SECOND), "... and the second");
	page[SECOND + 2] = AT(SECOND);
	is_int(find_in_page(TID), 0, "the next one does not know it");
	page[SECOND + 2] = AT(FIRST);
	page[SECOND + 3] = AT(SECOND);
	is_int(find_in_page(TID), 0, "the one before does not know it");
	page[SECOND + 3] = AT(FIRST);
	page[SECOND]++;
	is_int(find_in_page(TID), 0, "the other one is none");
	page[SECOND] = AT(SECOND);
	page[FIRST + 7] = (uint32_t)-1;
	is_int(find_in_page(-1), 0, "it has no id");
	page[FIRST + 6] = TID + 2;
	ok(find_in_page(TID + 2) == AT(FIRST), "newer musl");
	make_thread(THIRD, THIRD, TID + 2);
	ok(find_in_page(TID + 2) == AT(FIRST), "the first of two with one id");
	page[MODULES]++;
	page[THIRD + 1] = AT(MODULES);
	ok(find_in_page(TID + 2) == AT(THIRD), "... the other one, as it has variables");
	page[THIRD] = 0;
	page[FIRST + 1] = 8;
	is_int(find_in_page(TID + 2), 0, "there is nothing where they would be");
	page[FIRST + 1] = AT(MODULES);
	page[FIRST + 2] = page[FIRST + 3] = 8;
	is_int(find_in_page(TID + 2), 0, "there is nothing where others would be");
}

#define NAMES 26

/* Names of files that resemble lines of the list of mappings, from each point where a reader that
 * cuts lines could continue. */
static void test_hostile_names(void)
{
	static const char line[] = "10000-20000 rw-p 0 00:00 0";
	struct thread_bases *bases = NULL;
	struct memory *memory = NULL;
	char path[1024], name[256];
	void *at;
	int fd;

	for (int i = 0; i < NAMES; i++) {
		snprintf(path, sizeof(path), "%s/%0250d", workdir, i);
		mkdir(path, 0700);
		for (size_t n = 0; n + sizeof(line) < sizeof(name); n += sizeof(line) - 1)
			strcpy(name + n, line);
		snprintf(path, sizeof(path), "%s/%0250d/%0*d %s", workdir, i, 20 + i, 0, name);
		path[strlen(workdir) + 1 + 250 + 1 + 255] = '\0';
		fd = open(path, O_RDWR | O_CREAT, 0600);
		at = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
		if (at == MAP_FAILED) {
			ok(false, "%s: %m", path);
			return;
		}
		close(fd);
	}
	if (memory__of_self(&memory) || thread_bases__new(getpid(), memory, &bases)) {
		ok(false, "no memory");
		return;
	}
	ok(!thread_bases__can_write(bases, 0x10000, 8), "a file's name is no line of the list");
	ok(thread_bases__can_write(bases, (uintptr_t)path, sizeof(path)),
	   "the stack can be written");
	ok(!thread_bases__can_write(bases, (uintptr_t)line, 8), "a constant cannot");
	thread_bases__free(bases);
	memory__free(memory);
}

int main(void)
{
	workdir__make();
	test_hostile_names();
	workdir__write("program.c", program);
	test_program("gcc");
	test_program("gcc -static");
	test_program("musl-gcc");
	test_program("musl-gcc -static");
	test_synthetic();
	return tap__done();
}
