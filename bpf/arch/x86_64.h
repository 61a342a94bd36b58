/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_ARCH_X86_64_H
#define BRAID_ARCH_X86_64_H

/* Registers of x86-64 by their DWARF numbers (System V ABI AMD64, figure 3.36): rax 0, rdx 1,
 * rcx 2, rbx 3, rsi 4, rdi 5, rbp 6, rsp 7, r8..r15 8..15, return address 16. */

#define UNWIND_REG_RAX 0
#define UNWIND_REG_RDX 1
#define UNWIND_REG_RBX 3
#define UNWIND_REG_RSI 4
#define UNWIND_REG_RDI 5
#define UNWIND_REG_RBP 6
#define UNWIND_REG_RSP 7
#define UNWIND_REG_R13 13
#define UNWIND_REG_R15 15
#define UNWIND_REG_PC  16
#define UNWIND_REGS    17

/* Converts a register's number in instructions (0 to 15) to its DWARF number. */
#define UNWIND_REG_OF_X86(n) ((n) < 8 ? 0x54673120U >> 4 * ((n)&7) & 7 : (n))

/* The code segment of 32-bit programs (__USER32_CS), whose system calls have other numbers. */
#define ARCH_MODE_COMPAT 0x23

#endif
