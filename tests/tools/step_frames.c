// SPDX-License-Identifier: GPL-2.0-or-later
/* Steps through a program, instruction by instruction, and compares the starts of its frames with
 * the rules that were made of machine code (core/insn/insn_rows.c). The start of a frame follows
 * from the place of the return address, which a call has just stored. Usage: step_frames FILE STEPS
 * SKIP PROGRAM [ARGUMENT...], where FILE is the library whose code is checked, and the first SKIP
 * seconds run at full speed. Prints the numbers of instructions with the right rule, none, and a
 * wrong one. The status is 1 if there are wrong ones. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/insn/insn_ranges.h"
#include "core/unwind/unwind_table.h"

#define DEPTH_MAX 4096

struct tracee {
	pid_t pid;
	uint64_t start, end, bias; /* FILE's code; 0: not mapped yet */
	uint64_t slots[DEPTH_MAX]; /* places of return addresses, outermost first */
	size_t depth;
	uint64_t right, none, wrong;
};

static struct elf_file *file;
static struct unwind_table table;
static struct insn_ranges ranges;

static void find_file(struct tracee *tracee, const char *path)
{
	char maps[64], line[4096];
	uint64_t start, end, offset, vaddr;
	FILE *in;

	snprintf(maps, sizeof(maps), "/proc/%d/maps", tracee->pid);
	in = fopen(maps, "r");
	while (in && fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " r-xp %" SCNx64, &start, &end, &offset) !=
			    3 ||
		    !strchr(line, '/') || strcmp(strchr(line, '/'), path) != 0 ||
		    !elf_file__offset_to_vaddr(file, offset, &vaddr))
			continue;
		tracee->start = start;
		tracee->end = end;
		tracee->bias = start - vaddr;
	}
	if (in)
		fclose(in);
}

static uint64_t register_of(const struct user_regs_struct *regs, uint8_t reg)
{
	const uint64_t values[] = { regs->rax, regs->rdx, regs->rcx, regs->rbx,
				    regs->rsi, regs->rdi, regs->rbp, regs->rsp,
				    regs->r8,  regs->r9,  regs->r10, regs->r11,
				    regs->r12, regs->r13, regs->r14, regs->r15 };

	return reg < ARRAY_SIZE(values) ? values[reg] : 0;
}

static void check(struct tracee *tracee, const struct user_regs_struct *regs)
{
	uint64_t vaddr = regs->rip - tracee->bias, cfa;
	const struct unwind_rule *rule;
	struct iovec to = { &cfa, sizeof(cfa) }, from = { NULL, sizeof(cfa) };

	if (regs->rip < tracee->start || regs->rip >= tracee->end || !tracee->depth ||
	    !insn_ranges__hold(&ranges, vaddr))
		return;
	rule = unwind_table__find(&table, vaddr);
	cfa = register_of(regs, rule->reg) + rule->cfa_off;
	from.iov_base = (void *)cfa;
	if (rule->kind == UNWIND_DEREF)
		cfa = process_vm_readv(tracee->pid, &to, 1, &from, 1, 0) > 0 ? cfa + rule->cfa_add
									     : 0;
	if (rule->kind == UNWIND_NONE) {
		tracee->none++;
	} else if (cfa == tracee->slots[tracee->depth - 1] + 8) {
		tracee->right++;
	} else if (tracee->wrong++ < 20) {
		printf("# %#" PRIx64 ": kind %u, CFA %#" PRIx64 ", not %#" PRIx64 "\n", vaddr,
		       rule->kind, cfa, tracee->slots[tracee->depth - 1] + 8);
	}
}

static bool is_call(const struct tracee *tracee, uint64_t pc)
{
	uint8_t code[3] = { 0 };
	struct iovec to = { code, sizeof(code) }, from = { (void *)pc, sizeof(code) };

	if (process_vm_readv(tracee->pid, &to, 1, &from, 1, 0) < (ssize_t)sizeof(code))
		return false;
	return code[0] == 0xe8 || (code[0] == 0xff && (code[1] >> 3 & 7) == 2) ||
	       ((code[0] & 0xf0) == 0x40 && code[1] == 0xff && (code[2] >> 3 & 7) == 2);
}

/* Executes one instruction. Returns false if the program has ended. */
static bool step(struct tracee *tracee)
{
	struct user_regs_struct before, after;
	int status;
	bool call;

	if (ptrace(PTRACE_GETREGS, tracee->pid, NULL, &before))
		return false;
	check(tracee, &before);
	call = is_call(tracee, before.rip);
	if (ptrace(PTRACE_SINGLESTEP, tracee->pid, NULL, NULL) ||
	    waitpid(tracee->pid, &status, 0) < 0 || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_GETREGS, tracee->pid, NULL, &after))
		return false;
	while (tracee->depth && tracee->slots[tracee->depth - 1] < after.rsp)
		tracee->depth--;
	if (call && after.rsp == before.rsp - 8 && tracee->depth < DEPTH_MAX)
		tracee->slots[tracee->depth++] = after.rsp;
	return true;
}

int main(int argc, char **argv)
{
	struct tracee tracee = { 0 };
	uint64_t steps;
	int status, fd = argc > 4 ? open(argv[1], O_RDONLY) : -1;

	if (fd < 0 || elf_file__open(fd, argv[1], &file, NULL) ||
	    insn_ranges__find(file, &ranges) || unwind_table__build(file, &table, NULL)) {
		fprintf(stderr, "usage: step_frames FILE STEPS SKIP PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	tracee.pid = fork();
	if (!tracee.pid) {
		execvp(argv[4], argv + 4);
		_exit(127);
	}
	usleep(strtod(argv[3], NULL) * 1e6);
	if (ptrace(PTRACE_ATTACH, tracee.pid, NULL, NULL) || waitpid(tracee.pid, &status, 0) < 0) {
		perror("step_frames");
		return 2;
	}
	find_file(&tracee, argv[1]);
	for (steps = strtoull(argv[2], NULL, 0); steps && step(&tracee); steps--)
		;
	kill(tracee.pid, SIGKILL);
	waitpid(tracee.pid, &status, 0);
	printf("%" PRIu64 " right, %" PRIu64 " without a rule, %" PRIu64 " wrong\n", tracee.right,
	       tracee.none, tracee.wrong);
	return tracee.wrong > 0;
}
