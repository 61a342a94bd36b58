/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_TABLELESS_BPF_H
#define BRAID_TABLELESS_BPF_H

/* Hooks of runtimes whose code has no unwind tables, and may have no frame pointers. The unwinder
 * calls them one by one before it tries the rules for arbitrary code. A hook recognises its own
 * code by the process, the mapping, or the instructions. Then it sets u->rule, and may use the
 * functions below to read the stack. Each is a global function in a file of its runtime, which the
 * verifier checks separately. A hook that a session does not need (cfg_tableless) costs nothing. A
 * result other than 0 confirms the pc: the runtime's own code returns there.
 *
 * If such a native frame is also one of the runtime, the hook stores that in u->note, with or
 * without a rule. The runtime's walker is then runtime_frames__walk (bpf/runtime_frames.bpf.h). The
 * note also says whether the frame may be stored from sample to sample (bpf/cached_unwind.h). The
 * note is empty when a hook is called. */

#include "bpf/scratch.bpf.h"

/* Results of hooks; 0: it is not their code. */
#define TABLELESS_RULE	   1
#define TABLELESS_CALLED   2 /* and such code always has a caller: it does not end the stack */
/* Without TABLELESS_RULE: it is the runtime's code, and its compiler maintains frame pointers. */
#define TABLELESS_POINTER  4
/* With any of these: the result is not proven. */
#define TABLELESS_INFERRED 8
/* With TABLELESS_POINTER: the frame pointer may be the caller's. If the instructions do not decide
 * this, the frame is inferred. */
#define TABLELESS_GUESS	   16
/* Without TABLELESS_RULE: it is the runtime's code, whose return address is at no place that its
 * rules allow. The stack is cut. The rules for arbitrary code do not apply. */
#define TABLELESS_CUT	   32

/* In the order of the calls: X(walker slot, name of the hook) */
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

/* Sets the time of the look-up for the hook's note. The stack has the time of its oldest note. */
static __always_inline void note__is_of(struct unwind_state *u, __u64 checked_ns)
{
	if (checked_ns < u->checked_ns)
		u->checked_ns = checked_ns;
}

/* Defined in bpf/unwind.bpf.h. */
__noinline __u32 mappings__version(__u32 space);

/* Reads one word of stack memory at @address into u->value. Returns -1 if it is not readable.
 * Defined in bpf/unwind.bpf.h. */
__noinline int stack__read(struct unwind_state *u, __u64 address);

/* Reads the block that holds @address, and some words below, again. Returns -1 if it is not
 * readable. */
__noinline int block__fill(struct unwind_state *u, __u64 address);

#define BLOCK_BEFORE 48 /* bytes below a word of the stack that are read with it */

static __always_inline int stack__holds(const struct unwind_state *u, __u64 at, __u32 bytes)
{
	return u->block_start && u->block_bytes >= bytes &&
	       at - u->block_start <= u->block_bytes - bytes;
}

/* Fills the block with @bytes of the stack at @at. The words start at the index *@ret_at, so that
 * no call is necessary for each of them. Returns -1 if the block cannot hold them; stack__read()
 * may still succeed word by word. */
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

/* Returns 1 if @address is in the code of an image that has no table. */
static __always_inline int mapping__is_image(const struct mapping_rec *mapping, __u64 address)
{
	return !mapping->n_pages && mapping->is_image && address >= mapping->start &&
	       address < mapping->end;
}

/* Returns 1 if the code was generated at run time by a compiler of that runtime, and `callers`
 * describes its callers. */
static __always_inline int code__has_callers(const struct unwind_state *u, __u32 walker)
{
	return !u->mapping.n_pages && u->mapping.callers.walkers & 1U << walker;
}

static __always_inline int code__is_caller(const struct unwind_state *u, __u64 pc)
{
	return pc - u->mapping.callers.start < u->mapping.callers.bytes;
}

#endif
