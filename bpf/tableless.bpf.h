/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_TABLELESS_BPF_H
#define BRAID_TABLELESS_BPF_H

/* Hooks of runtimes whose code has no unwind tables, and may keep no frame pointer: before the
 * generic unwinder tries what any code may do, it asks them one by one. A hook knows its own code
 * by the process, the mapping, or the instructions; then it sets u->rule, and may use what follows
 * to read the stack. Each is a global function in a file of its runtime, which the verifier checks
 * by itself; one that a session does not need (cfg_tableless) costs nothing. */

#include "bpf/scratch.bpf.h"

/* What hooks return; 0: it is not their code. */
#define TABLELESS_RULE	 1
#define TABLELESS_CALLED 2 /* and such code always has a caller: it does not end the stack */

/* In the order in which they are asked: X(walker slot, name of the hook) */
#define TABLELESS_HOOKS(X)              \
	X(WALKER_JVM, jvm__tableless)   \
	X(WALKER_NODE, node__tableless) \
	X(WALKER_PHP, php__tableless)   \
	X(WALKER_RUBY, ruby__tableless) \
	X(WALKER_PYTHON, python__tableless)

extern const volatile __u32 cfg_tableless;

#define X(slot, hook) __noinline int hook(struct unwind_state *u);
TABLELESS_HOOKS(X)
#undef X

/* One word of stack memory into u->value; -1: not readable. bpf/unwind.bpf.h */
__noinline int stack__read(struct unwind_state *u, __u64 address);

#endif
