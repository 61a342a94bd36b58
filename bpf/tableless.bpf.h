/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_TABLELESS_BPF_H
#define BRAID_TABLELESS_BPF_H

/* Hooks of runtimes whose code has no unwind tables, and may keep no frame pointer: before the
 * generic unwinder tries what any code may do, it asks them one by one. A hook knows its own code
 * by the process, the mapping, or the instructions; then it sets u->rule, and may use what follows
 * to read the stack. Each is a global function in a file of its runtime, which the verifier checks
 * by itself; one that a session does not need (cfg_tableless) costs nothing. A hook that answers at
 * all vouches for the pc: it is one that the runtime's own code returns to.
 *
 * Where such a native frame is one of the runtime, the hook says so in u->note, whether or not it
 * sets a rule, and the runtime's walker is noted__walk (bpf/noted.bpf.h). By the same note it says
 * whether the frame may be kept from sample to sample (bpf/kept.h). The note is empty before. */

#include "bpf/scratch.bpf.h"

/* What hooks return; 0: it is not their code. */
#define TABLELESS_RULE	   1
#define TABLELESS_CALLED   2 /* and such code always has a caller: it does not end the stack */
/* Without TABLELESS_RULE: its code, whose compiler is known to keep frame pointers. */
#define TABLELESS_POINTER  4
/* With any of these: what is known of the frame is not proven. */
#define TABLELESS_INFERRED 8
/* With TABLELESS_POINTER: the frame pointer may be the caller's, so it is inferred where the
 * instructions do not tell. */
#define TABLELESS_GUESS	   16

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

/* What the hook says of its frame was looked up at that time: the stack is as old as the oldest. */
static __always_inline void note__is_of(struct unwind_state *u, __u64 checked_ns)
{
	if (checked_ns < u->checked_ns)
		u->checked_ns = checked_ns;
}

/* bpf/unwind.bpf.h */
__noinline __u32 mappings__version(__u32 space);

/* One word of stack memory into u->value; -1: not readable. bpf/unwind.bpf.h */
__noinline int stack__read(struct unwind_state *u, __u64 address);

/* The block that holds it, anew, and some words below; -1: not readable. */
__noinline int block__fill(struct unwind_state *u, __u64 address);

#define BLOCK_BEFORE 48 /* bytes that are read with a word of the stack, below it */

static __always_inline int stack__holds(const struct unwind_state *u, __u64 at, __u32 bytes)
{
	return u->block_start && u->block_bytes >= bytes &&
	       at - u->block_start <= u->block_bytes - bytes;
}

/* Has the block hold so much of the stack: it is then at the index `ret_at` of that and behind, and
 * no call for each of the words is needed. -1: it cannot be had so, stack__read may know more. */
static __always_inline int stack__have(struct unwind_state *u, __u64 at, __u32 bytes, __u64 *ret_at)
{
	if (at & 7 || at < u->sp)
		return -1;
	if (!stack__holds(u, at, bytes) &&
	    (block__fill(u, at + BLOCK_BEFORE) || !stack__holds(u, at, bytes)))
		return -1;
	*ret_at = (at - u->block_start) / 8;
	return 0;
}

#define BLOCK_AT(u, i) ((u)->block[(i) & (BLOCK_WORDS - 1)])

/* Is @address in the code of an image that has no table? */
static __always_inline int mapping__is_image(const struct mapping_rec *mapping, __u64 address)
{
	return !mapping->n_pages && mapping->is_image && address >= mapping->start &&
	       address < mapping->end;
}

/* Is the code what a compiler of that runtime has made at run time, and what calls it known? */
static __always_inline int code__has_callers(const struct unwind_state *u, __u32 walker)
{
	return !u->mapping.n_pages && u->mapping.callers.walkers & 1U << walker;
}

static __always_inline int code__is_caller(const struct unwind_state *u, __u64 pc)
{
	return pc - u->mapping.callers.start < u->mapping.callers.bytes;
}

#endif
