// SPDX-License-Identifier: GPL-2.0-or-later
/* Compares the data that runtimes/ruby/ruby_build.c reads out of files with running processes. The
 * processes must contain the values that their interpreter reports of itself. */
#include <inttypes.h>
#include <sys/uio.h>

#include "runtimes/ruby/ruby_build.h"
#include "runtimes/ruby/ruby_versions.h"
#include "tests/long/live.h"
#include "tests/unit/rubies.h"

/* rb_thread_t: VALUE self, after a list node (vm_core.h, 2.7 to 3.4). */
#define THREAD_SELF	       16
/* st_table: num_entries (include/ruby/st.h). */
#define TABLE_N_ENTRIES	       16
/* glibc: struct pthread's specific_1stblock, its {seq, data} entries; tcbhead_t's dtv and its
 * entries. */
#define PTHREAD_SPECIFIC       784
#define PTHREAD_SPECIFIC_BYTES 16
#define TCB_DTV		       8
#define DTV_ENTRY_BYTES	       16

/* Prints the ids and objects of two waiting threads, then the number of symbols. */
static const char waits[] = "def tell\n"
			    "  puts [syscall(186), Thread.current.to_s[/0x\\h+/]].join(' ')\n"
			    "  $stdout.flush\n"
			    "end\n"
			    "told = Queue.new\n"
			    "Thread.new { tell; told << true; sleep }\n"
			    "told.pop\n"
			    "tell\n"
			    "puts Symbol.all_symbols.size\n"
			    "$stdout.flush\n"
			    "sleep";
#define THREADS 2

static const char loops_forever[] = "puts; $stdout.flush; while true; end";

struct process {
	pid_t pid;
	FILE *out;
	struct elf_file *file;
	uint64_t bias; /* bias of the file */
	struct ruby_number number;
};

static bool process__start(struct process *process, const struct ruby *ruby, const char *script)
{
	int out[2];

	*process = (struct process) {};
	if (pipe(out) != 0)
		return false;
	process->pid = fork();
	if (!process->pid) {
		dup2(out[1], STDOUT_FILENO);
		close(out[0]);
		close(out[1]);
		execlp(ruby->command, ruby->command, "--disable=gems", "-W0", "-e", script, NULL);
		_exit(1);
	}
	close(out[1]);
	process->out = fdopen(out[0], "r");
	return process->pid > 0 &&
	       elf_file__open(open(ruby->file, O_RDONLY | O_CLOEXEC), ruby->file, &process->file,
			      NULL) == 0 &&
	       ruby_build__version(process->file, &process->number) == 0;
}

static void process__end(struct process *process)
{
	live__end(process->pid);
	fclose(process->out);
	elf_file__free(process->file);
}

/* Finds the bias, once the process runs the file. */
static bool process__find_bias(struct process *process)
{
	char name[64], line[4400], path[4097];
	uint64_t start, offset, vaddr;
	bool found = false;
	FILE *maps;

	snprintf(name, sizeof(name), "/proc/%d/maps", process->pid);
	maps = fopen(name, "re");
	while (maps && !found && fgets(line, sizeof(line), maps)) {
		found = sscanf(line, "%" SCNx64 "-%*x %*s %" SCNx64 " %*s %*s %4096s", &start,
			       &offset, path) == 3 &&
			strcmp(path, process->file->path) == 0 &&
			elf_file__offset_to_vaddr(process->file, offset, &vaddr);
		if (found)
			process->bias = start - vaddr;
	}
	if (maps)
		fclose(maps);
	return found;
}

/* Returns a word of the process's memory; 0: unreadable. */
static uint64_t process__word(const struct process *process, uint64_t at)
{
	uint64_t word = 0;
	struct iovec local = { &word, sizeof(word) }, remote = { (void *)at, sizeof(word) };

	if (process_vm_readv(process->pid, &local, 1, &remote, 1, 0) != sizeof(word))
		return 0;
	return word;
}

/* --- state --- */

/* Returns the thread's rb_thread_t; 0: not found. */
static uint64_t find_thread(const struct process *process, uint64_t fsbase,
			    const struct ruby_state *state)
{
	const struct ruby_version *version = ruby_version__find(
		process->number.major, process->number.minor, process->number.teeny);
	uint64_t slot = process->bias + state->tls.slot_vaddr, at = fsbase;

	if (state->key_vaddr) {
		slot = process->bias + state->key_vaddr;
		at += PTHREAD_SPECIFIC + 8 +
		      PTHREAD_SPECIFIC_BYTES * (uint32_t)process__word(process, slot);
		return process__word(process, at);
	}
	switch (state->tls.kind) {
	case X86_TLS_FIXED:
		at += state->tls.offset;
		break;
	case X86_TLS_SLOT:
		at += process__word(process, slot);
		break;
	case X86_TLS_INDEX:
		at = process__word(process, fsbase + TCB_DTV) +
		     DTV_ENTRY_BYTES * process__word(process, slot);
		at = process__word(process, at) + process__word(process, slot + 8) +
		     state->tls.offset;
		break;
	}
	if (!version)
		return 0;
	return process__word(process, process__word(process, at) + version->offsets.ec_thread);
}

static void check_thread(const struct process *process, pid_t tid, uint64_t self, const char *label)
{
	struct user_regs_struct regs;
	struct ruby_state state;
	uint64_t thread;

	if (ptrace(PTRACE_SEIZE, tid, NULL, PTRACE_O_EXITKILL) != 0) {
		tap__skip("ptrace not permitted", "%s: thread", label);
		return;
	}
	if (!ok(live__stop(tid) && ptrace(PTRACE_GETREGS, tid, NULL, &regs) == 0 &&
			ruby_build__state(process->file, &process->number, &state) == 0,
		"%s: has a state", label))
		return;
	thread = find_thread(process, regs.fs_base, &state);
	is_int(thread ? process__word(process, thread + THREAD_SELF) : 0, self,
	       "%s: %s thread (state kind %d) is the one that it says it is", label,
	       tid == process->pid ? "main" : "other", state.tls.kind);
}

static void check_symbols(const struct process *process, uint64_t n, const char *label)
{
	uint64_t vaddr, table;

	if (!ok(ruby_build__symbols(process->file, &vaddr) == 0, "%s: has symbols", label))
		return;
	if (process->number.major >= 4) {
		tap__skip("4.0 keeps no st_table of them", "%s: as many as it says", label);
		return;
	}
	table = process__word(process, process->bias + vaddr + 8);
	is_int(process__word(process, table + TABLE_N_ENTRIES), n, "%s: as many as it says", label);
}

static void test_data(const struct ruby *ruby)
{
	struct process process;
	bool good = process__start(&process, ruby, waits);
	uint64_t selves[THREADS], n_symbols;
	pid_t tids[THREADS];

	for (int i = 0; good && i < THREADS; i++)
		good = fscanf(process.out, "%d %" SCNx64, &tids[i], &selves[i]) == 2;
	if (ok(good && fscanf(process.out, "%" SCNu64, &n_symbols) == 1 &&
		       process__find_bias(&process),
	       "%s: started", ruby->file)) {
		for (int i = 0; i < THREADS; i++)
			check_thread(&process, tids[i], selves[i], ruby->file);
		check_symbols(&process, n_symbols, ruby->file);
	}
	process__end(&process);
}

/* --- loops --- */

#define HITS_REQUIRED 10
#define STOPS_MAX     2000

static bool is_in_loops(const struct process *process, uint64_t ip)
{
	struct runtime_range loops[RUBY_LOOPS_MAX];
	size_t n = ruby_build__loops(process->file, loops);

	for (size_t i = 0; i < n; i++)
		if (ip - process->bias >= loops[i].start && ip - process->bias < loops[i].end)
			return true;
	return false;
}

/* Checks that the program is in its loops at any time, except while it starts or is interrupted. */
static void check_loops(const struct process *process, const char *label)
{
	struct user_regs_struct regs;
	int hits = 0;

	if (ptrace(PTRACE_SEIZE, process->pid, NULL, PTRACE_O_EXITKILL) != 0) {
		tap__skip("ptrace not permitted", "%s: loops", label);
		return;
	}
	for (int i = 0; i < STOPS_MAX && hits < HITS_REQUIRED; i++) {
		if (!live__stop(process->pid) ||
		    ptrace(PTRACE_GETREGS, process->pid, NULL, &regs) != 0)
			break;
		hits += is_in_loops(process, regs.rip);
		ptrace(PTRACE_CONT, process->pid, NULL, NULL);
		usleep(1000);
	}
	is_int(hits, HITS_REQUIRED, "%s: is found in its loops", label);
}

static void test_loops(const struct ruby *ruby)
{
	struct process process;

	if (ok(process__start(&process, ruby, loops_forever) && fgetc(process.out) == '\n' &&
		       process__find_bias(&process),
	       "%s: started", ruby->file))
		check_loops(&process, ruby->file);
	process__end(&process);
}

int main(void)
{
	static struct rubies rubies;

	workdir__make();
	rubies__find(&rubies);
	for (size_t i = 0; i < rubies.n; i++) {
		test_data(&rubies.list[i]);
		test_loops(&rubies.list[i]);
	}
	if (!rubies.n)
		tap__skip("no Ruby here", "state, symbols and loops of processes");
	return tap__done();
}
