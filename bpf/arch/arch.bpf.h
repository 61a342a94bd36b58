/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_ARCH_BPF_H
#define BRAID_ARCH_BPF_H

/* The kernel half's view of the machine. A machine's header defines:
 *
 *   arch__copy_regs(to, regs)    user registers of @regs (struct pt_regs) by their DWARF numbers
 *   arch__is_user(mode)          true if registers with this mode word are those of user space
 *   arch__is_compat(mode)        true if they are those of a 32-bit program
 *   arch__syscall(regs)          number of the system call that the task entered by
 *   arch__arg(regs, i)           its argument @i, from 0; @i is a literal
 *   arch__result(regs)           its result
 *   arch__thread_pointer(task)   address from which thread-local variables are found
 *
 * Mode words are the values of scratch->cs and waiting_thread->cs. scripts/registers lists the
 * other files that still name registers of one machine. */

#include "bpf/arch/arch.h"

#if defined(__TARGET_ARCH_x86) || defined(__x86_64__)
#include "bpf/arch/x86_64.bpf.h"
#endif

#endif
