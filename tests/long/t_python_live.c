// SPDX-License-Identifier: GPL-2.0-or-later
/* The CPython walker on real interpreters: threads that are stopped anywhere, and one instruction
 * after the other. What they run is told by the interpreters themselves (fixtures/python). */
#include <dirent.h>
#include <time.h>

#include "core/elf_file.h"
#include "core/procfs.h"
#include "runtimes/python_build.h"
#include "tests/long/live.h"
#include "tests/unit/python_roots.h"

#include "tests/unit/python_host.h"

#define TORN_MAX     2
#define STOPS_MAX    500 /* until all stacks were seen */
#define STOPS_MIN    100
#define STEPS	     30000
#define STEPS_LIMIT  300000 /* until frames have come and gone */
#define CHANGES_MIN  20
#define STACKS_MAX   16
#define THREADS_MAX  8
#define CHAIN_FRAMES 300

static const struct python *python; /* that is tested */

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

	/* Before 3.11 code objects have no qualified names. */
	if (python->minor < 11 && strrchr(function, '.'))
		function = strrchr(function, '.') + 1;

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

static bool oracle__ask(const char *path, const struct script *script, struct oracle *ret)
{
	char command[8192], file[4200];
	bool good;

	snprintf(file, sizeof(file), "%s/stacks", workdir);
	snprintf(command, sizeof(command), "%s -B %s 0 %s --oracle %s >/dev/null", python->command,
		 path, script->argument ? script->argument : "", file);
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
		/* The innermost call may be of a function that some builds have in Python. */
		told->seen |= strncmp(told->lines, got->lines, strlen(told->lines)) == 0;
	}
	return known;
}

/* --- processes --- */

/* As runtimes/python.c does it. */
static bool locate_tls(pid_t pid, const struct elf_file *file, uint64_t bias,
		       struct python_proc_rec *rec)
{
	struct x86_tls tls;
	uint64_t slot[2] = { 0 };

	if (python_build__tls(file, &tls))
		return false;
	procfs__read_memory(pid, bias + tls.slot_vaddr, slot, sizeof(slot));
	rec->state_at = tls.kind == X86_TLS_SLOT ? slot[0] : (uint64_t)tls.offset;
	if (tls.kind == X86_TLS_INDEX) {
		rec->state = PYTHON_STATE_TLS_OF_MODULE;
		rec->tls_module = slot[0];
		rec->state_at += slot[1];
	}
	return true;
}

static bool examine(pid_t pid, const struct elf_file *file, uint64_t bias,
		    struct python_proc_rec *ret)
{
	uint64_t runtime = 0, size = 0, vaddr;
	struct python_version version;
	uint32_t hex;

	if (python_build__version(file, &hex) || !python_version__find(hex >> 16 & 0xff))
		return false;
	version = *python_version__find(hex >> 16 & 0xff);
	elf_file__find_symbol(file, "_PyRuntime", &runtime, &size);
	if (python_version__is_described(&version) &&
	    python_version__read(file, runtime, hex, &version))
		return false;
	*ret = (struct python_proc_rec) { .offsets = version.offsets, .state = version.state };
	if (runtime)
		ret->interpreters = bias + runtime + version.interpreters;
	if (version.state == PYTHON_STATE_TLS)
		return locate_tls(pid, file, bias, ret);
	if (python_build__key(file, runtime, size, runtime + version.tss, &vaddr))
		return false;
	ret->state_at = bias + vaddr;
	return true;
}

static struct python_proc_rec proc;
static struct runtime_range loops[PYTHON_LOOPS_MAX]; /* addresses in the process */
static size_t n_loops;

static struct target target;  /* what runs, between attach and end */
static struct memory *memory; /* its */

static bool attach(pid_t pid)
{
	bool found = false;
	uint64_t bias = 0;

	if (target__open(&target, pid) && !memory__of_process(pid, &memory)) {
		for (size_t i = 0; !found && i < target.n_maps; i++) {
			const struct map *map = &target.maps[i];

			found = map->file && target__find_image(&target, map->start, &bias) &&
				examine(pid, map->file, bias, &proc);
			n_loops = found ? python_build__loops(map->file, loops) : 0;
		}
	}
	for (size_t i = 0; i < n_loops; i++) {
		loops[i].start += bias;
		loops[i].end += bias;
	}
	if (found)
		walker__attach(&proc);
	host_map__clear(&python_codes);
	return found;
}

static void end(pid_t pid)
{
	memory__free(memory);
	memory = NULL;
	target__close(&target);
	live__end(pid);
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

/* --- what the walker says --- */

/* Finds out which frames run where on the native stack. Each address that the walker gave is in the
 * frame of an interpreter loop, a different one for each address; and there is at most one loop
 * more, which has no frame yet or no longer. Where the walker knows no addresses, they are given by
 * the order of the loops. */
static bool place_frames(void)
{
	static uint64_t cfas[FRAMES_MAX];
	static struct stack stack;
	uint64_t below, address = 0;
	size_t n = 0, n_distinct = 0;

	target__snapshot(&target, 0);
	target__unwind(&target, &stack);
	below = target.input.regs[UNWIND_REG_RSP];
	for (int i = 0; i < stack.n; i++) {
		uint64_t ip = stack.frames[i].ip - (i > 0), cfa = stack.frames[i].cfa;

		for (size_t k = 0; k < n_loops; k++)
			if (ip >= loops[k].start && ip < loops[k].end)
				cfas[n++] = cfa;
	}
	anchors__pair(frames, n_frames, cfas, n, stack.complete);
	for (size_t i = 0, at = 0; i < n_frames; i++) {
		if (frames[i].address == address)
			continue;
		n_distinct++;
		address = frames[i].address;
		while (at < n && cfas[at] <= address)
			below = cfas[at++];
		if (at == n || address < below)
			return false;
	}
	if (!stack.complete || n < n_distinct || n > n_distinct + 1)
		tap__diag("%zu loops on %s stack for %zu addresses", n,
			  stack.complete ? "the" : "part of the", n_distinct);
	return stack.complete && n >= n_distinct && n <= n_distinct + 1;
}

/* Complete, from the thread's first function on. */
static bool walk_thread(pid_t pid, pid_t tid, struct told *ret)
{
	struct user_regs_struct regs;
	struct runtime_symbol symbol;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	host.now_ns = now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
	ptrace(PTRACE_GETREGS, tid, NULL, &regs);
	host.memory = memory;
	walker__run(pid, regs.fs_base);
	host.memory = NULL;
	ret->names[0] = ret->lines[0] = 0;
	for (size_t i = n_frames; i-- > 0;) {
		if (python_codes__symbolize(names, frames[i].key, &symbol) != 0)
			return false;
		if (symbol.file && strrchr(symbol.file, '/'))
			symbol.file = strrchr(symbol.file, '/') + 1;
		told__add(ret, symbol.function, symbol.file ? symbol.file : "?", symbol.line);
	}
	return !host.sample.head.flags && (strncmp(ret->names, "<module>;", 9) == 0 ||
					   strncmp(ret->names, "Thread._bootstrap;", 18) == 0 ||
					   strncmp(ret->names, "_bootstrap;", 11) == 0);
}

static bool check_stop(const struct script *script, pid_t pid, pid_t tid, struct oracle *oracle)
{
	static struct told got;
	bool good, known;

	/* A while, lest all stops are near the first. */
	nanosleep(&(struct timespec) { .tv_nsec = rand() % 500000 }, NULL);
	if (!live__stop(tid) || (!script->threads && !live__step(tid, rand() % 30)))
		return false;
	good = walk_thread(pid, tid, &got) && (script->threads || place_frames());
	known = oracle__knows(oracle, &got);
	good &= known || script->threads;
	if (!good)
		tap__diag("flags %d: %s", host.sample.head.flags, got.lines);
	ptrace(PTRACE_CONT, tid, NULL, NULL);
	return good;
}

static void test_script(const struct script *script)
{
	static struct oracle oracle;
	char path[256], *argv[] = { "env", (char *)python->command,  "-B", path,
				    "0",   (char *)script->argument, NULL };
	pid_t tids[THREADS_MAX], pid;
	int n_tids = 1, stops = 0, torn = 0;

	snprintf(path, sizeof(path), "fixtures/python/%s.py", script->name);
	if (!ok(oracle__ask(path, script, &oracle), "%s: %s tells its stacks", python->command,
		script->name))
		return;
	pid = live__start("/usr/bin/env", argv);
	if (!ok(pid > 0 && attach(pid), "%s: %s runs", python->command, script->name))
		return;
	tids[0] = pid;
	if (script->threads)
		n_tids = seize_threads(pid, tids);
	/* A stop may be in one of those windows that test_steps knows. */
	while (stops < STOPS_MAX &&
	       (check_stop(script, pid, tids[stops % n_tids], &oracle) || torn++ < TORN_MAX)) {
		stops++;
		if (stops >= STOPS_MIN && !oracle__find_unseen(&oracle))
			break;
	}
	if (!ok(!oracle__find_unseen(&oracle), "%s: %s: all stacks with their lines",
		python->command, script->name))
		tap__diag("not seen: %s", oracle__find_unseen(&oracle)->lines);
	ok(stops >= STOPS_MIN, "%s: %s: %d stacks are right", python->command, script->name, stops);
	end(pid);
}

/* From one instruction to the next at most one frame comes or goes, the innermost one. */
static bool follows(const struct runtime_pair *before, int n_before,
		    const struct runtime_pair *after, int n_after)
{
	int n = min_of(n_before, n_after);

	for (int i = 1; i <= n; i++) {
		const struct runtime_pair *a = &before[n_before - i], *b = &after[n_after - i];

		if (FRAME_KEY_CODE(a->key) != FRAME_KEY_CODE(b->key) || a->address != b->address)
			return false;
	}
	return n_before - n_after <= 1 && n_after - n_before <= 1;
}

/* Compilers store the fields of a new frame, or of an interpreter loop's C frame (even its link to
 * the one outside), some 22 instructions after the pointer to it: what was in that memory before
 * may be anything, even a stack of earlier on. */
#define WINDOW	     40
#define WINDOWS_PART 50 /* of all instructions in this script, far more than elsewhere */

/* What came of stepping through one process. */
struct steps {
	int n, changes, bad, longest_run;
};

static bool run_steps(struct steps *ret)
{
	static struct runtime_pair before[CHAIN_FRAMES];
	char *argv[] = { "env", (char *)python->command, "-B", "-c", (char *)calls, NULL };
	pid_t pid = live__start("/usr/bin/env", argv);
	struct steps steps = {};
	int n_before = 0, run = 0;
	static struct told got;

	if (pid <= 0 || !attach(pid) || !live__stop(pid))
		return false;
	/* It may begin with one long step, as a garbage collection. */
	while ((steps.n < STEPS || (steps.changes <= CHANGES_MIN && steps.n < STEPS_LIMIT)) &&
	       live__step(pid, 1)) {
		bool good = walk_thread(pid, pid, &got);
		int n_after = min_of(n_frames, CHAIN_FRAMES);

		run = good ? 0 : run + 1;
		steps.longest_run = max_of(steps.longest_run, run);
		steps.bad += !good || (steps.n++ && !follows(before, n_before, frames, n_after));
		steps.changes += n_after != n_before;
		n_before = n_after;
		memcpy(before, frames, n_after * sizeof(*frames));
	}
	end(pid);
	*ret = steps;
	return true;
}

static void test_steps(void)
{
	struct steps steps = {};

	if (!ok(run_steps(&steps), "%s: calls run", python->command))
		return;
	ok(steps.n >= STEPS, "%s: so many instructions", python->command);
	ok(steps.longest_run <= WINDOW && steps.bad <= steps.n / WINDOWS_PART,
	   "%s: %d bad stacks, %d in a row", python->command, steps.bad, steps.longest_run);
	ok(steps.changes > CHANGES_MIN, "%s: %d times a frame came or went", python->command,
	   steps.changes);
}

static void test_python(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++)
		test_script(&scripts[i]);
	test_steps();
}

int main(void)
{
	static struct pythons pythons;
	bool found = false;

	workdir__make();
	pythons__find_everywhere(&pythons);
	walker__open();
	for (size_t i = 0; i < pythons.n; i++) {
		python = &pythons.list[i];
		if (!python_version__find(python->minor))
			continue;
		tap__diag("%s is CPython 3.%u, %s", python->command, python->minor,
			  python->executable);
		test_python();
		found = true;
	}
	if (!found)
		tap__skip("no CPython found", "live interpreters");
	walker__close();
	return tap__done();
}
