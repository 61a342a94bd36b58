// SPDX-License-Identifier: GPL-2.0
#include "bpf/php_procs.bpf.h"
#include "bpf/tableless.bpf.h"

/* Code compiled by opcache's JIT (ext/opcache/jit, 8.0 to 8.5) is entered from execute_ex by a jump
 * and jumps back. So it uses the frame of execute_ex, which has space for it
 * (ZEND_VM_HYBRID_JIT_RED_ZONE_SIZE).
 *
 * If execute_ex has a frame pointer, the compiled code does not change it. Otherwise the stack
 * pointer is that of execute_ex, or 8 to 24 below it in a callee of compiled code: a return
 * address, alignment, a pushed value. It is 256 or 264 below in trace_exit, where all registers are
 * saved, and `add $256,%rsp` follows. The return address of execute_ex shows which distance is
 * right: it follows a call. */
static const __u16 below[] = { 0, 8, 16, 24, 256, 264 };
#define BELOW_N	  (sizeof(below) / sizeof(below[0]))
#define BELOW_MAX 512

/* `add $imm32,%rsp` */
#define ADD_RSP	     0xc48148
#define ADD_RSP_MASK 0xffffff

/* Returns 1 if a call ends at @pc. It is `call rel32`, or `ff /2` with a register, memory at a
 * register, or a distance of 8 or 32 bits. Some have a SIB byte. */
#define FF_CALL(modrm) (((modrm)&0x38) == 0x10)

static __always_inline int follows_call(__u64 pc)
{
	__u8 code[8];

	if (pc < 8 || bpf_probe_read_user(code, sizeof(code), (void *)pc - sizeof(code)))
		return 0;
	return code[3] == 0xe8 || (code[6] == 0xff && FF_CALL(code[7])) ||
	       (code[5] == 0xff && FF_CALL(code[6])) || (code[4] == 0xff && FF_CALL(code[5])) ||
	       (code[2] == 0xff && FF_CALL(code[3])) || (code[1] == 0xff && FF_CALL(code[2]));
}

/* Returns 1 if execute_ex's frame ends at @cfa, and so its caller's begins there. */
__noinline int php__ends_frame(struct unwind_state *u, __u64 cfa)
{
	if (!u || stack__read(u, cfa - 8))
		return 0;
	return u->value - u->mapping.start >= u->mapping.end - u->mapping.start &&
	       follows_call(u->value);
}

/* Returns the distance of the stack pointer below its place in execute_ex, in bytes; BELOW_MAX:
 * unknown. */
static __always_inline __u32 sp__below(struct unwind_state *u, __u32 cfa_off)
{
	__u64 code;
	__u32 i;

	if (!u->leaf && !bpf_probe_read_user(&code, sizeof(code), (void *)u->pc) &&
	    (code & ADD_RSP_MASK) == ADD_RSP && (code >> 24 & 0xffffffff) < BELOW_MAX)
		return code >> 24 & 0xffffffff;
	for (i = 0; i < BELOW_N; i++)
		if (php__ends_frame(u, u->sp + cfa_off + below[i]))
			return below[i];
	return BELOW_MAX;
}

/* If execute_ex calls compiled code, that code has a frame of its own: 48 bytes (NR_SPAD of
 * zend_jit_x86.dasc), with pushed values or, in trace_exit, saved registers. The return address is
 * a constant, and no other word in such a frame can be that address. An earlier execute_ex that was
 * called from here, and left its own address behind, was further below. */
#define CALLED_WORDS_MAX 48

struct called_search {
	struct unwind_state *u;
	__u64 returns;
	__u32 found; /* end of the frame, from the stack pointer; 0: not found yet */
};

static long find_called(__u32 index, void *arg)
{
	struct called_search *search = arg;
	struct unwind_state *u = search->u;

	if (stack__read(u, u->sp + 8ULL * index))
		return 1;
	if (u->value != search->returns)
		return 0;
	search->found = 8 * (index + 1);
	return 1;
}

static __always_inline int rule__of_called(struct unwind_state *u, __u64 returns)
{
	struct called_search search = { .u = u, .returns = returns };

	bpf_loop(CALLED_WORDS_MAX, find_called, &search, 0);
	if (!search.found)
		return 0;
	__builtin_memset(&u->rule, 0, sizeof(u->rule));
	u->rule.kind = UNWIND_REG;
	u->rule.reg = UNWIND_REG_RSP;
	u->rule.cfa_off = search.found;
	return TABLELESS_RULE | TABLELESS_CALLED;
}

/* As described in bpf/tableless.bpf.h. */
__noinline int php__tableless(struct unwind_state *u)
{
	const struct scratch *scratch = scratch__get();
	const struct php_proc_rec *proc;
	__u32 space, more;

	if (!u || !scratch || u->mapping.n_pages || !u->mapping.callers.start)
		return 0;
	space = scratch->proc.space;
	proc = bpf_map_lookup_elem(&php_procs, &space);
	if (proc && proc->returns)
		return rule__of_called(u, proc->returns);
	if (!proc || proc->left.kind != UNWIND_REG)
		return 0;
	u->rule = proc->left;
	if (u->rule.reg == UNWIND_REG_RSP) {
		more = sp__below(u, u->rule.cfa_off);
		if (more == BELOW_MAX) {
			__builtin_memset(&u->rule, 0, sizeof(u->rule));
			return 0;
		}
		u->rule.cfa_off += more;
	}
	return TABLELESS_RULE | TABLELESS_CALLED;
}
