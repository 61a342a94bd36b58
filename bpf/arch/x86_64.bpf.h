/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_ARCH_X86_64_BPF_H
#define BRAID_ARCH_X86_64_BPF_H

/* x86-64: the mode word is the code segment. The kernel's struct pt_regs and the user-visible one
 * have the same layout. */

#define arch__copy_regs(to, from)                                                       \
	do {                                                                            \
		(to)[0] = (from)->rax, (to)[1] = (from)->rdx, (to)[2] = (from)->rcx;    \
		(to)[3] = (from)->rbx, (to)[4] = (from)->rsi, (to)[5] = (from)->rdi;    \
		(to)[6] = (from)->rbp, (to)[7] = (from)->rsp, (to)[8] = (from)->r8;     \
		(to)[9] = (from)->r9, (to)[10] = (from)->r10, (to)[11] = (from)->r11;   \
		(to)[12] = (from)->r12, (to)[13] = (from)->r13, (to)[14] = (from)->r14; \
		(to)[15] = (from)->r15, (to)[16] = (from)->rip;                         \
	} while (0)

#define arch__is_user(cs)   ((cs)&3) /* the privilege level */
#define arch__is_compat(cs) ((cs) == ARCH_MODE_COMPAT)

#define arch__syscall(regs) ((regs)->orig_rax)
#define arch__result(regs)  ((regs)->rax)

/* Arguments of system calls. A function call has its fourth argument in rcx instead. */
#define arch__arg(regs, i) ARCH_ARG_##i(regs)
#define ARCH_ARG_0(regs)   ((regs)->rdi)
#define ARCH_ARG_1(regs)   ((regs)->rsi)
#define ARCH_ARG_2(regs)   ((regs)->rdx)
#define ARCH_ARG_3(regs)   ((regs)->r10)

#define arch__thread_pointer(task) ((task)->thread.fsbase)

#endif
