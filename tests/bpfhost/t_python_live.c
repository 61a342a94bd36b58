// SPDX-License-Identifier: GPL-2.0-or-later
/* The CPython walker on real interpreters: threads that are stopped anywhere, and one instruction
 * after the other. What they run is told by the interpreters themselves (fixtures/python). */
#include <dirent.h>
#include <glob.h>
#include <time.h>

#include "core/elf_file.h"
#include "tests/bpfhost/live.h"
#include "tests/unit/workdir.h"

#include "tests/bpfhost/python_host.h"

#define STOPS_MAX    500 /* until all stacks were seen */
#define STOPS_MIN    100
#define STEPS	     30000
#define STACKS_MAX   16
#define THREADS_MAX  8
#define CHAIN_FRAMES 300

static const struct script {
	const char *name;
	const char *argument;
	bool threads; /* look at all threads; they must not be stepped, as they may wait */
} scripts[] = {
	{ .name = "nest_sorted" },
	{ .name = "nest_ctypes" },
	{ .name = "nest_del" },
	{ .name = "generators" },
	{ .name = "classes" },
	{ .name = "unicode_names" },
	{ .name = "recursion", .argument = "100" },
	{ .name = "threads_c", .threads = true },
};

/* Calls of many kinds, soon one after the other. */
static const char calls[] = "import functools\n"
			    "def f(x): return -x\n"
			    "def g(n): return n if n < 2 else g(n - 1) + g(n - 2)\n"
			    "def fail(): raise KeyError\n"
			    "def gen(): yield from (f(i) for i in range(3))\n"
			    "class A:\n"
			    "    def __init__(self): f(1)\n"
			    "    def __del__(self): f(2)\n"
			    "    def __getattr__(self, name): return f(3)\n"
			    "def work():\n"
			    "    sorted(range(3), key=f)\n"
			    "    g(4)\n"
			    "    A().missing\n"
			    "    list(gen())\n"
			    "    functools.reduce(lambda a, b: a + b, map(f, range(3)))\n"
			    "    try: fail()\n"
			    "    except KeyError: pass\n"
			    "print('READY', flush=True)\n"
			    "while True: work()\n";

/* --- what the interpreter says --- */

/* One of its stacks, outermost first: names only, and with lines. */
struct told {
	char names[8192], lines[16384];
	bool seen;
};

struct oracle {
	struct told stacks[STACKS_MAX];
	size_t n;
};

static void told__add(struct told *told, const char *function, const char *file, unsigned int line)
{
	size_t n = strlen(told->names), n_lines = strlen(told->lines);

	snprintf(told->names + n, sizeof(told->names) - n, "%s;", function);
	snprintf(told->lines + n_lines, sizeof(told->lines) - n_lines, "%s (%s:%u);", function,
		 file, line);
}

static bool oracle__read(const char *path, struct oracle *ret)
{
	char line[1024], function[512], file[512];
	FILE *in = fopen(path, "re");
	unsigned int number;

	memset(ret, 0, sizeof(*ret));
	while (in && ret->n < STACKS_MAX && fgets(line, sizeof(line), in)) {
		if (*line == '\n')
			ret->n++;
		else if (sscanf(line, "%511[^\t]\t%511[^\t]\t%u", function, file, &number) == 3)
			told__add(&ret->stacks[ret->n], function, file, number);
	}
	if (in)
		fclose(in);
	return ret->n > 0;
}

static bool oracle__ask(const char *python, const char *path, const struct script *script,
			struct oracle *ret)
{
	char command[8192], file[4200];
	bool good;

	snprintf(file, sizeof(file), "%s/stacks", workdir);
	snprintf(command, sizeof(command), "%s -B %s 0 %s --oracle %s >/dev/null", python, path,
		 script->argument ? script->argument : "", file);
	good = system(command) == 0 && oracle__read(file, ret);
	unlink(file);
	return good;
}

static const struct told *oracle__find_unseen(const struct oracle *oracle)
{
	for (size_t i = 0; i < oracle->n; i++)
		if (!oracle->stacks[i].seen)
			return &oracle->stacks[i];
	return NULL;
}

/* All frames but the last are the outer ones of a stack that the interpreter told. */
static bool oracle__knows(struct oracle *oracle, const struct told *got)
{
	const char *last = got->names + strlen(got->names);
	bool known = false;

	for (last--; last > got->names && last[-1] != ';';)
		last--;
	for (size_t i = 0; i < oracle->n; i++) {
		struct told *told = &oracle->stacks[i];

		known |= strncmp(told->names, got->names, last - got->names) == 0;
		told->seen |= strcmp(told->lines, got->lines) == 0;
	}
	return known;
}

/* --- what the walker says --- */

/* Complete, from the thread's first function on, each frame's place above that of the one inside
 * it. */
static bool walk_thread(pid_t pid, pid_t tid, struct told *ret)
{
	const struct rec_sample *sample = &host.sample.head;
	struct user_regs_struct regs;
	struct runtime_symbol symbol;
	struct timespec now;
	uint64_t above;

	clock_gettime(CLOCK_MONOTONIC, &now);
	host.now_ns = now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
	ptrace(PTRACE_GETREGS, tid, NULL, &regs);
	host.pid = pid;
	walker__run(pid, regs.fs_base);
	host.pid = 0;
	ret->names[0] = ret->lines[0] = 0;
	above = regs.rsp;
	for (int i = 0; i < sample->n_runtime; i++) {
		if (frame__anchor(i) < above)
			return false;
		above = frame__anchor(i);
	}
	for (int i = sample->n_runtime; i-- > 0;) {
		if (python_codes__symbolize(names, host.sample.words[2 * i], &symbol) != 0)
			return false;
		if (symbol.file && strrchr(symbol.file, '/'))
			symbol.file = strrchr(symbol.file, '/') + 1;
		told__add(ret, symbol.function, symbol.file ? symbol.file : "?", symbol.line);
	}
	return !sample->flags && (strncmp(ret->names, "<module>;", 9) == 0 ||
				  strncmp(ret->names, "Thread._bootstrap;", 18) == 0);
}

/* --- processes --- */

static bool attach(pid_t pid)
{
	struct target target;
	uint64_t vaddr, bias;
	bool found = false;

	if (target__open(&target, pid)) {
		for (size_t i = 0; !found && i < target.n_maps; i++) {
			const struct map *map = &target.maps[i];

			found = map->file && target__find_image(&target, map->start, &bias) &&
				elf_file__find_symbol(map->file, "_PyRuntime", &vaddr, NULL) == 0;
		}
	}
	target__close(&target);
	if (found)
		walker__attach(bias + vaddr + python_version__find(11)->runtime_tss);
	host_map__clear(&python_codes);
	return found;
}

static int seize_threads(pid_t pid, pid_t *ret_tids)
{
	char path[64];
	struct dirent *entry;
	int n = 0;
	DIR *dir;

	ret_tids[n++] = pid;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && n < THREADS_MAX && (entry = readdir(dir))) {
		pid_t tid = atoi(entry->d_name);

		if (tid && tid != pid && ptrace(PTRACE_SEIZE, tid, NULL, 0) == 0)
			ret_tids[n++] = tid;
	}
	if (dir)
		closedir(dir);
	return n;
}

static bool check_stop(const struct script *script, pid_t pid, pid_t tid, struct oracle *oracle)
{
	static struct told got;
	bool good, known;

	/* A while, lest all stops are near the first. */
	nanosleep(&(struct timespec) { .tv_nsec = rand() % 500000 }, NULL);
	if (!live__stop(tid) || (!script->threads && !live__step(tid, rand() % 30)))
		return false;
	good = walk_thread(pid, tid, &got);
	known = oracle__knows(oracle, &got);
	good &= known || script->threads;
	if (!good)
		tap__diag("flags %d: %s", host.sample.head.flags, got.lines);
	ptrace(PTRACE_CONT, tid, NULL, NULL);
	return good;
}

static void test_script(const char *python, const struct script *script)
{
	static struct oracle oracle;
	char path[256],
		*argv[] = { (char *)python, "-B", path, "0", (char *)script->argument, NULL };
	pid_t tids[THREADS_MAX], pid;
	int n_tids = 1, stops = 0;

	snprintf(path, sizeof(path), "fixtures/python/%s.py", script->name);
	if (!ok(oracle__ask(python, path, script, &oracle), "%s: %s tells its stacks", python,
		script->name))
		return;
	pid = live__start(python, argv);
	if (!ok(pid > 0 && attach(pid), "%s: %s runs", python, script->name))
		return;
	tids[0] = pid;
	if (script->threads)
		n_tids = seize_threads(pid, tids);
	while (stops < STOPS_MAX && check_stop(script, pid, tids[stops % n_tids], &oracle)) {
		stops++;
		if (stops >= STOPS_MIN && !oracle__find_unseen(&oracle))
			break;
	}
	if (!ok(!oracle__find_unseen(&oracle), "%s: %s: all stacks with their lines", python,
		script->name))
		tap__diag("not seen: %s", oracle__find_unseen(&oracle)->lines);
	ok(stops >= STOPS_MIN, "%s: %s: %d stacks are right", python, script->name, stops);
	live__end(pid);
}

/* From one instruction to the next at most one frame comes or goes, the innermost one. */
static bool follows(const uint64_t *before, int n_before, const uint64_t *after, int n_after)
{
	int n = min_of(n_before, n_after);

	for (int i = 1; i <= n; i++) {
		const uint64_t *a = &before[2 * (n_before - i)], *b = &after[2 * (n_after - i)];

		if (FRAME_KEY_CODE(a[0]) != FRAME_KEY_CODE(b[0]) || a[1] != b[1])
			return false;
	}
	return n_before - n_after <= 1 && n_after - n_before <= 1;
}

/* Compilers store the fields of a new frame, or of an eval loop's C frame, up to 9 instructions
 * after the pointer to it: what was in that memory before may be anything, even a stack of earlier
 * on. */
#define WINDOW	     9
#define WINDOWS_PART 100 /* of all instructions in this script, far more than elsewhere */

static void test_steps(const char *python)
{
	static uint64_t before[2 * CHAIN_FRAMES];
	char *argv[] = { (char *)python, "-B", "-c", (char *)calls, NULL };
	int n, n_before = 0, changes = 0, bad = 0, run = 0, longest_run = 0;
	pid_t pid = live__start(python, argv);
	static struct told got;

	if (!ok(pid > 0 && attach(pid) && live__stop(pid), "%s: calls run", python))
		return;
	for (n = 0; n < STEPS && live__step(pid, 1); n++) {
		bool good = walk_thread(pid, pid, &got);
		int n_after = min_of(host.sample.head.n_runtime, CHAIN_FRAMES);

		run = good ? 0 : run + 1;
		longest_run = max_of(longest_run, run);
		bad += !good || (n && !follows(before, n_before, host.sample.words, n_after));
		changes += n_after != n_before;
		n_before = n_after;
		memcpy(before, host.sample.words, 16 * n_after);
	}
	is_int(n, STEPS, "%s: so many instructions", python);
	ok(longest_run <= WINDOW && bad <= n / WINDOWS_PART, "%s: %d bad stacks, %d in a row",
	   python, bad, longest_run);
	ok(changes > 20, "%s: %d times a frame came or went", python, changes);
	live__end(pid);
}

static void test_python(const char *python)
{
	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++)
		test_script(python, &scripts[i]);
	test_steps(python);
}

int main(void)
{
	glob_t found = { 0 };

	workdir__make();
	walker__open();
	glob("/usr/bin/python3.11", 0, NULL, &found);
	glob("~/.pyenv/versions/3.11*/bin/python3.11", GLOB_TILDE | GLOB_APPEND, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++)
		test_python(found.gl_pathv[i]);
	if (!found.gl_pathc)
		tap__skip("no python3.11 here", "CPython 3.11");
	globfree(&found);
	walker__close();
	return tap__done();
}
