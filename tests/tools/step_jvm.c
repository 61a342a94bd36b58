// SPDX-License-Identifier: GPL-2.0-or-later
/* Steps through a thread of a JVM, instruction by instruction, and compares the stack of braid with
 * the calls that the thread has made. Usage: step_jvm PID TID STEPS START END, where START and END
 * enclose the interpreter's code (hexadecimal). The thread's calls and returns are followed as they
 * are executed, so that no rule is needed for a return address and its place. An instruction of
 * HotSpot's code is checked at its first CHECKS_MAX executions. The host's build of the kernel half
 * must then find the call's return address as the caller.
 *
 * A return address that HotSpot's code has popped is in a register until it is stored again or
 * jumped to. Adapters and entries of the interpreter store it again. It stays the innermost call.
 *
 * Code of the interpreter has one frame for a method, whose address is in rbp. Calls that the
 * interpreter makes below that frame's end are not compared: those of a callee's entry, which has
 * no frame yet, and calls within the interpreter.
 *
 * Prints a line for each instruction with a mistake, and the sums. The status is 1 if there are
 * mistakes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/jvm.h"
#include "core/base/util.h"
#include "core/dump/dump_state.h"
#include "runtimes/registry.h"

#define DEPTH_MAX  4096
#define VISITS_MAX (1 << 18) /* a power of two; instructions that were executed */
#define CHECKS_MAX 6	     /* for one instruction with one caller */
#define COMPARED   4	     /* frames of a stack that are compared */
#define RANGES_MAX 64
#define CODES_MAX  (1 << 18)
#define CODE_BYTES 16
#define TRAP_FLAG  0x100ULL

enum outcome {
	RIGHT,
	CUT,
	MARKED, /* wrong, and the step is inferred */
	WRONG,
	OUTCOMES_N
};

static const char *const NAMES[] = { "right", "cut", "marked", "wrong" };

struct visit {
	uint64_t pc, caller;
	uint32_t n;
};

static struct visit visits[VISITS_MAX];
static uint64_t codes[CODES_MAX]; /* start of the instructions of HotSpot's code, by number */

struct slot {
	uint64_t at, value; /* place and value of the return address */
};

struct stepper {
	pid_t pid, tid;
	struct dump *dump;
	uint64_t interpreter[2];
	uint64_t ranges[RANGES_MAX][2]; /* code that was generated at run time */
	size_t n_ranges;
	struct slot slots[DEPTH_MAX]; /* outermost first */
	size_t depth;
	uint64_t popped; /* a return address that was popped, and may be stored again; 0: none */
	uint64_t popped_at;
	uint64_t n[OUTCOMES_N], checked_pcs;
};

static int read_words(const struct stepper *stepper, uint64_t at, void *to, size_t size)
{
	struct iovec local = { to, size }, remote = { (void *)at, size };

	return process_vm_readv(stepper->pid, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -1;
}

static void find_ranges(struct stepper *stepper)
{
	char path[64], line[4096];
	uint64_t start, end;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/maps", stepper->pid);
	in = fopen(path, "r");
	while (in && fgets(line, sizeof(line), in) && stepper->n_ranges < RANGES_MAX)
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " rwxp", &start, &end) == 2 &&
		    strstr(line, "rwxp 00000000 00:00 0")) {
			stepper->ranges[stepper->n_ranges][0] = start;
			stepper->ranges[stepper->n_ranges++][1] = end;
		}
	if (in)
		fclose(in);
}

static bool is_compiled(const struct stepper *stepper, uint64_t pc)
{
	for (size_t i = 0; i < stepper->n_ranges; i++)
		if (pc >= stepper->ranges[i][0] && pc < stepper->ranges[i][1])
			return true;
	return false;
}

/* --- one stack --- */

static struct host_thread as_host(const struct stepper *stepper,
				  const struct user_regs_struct *regs)
{
	const uint64_t values[UNWIND_REGS] = { regs->rax, regs->rdx, regs->rcx, regs->rbx,
					       regs->rsi, regs->rdi, regs->rbp, regs->rsp,
					       regs->r8,  regs->r9,  regs->r10, regs->r11,
					       regs->r12, regs->r13, regs->r14, regs->r15,
					       regs->rip };
	struct host_thread thread = { .tgid = stepper->pid,
				      .tid = stepper->tid,
				      .name = "steps",
				      .syscall = -1,
				      .own_ids = true,
				      .fs_base = regs->fs_base,
				      .start_stack = stepper->dump->start_stack };

	memcpy(thread.regs, values, sizeof(values));
	return thread;
}

static const struct rec_sample *sample_of(const struct dump *dump)
{
	for (const struct dump_record *at = dump->records; at; at = at->next)
		if ((uint32_t)at->data[0] == REC_SAMPLE)
			return (const struct rec_sample *)at->data;
	return NULL;
}

/* Returns the @i-th innermost call that has not returned; NULL: unknown. */
static const struct slot *call_at(const struct stepper *stepper, size_t i)
{
	static struct slot popped;

	if (stepper->popped && !i) {
		popped.value = stepper->popped;
		popped.at = stepper->popped_at;
		return &popped;
	}
	i -= stepper->popped ? 1 : 0;
	return i < stepper->depth ? &stepper->slots[stepper->depth - 1 - i] : NULL;
}

static void show(const struct stepper *stepper, const struct user_regs_struct *regs,
		 const struct rec_sample *rec, enum outcome outcome)
{
	const uint64_t *pairs = (const uint64_t *)(rec + 1) + rec->n_kernel;
	uint8_t code[CODE_BYTES] = { 0 };

	read_words(stepper, regs->rip, code, sizeof(code));
	printf("%s\t%llx\t%scode", NAMES[outcome], regs->rip, stepper->popped ? "popped, " : "");
	for (size_t i = 0; i < sizeof(code); i++)
		printf(" %02x", code[i]);
	printf("\tsp %llx bp %llx\tcalls", regs->rsp, regs->rbp);
	for (size_t i = 0; i < COMPARED && call_at(stepper, i); i++)
		printf(" %" PRIx64 "@%" PRIx64, call_at(stepper, i)->value,
		       call_at(stepper, i)->at);
	printf("\tframes stop %u", rec->stop);
	for (size_t i = 0; i <= COMPARED && i < rec->n_native; i++)
		printf(" %" PRIx64 "(%u)@%" PRIx64, (uint64_t)NATIVE_ADDRESS(pairs[2 * i]),
		       NATIVE_EVIDENCE(pairs[2 * i]), pairs[2 * i + 1]);
	printf("\n");
}

static bool is_interpreted(const struct stepper *stepper, uint64_t pc)
{
	return pc >= stepper->interpreter[0] && pc < stepper->interpreter[1];
}

/* Returns true if the interpreter makes the call within its own frame, that at @pair. */
static bool is_within(const struct stepper *stepper, const struct slot *call,
		      const uint64_t pair[2])
{
	return is_interpreted(stepper, call->value) && call->at + 8 < pair[1] &&
	       is_interpreted(stepper, NATIVE_ADDRESS(pair[0]));
}

/* Returns true if the innermost call is one of the interpreter to an adapter that is left out. The
 * frame at @pair is then the interpreter's. */
static bool is_left_out(const struct stepper *stepper, const struct user_regs_struct *regs,
			const uint64_t pair[2])
{
	const struct slot *call = call_at(stepper, 0);

	return call && is_interpreted(stepper, call->value) && call->at < regs->rbp &&
	       pair[1] == regs->rbp + 16;
}

static void note_codes(const struct dump *dump)
{
	for (const struct dump_record *at = dump->records; at; at = at->next) {
		const struct rec_code_object *rec = (const struct rec_code_object *)at->data;

		if (rec->type == REC_CODE_OBJECT && rec->walker == WALKER_JVM &&
		    rec->code < CODES_MAX && rec->table_format != JVM_CODE_METHOD)
			codes[rec->code] = rec->table_address;
	}
}

/* Returns the pc of the walker's innermost frame; 0: unknown. The walker leaves out a frame that
 * has not begun or has ended. */
static uint64_t walked_pc(const struct rec_sample *rec)
{
	const uint64_t *pairs = (const uint64_t *)(rec + 1) + rec->n_kernel + 2 * rec->n_native;

	for (size_t i = 0; i < rec->n_sections; i++) {
		uint32_t code = FRAME_KEY_CODE(pairs[0]);

		if (rec->sections[i].walker == WALKER_JVM && rec->sections[i].n)
			return code < CODES_MAX && codes[code] &&
					       !(FRAME_KEY_INDEX(pairs[0]) & JVM_EXACT)
				       ? codes[code] + FRAME_KEY_INDEX(pairs[0])
				       : 0;
		pairs += 2 * rec->sections[i].n;
	}
	return 0;
}

/* Compares the frames that both stacks contain. */
static enum outcome compare(const struct stepper *stepper, const struct user_regs_struct *regs,
			    const struct rec_sample *rec)
{
	const uint64_t *pairs = (const uint64_t *)(rec + 1) + rec->n_kernel;
	const struct slot *call = call_at(stepper, 0);
	size_t n = is_left_out(stepper, regs, pairs) || walked_pc(rec) == call->value;
	bool inferred = false;

	for (size_t i = 0; i < COMPARED; i++, pairs += 2, n++) {
		if (i + 1 >= rec->n_native)
			return rec->flags & SAMPLE_COMPLETE ? WRONG : CUT;
		while ((call = call_at(stepper, n)) && is_within(stepper, call, pairs))
			n++;
		if (!call)
			break;
		inferred |= NATIVE_EVIDENCE(pairs[2]) == EVIDENCE_INFERRED;
		if (NATIVE_ADDRESS(pairs[2]) != call->value)
			return inferred ? MARKED : WRONG;
		if (!is_compiled(stepper, call->value))
			break;
	}
	return RIGHT;
}

/* Returns false if the instruction was checked often enough. */
static bool is_due(struct stepper *stepper, uint64_t pc)
{
	uint64_t caller = call_at(stepper, 0)->value;
	uint64_t hash = (pc * 31 + caller) * 0x9e3779b97f4a7c15ULL;
	struct visit *visit;

	for (size_t i = 0; i < 64; i++) {
		visit = &visits[((hash >> 40) + i) & (VISITS_MAX - 1)];
		if (!visit->pc)
			stepper->checked_pcs++;
		if (!visit->pc || (visit->pc == pc && visit->caller == caller)) {
			visit->pc = pc;
			visit->caller = caller;
			return visit->n++ < CHECKS_MAX;
		}
	}
	return false;
}

/* Returns true if the return addresses are those of the calls. Frames that HotSpot replaces
 * (deoptimization) have others. */
static bool slots_are_true(struct stepper *stepper)
{
	uint64_t value;

	for (size_t i = 0; i < COMPARED && i < stepper->depth; i++) {
		const struct slot *slot = &stepper->slots[stepper->depth - 1 - i];

		if (read_words(stepper, slot->at, &value, sizeof(value)) || value != slot->value) {
			stepper->depth = 0;
			return false;
		}
	}
	return true;
}

static int check(struct stepper *stepper, const struct user_regs_struct *regs)
{
	struct host_thread thread;
	const struct rec_sample *rec;
	enum outcome outcome;
	int ret;

	if (!stepper->depth || !is_compiled(stepper, regs->rip) || !is_due(stepper, regs->rip) ||
	    !slots_are_true(stepper))
		return 0;
	thread = as_host(stepper, regs);
	ret = dump__sample(stepper->dump, &thread, stepper->dump->memory);
	rec = ret ? NULL : sample_of(stepper->dump);
	if (!rec)
		return ret;
	note_codes(stepper->dump);
	outcome = compare(stepper, regs, rec);
	stepper->n[outcome]++;
	if (outcome != RIGHT)
		show(stepper, regs, rec, outcome);
	return 0;
}

/* --- steps --- */

static bool is_call(const uint8_t *code)
{
	if ((code[0] & 0xf0) == 0x40)
		code++;
	return code[0] == 0xe8 || (code[0] == 0xff && (code[1] >> 3 & 7) == 2);
}

static bool is_return(const uint8_t *code)
{
	return code[0] == 0xc3 || code[0] == 0xc2 || (code[0] == 0xf3 && code[1] == 0xc3);
}

/* Returns true for a `jmp` by a register. */
static bool is_jump(const uint8_t *code)
{
	code += (code[0] & 0xf0) == 0x40;
	return code[0] == 0xff && (code[1] & 0xf8) == 0xe0;
}

/* Returns true for a `push` of a register or of a word in memory. */
static bool is_push(const uint8_t *code)
{
	code += (code[0] & 0xf0) == 0x40;
	return (code[0] & 0xf8) == 0x50 || (code[0] == 0xff && (code[1] >> 3 & 7) == 6);
}

static void push(struct stepper *stepper, uint64_t at, uint64_t value)
{
	if (stepper->depth == DEPTH_MAX)
		stepper->depth = 0;
	stepper->slots[stepper->depth++] = (struct slot) { at, value };
}

/* Returns true if the push belongs to a call. The interpreter pushes a return address and jumps to
 * the callee. Adapters copy the address. */
static bool pushes_call(struct stepper *stepper, uint64_t pc, uint64_t value)
{
	if (!is_compiled(stepper, pc) || !is_compiled(stepper, value))
		return false;
	if (is_interpreted(stepper, pc))
		return true;
	if (!stepper->depth || stepper->slots[stepper->depth - 1].value != value)
		return false;
	stepper->depth--;
	return true;
}

static void follow(struct stepper *stepper, const struct user_regs_struct *before,
		   const uint8_t *code, const struct user_regs_struct *after)
{
	uint64_t top = 0, value = 0;

	while (stepper->depth && stepper->slots[stepper->depth - 1].at < after->rsp) {
		stepper->popped_at = stepper->slots[--stepper->depth].at;
		value = stepper->slots[stepper->depth].value;
	}
	if (value)
		stepper->popped = is_return(code) || value == after->rip ? 0 : value;
	if (after->rsp == before->rsp && !stepper->popped)
		return;
	if (read_words(stepper, after->rsp, &top, sizeof(top)))
		return;
	if (after->rsp == before->rsp - 8 && is_call(code) && top > before->rip &&
	    top - before->rip < CODE_BYTES) {
		if (stepper->popped)
			stepper->depth = 0; /* the return address of its caller is in a register */
		push(stepper, after->rsp, top);
		stepper->popped = 0;
	} else if (stepper->popped && top == stepper->popped) {
		push(stepper, after->rsp, top);
		stepper->popped = 0;
	} else if (is_push(code) && after->rsp == before->rsp - 8 &&
		   pushes_call(stepper, before->rip, top)) {
		push(stepper, after->rsp, top);
	} else if (stepper->popped && (after->rip == stepper->popped || is_jump(code))) {
		stepper->popped = 0; /* to the caller, or to its handler of an exception */
	}
}

static bool is_push_flags(const uint8_t *code)
{
	return code[0] == 0x9c ||
	       ((code[0] == 0x66 || (code[0] & 0xf0) == 0x40) && code[1] == 0x9c);
}

/* Clears the trap flag in the flags that a stepped thread pushed. */
static void clear_trap_flag(const struct stepper *stepper, uint64_t at)
{
	uint64_t flags;
	struct iovec local = { &flags, sizeof(flags) }, remote = { (void *)at, sizeof(flags) };

	if (read_words(stepper, at, &flags, sizeof(flags)))
		return;
	flags &= ~TRAP_FLAG;
	process_vm_writev(stepper->pid, &local, 1, &remote, 1, 0);
}

/* Executes one instruction. Returns false if the thread has ended. */
static bool step(struct stepper *stepper)
{
	struct user_regs_struct before, after;
	uint8_t code[4] = { 0 };
	int status, signal = 0;

	if (ptrace(PTRACE_GETREGS, stepper->tid, NULL, &before) || check(stepper, &before))
		return false;
	read_words(stepper, before.rip, code, sizeof(code));
	for (;;) {
		if (ptrace(PTRACE_SINGLESTEP, stepper->tid, NULL, (void *)(intptr_t)signal) ||
		    waitpid(stepper->tid, &status, __WALL) < 0 || !WIFSTOPPED(status))
			return false;
		signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		if (!signal)
			break;
		stepper->depth = 0; /* the handler may continue elsewhere */
		stepper->popped = 0;
	}
	if (ptrace(PTRACE_GETREGS, stepper->tid, NULL, &after))
		return false;
	if (is_push_flags(code))
		clear_trap_flag(stepper, after.rsp);
	follow(stepper, &before, code, &after);
	return true;
}

static int open_dump(struct stepper *stepper, struct dump_process *result, struct err *err)
{
	const struct dump_opts opts = { .runtimes = runtimes, .enabled = ~0U };
	int ret = dump__new(&opts, &stepper->dump, err);

	if (ret)
		return ret;
	stepper->dump->result = result;
	return dump__open_process(stepper->dump, stepper->pid, NULL, err);
}

int main(int argc, char **argv)
{
	static struct stepper stepper;
	struct dump_process result = {};
	struct err err = {};
	uint64_t steps;
	int status;

	if (argc != 6)
		return 2;
	stepper.pid = atoi(argv[1]);
	stepper.tid = atoi(argv[2]);
	steps = strtoull(argv[3], NULL, 0);
	stepper.interpreter[0] = strtoull(argv[4], NULL, 16);
	stepper.interpreter[1] = strtoull(argv[5], NULL, 16);
	find_ranges(&stepper);
	if (open_dump(&stepper, &result, &err)) {
		fprintf(stderr, "step_jvm: %s\n", err.text);
		return 2;
	}
	if (ptrace(PTRACE_SEIZE, stepper.tid, NULL, NULL) ||
	    ptrace(PTRACE_INTERRUPT, stepper.tid, NULL, NULL) ||
	    waitpid(stepper.tid, &status, __WALL) < 0) {
		perror("step_jvm");
		return 2;
	}
	while (steps && step(&stepper))
		steps--;
	ptrace(PTRACE_DETACH, stepper.tid, NULL, NULL);
	printf("sums\t%" PRIu64 " instructions", stepper.checked_pcs);
	for (size_t i = 0; i < OUTCOMES_N; i++)
		printf(", %" PRIu64 " %s", stepper.n[i], NAMES[i]);
	printf(", %" PRIu64 " steps left\n", steps);
	dump__close_process(stepper.dump);
	dump_process__done(&result);
	dump__free(stepper.dump);
	return stepper.n[WRONG] > 0;
}
