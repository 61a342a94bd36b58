// SPDX-License-Identifier: GPL-2.0-or-later
/* Prints the verifier's cost of each BPF program, against a budget; the kernel's limit is 1,000,000
 * instructions. Stages of samples are verified once for each type of programs that trigger. Without
 * the privilege to load, the tool prints that and succeeds.
 *
 * Code that constants switch off is not verified. So everything is switched on for the figures, and
 * then everything off. The two differ in inlined and spilled code, and so in the depth of the
 * stack. That depth is bounded for all functions of a call together.
 *
 * The depth is computed here as well, from the instructions and by the rule of Linux 6.1, the
 * oldest kernel that braid runs on. That kernel rounds each frame up to 32 bytes, later ones to 16.
 * A program may therefore load here and on no 6.1. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/waiting.h"

#include "bpf/alloc.h"
#include "bpf/braid.skel.h"
#include "bpf/shared.h"
#include "core/base/util.h"
#include "core/kernel/chain.h"

#define LOG_BYTES   (1 << 23)
#define BUDGET	    150000
#define LOG_STATS   5 /* BPF_LOG_STATS | BPF_LOG_LEVEL1 */
#define LOG_SHOWN   3000
#define PROGRAM_MAX 128

/* Linux 6.1, check_max_stack_depth(). */
#define STACK_MAX   512
#define FRAME_ROUND 32
#define FRAMES_MAX  8

static char logs[PROGRAM_MAX][LOG_BYTES];

static int complain(enum libbpf_print_level level, const char *fmt, va_list args)
{
	return level == LIBBPF_WARN && geteuid() == 0 ? vprintf(fmt, args) : 0;
}

/* Returns true if the program is verified with @type. Stages are verified with each type, other
 * programs with their own, as tail calls stay within one type. */
static bool is_verified(const struct bpf_program *program, enum chain_type type)
{
	const char *number = strrchr(bpf_program__name(program), '_');

	if (number && strtoul(number + 1, NULL, 10) > 1) /* the first stands for all events */
		return false;
	if (chain__is_stage(bpf_program__name(program)))
		return true;
	for (enum chain_type own = 0; own < CHAIN_TYPES_N; own++)
		if (bpf_program__type(program) == chain__program_type(own))
			return own == type;
	return !type;
}

struct stack {
	const struct bpf_insn *insns;
	size_t n;
	bool *begins; /* by instruction: true if a function begins there */
};

/* Returns the function that an instruction calls or passes as a callback, or -1. */
static long function_of(const struct stack *stack, size_t i)
{
	const struct bpf_insn *insn = &stack->insns[i];
	bool calls = insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL;
	bool names = insn->code == (BPF_LD | BPF_IMM | BPF_DW) && insn->src_reg == BPF_PSEUDO_FUNC;
	long to = (long)i + insn->imm + 1;

	return (calls || names) && to > 0 && to < (long)stack->n ? to : -1;
}

/* Returns the distance below its frame pointer up to which the function at @start reads or writes,
 * in bytes. */
static unsigned frame_bytes(const struct stack *stack, size_t start)
{
	bool is_frame[MAX_BPF_REG] = { [BPF_REG_10] = true };
	int least = 0;

	for (size_t i = start; i < stack->n && (i == start || !stack->begins[i]); i++) {
		const struct bpf_insn *insn = &stack->insns[i];
		unsigned kind = BPF_CLASS(insn->code), dst = insn->dst_reg;

		if ((kind == BPF_LDX && insn->src_reg == BPF_REG_10) ||
		    ((kind == BPF_ST || kind == BPF_STX) && dst == BPF_REG_10))
			least = min_of(least, insn->off);
		if (insn->code == (BPF_ALU64 | BPF_ADD | BPF_K) && is_frame[dst])
			least = min_of(least, insn->imm);
		if (insn->code == (BPF_ALU64 | BPF_MOV | BPF_X))
			is_frame[dst] = insn->src_reg == BPF_REG_10;
		else if (kind == BPF_ALU64 || kind == BPF_ALU || kind == BPF_LDX || kind == BPF_LD)
			is_frame[dst] = false;
	}
	return -least;
}

/* Returns the bytes of the deepest chain of calls from the function at @start on. *@ret_frames is
 * the number of its frames. */
static unsigned stack_bytes(const struct stack *stack, size_t start, unsigned *ret_frames)
{
	unsigned own = max_of(frame_bytes(stack, start), 1U), deepest = 0, frames, n = 0;

	for (size_t i = start; i < stack->n && (i == start || !stack->begins[i]); i++) {
		long to = function_of(stack, i);

		if (to < 0)
			continue;
		deepest = max_of(deepest, stack_bytes(stack, to, &frames));
		n = max_of(n, frames);
	}
	*ret_frames = n + 1;
	return deepest + (own + FRAME_ROUND - 1) / FRAME_ROUND * FRAME_ROUND;
}

/* Returns true if Linux 6.1 has room for the program's frames. */
static bool fits_6_1(const struct bpf_program *program)
{
	struct stack stack = { .insns = bpf_program__insns(program),
			       .n = bpf_program__insn_cnt(program) };
	unsigned bytes, frames;

	stack.begins = calloc(stack.n, sizeof(*stack.begins));
	if (!stack.begins)
		return false;
	for (size_t i = 0; i < stack.n; i++) {
		long to = function_of(&stack, i);

		if (to >= 0)
			stack.begins[to] = true;
	}
	bytes = stack_bytes(&stack, 0, &frames);
	free(stack.begins);
	if (bytes > STACK_MAX || frames > FRAMES_MAX)
		printf("  VERIFY   %s: %u bytes of stack in %u frames, Linux 6.1 takes %d in %d\n",
		       bpf_program__name(program), bytes, frames, STACK_MAX, FRAMES_MAX);
	return bytes <= STACK_MAX && frames <= FRAMES_MAX;
}

static int report(struct braid_bpf *skel, enum chain_type type, int failed)
{
	static const char *const types[] = { "tick", "tracepoint", "uprobe" };
	struct bpf_program *program;
	int n = 0, last = 0, status = failed;

	bpf_object__for_each_program (program, skel->obj) {
		const char *found = strstr(logs[n], "processed "), *name;
		unsigned insns = found ? strtoul(found + strlen("processed "), NULL, 10) : 0;

		name = bpf_program__name(program);
		if (insns)
			printf("  VERIFY   %-19s %-10s %6u of %d instructions\n", name,
			       chain__is_stage(name) ? types[type] : "", insns, BUDGET);
		if (insns > BUDGET || (bpf_program__autoload(program) && !fits_6_1(program)))
			status = 1;
		if (logs[n][0])
			last = n;
		if (++n == PROGRAM_MAX)
			break;
	}
	if (failed) /* the end of the last log contains the reason */
		printf("%s\n",
		       logs[last] + max_of(strlen(logs[last]), (size_t)LOG_SHOWN) - LOG_SHOWN);
	return status;
}

static void switch_all_on(struct braid_bpf__rodata *rodata)
{
	for (int slot = 0; slot < EVENT_SLOTS_N; slot++)
		((__u32 *)rodata->cfg_numbers)[slot] = 1;
	for (int i = 0; i < 2 * EVENTS_MAX; i++)
		((__u64 *)rodata->cfg_periods)[i] = ((__u64 *)rodata->cfg_minima)[i] = 1000;
	rodata->cfg_filtered = rodata->cfg_paired = rodata->cfg_limited = ~0U;
	rodata->cfg_intervals = ~0U;
	rodata->cfg_budget_permille = 30;
	rodata->cfg_pidns_ino = rodata->cfg_locks = rodata->cfg_calls = rodata->cfg_cached = 1;
	rodata->cfg_shadows = rodata->cfg_nodes = 1 << 10;
	rodata->cfg_sent_sets = SENT_SETS;
	rodata->cfg_scope = rodata->cfg_scope_uid = rodata->cfg_scope_not = ~0U;
}

static int verify(enum chain_type type, bool all)
{
	struct braid_bpf *skel = braid_bpf__open();
	struct bpf_program *program;
	int n = 0, status = 0;

	if (!skel) {
		fprintf(stderr, "cannot open the BPF object: %s\n", strerror(errno));
		return 1;
	}
	memset(logs, 0, sizeof(logs));
	skel->rodata->cfg_slots = SLOTS_MAX;
	skel->rodata_type->cfg_slot_end = chain__slots(type);
	if (all) {
		switch_all_on(skel->rodata);
		skel->rodata_type->cfg_tableless = ~0U;
	}
	bpf_object__for_each_program (program, skel->obj) {
		const char *name = bpf_program__name(program);

		if (n == PROGRAM_MAX)
			break;
		bpf_program__set_autoload(program, is_verified(program, type));
		if (chain__is_stage(name))
			bpf_program__set_type(program, chain__program_type(type));
		bpf_program__set_log_level(program, LOG_STATS);
		bpf_program__set_log_buf(program, logs[n++], LOG_BYTES);
	}
	if (braid_bpf__load(skel)) {
		printf("  VERIFY   not loaded: %s\n", strerror(errno));
		status = geteuid() == 0; /* refused by the verifier, not for lack of privilege */
	}
	if (all || status)
		status = report(skel, type, status);
	braid_bpf__destroy(skel);
	return status;
}

int main(void)
{
	int status = 0;

	libbpf_set_print(complain);
	for (enum chain_type type = 0; !status && type < CHAIN_TYPES_N; type++) {
		status = verify(type, true);
		if (!status)
			status = verify(type, false);
	}
	return status;
}
