// SPDX-License-Identifier: GPL-2.0
#include "bpf/php_procs.bpf.h"
#include "bpf/tableless.bpf.h"

/* What opcache's JIT has compiled (ext/opcache/jit, 8.0 to 8.5) is jumped to from execute_ex and
 * jumps back, and so lies in the frame of that, which has room for it
 * (ZEND_VM_HYBRID_JIT_RED_ZONE_SIZE). Where execute_ex keeps a frame pointer, the compiled code
 * leaves that alone. Else the stack pointer is where execute_ex has it, or below that by 8 to 24 in
 * what compiled code calls: a return address, alignment, something that was pushed; 256, 264 where
 * all registers are saved (trace_exit), behind which follows `add $256,%rsp`. Which of these it is
 * the return address of execute_ex tells: it follows a call. */
static const __u16 below[] = { 0, 8, 16, 24, 256, 264 };
#define BELOW_N	  (sizeof(below) / sizeof(below[0]))
#define BELOW_MAX 512

/* `add $imm32,%rsp` */
#define ADD_RSP	     0xc48148
#define ADD_RSP_MASK 0xffffff

/* The last bytes of a call: `call rel32`, or by `ff /2` with a register, memory at a register, or
 * one with a distance of 8 or 32 bits, some of them with a SIB byte. */
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

/* Is it there that execute_ex's frame ends, and so its caller's begins? */
__noinline int php__ends_frame(struct unwind_state *u, __u64 cfa)
{
	if (!u || stack__read(u, cfa - 8))
		return 0;
	return u->value - u->mapping.start >= u->mapping.end - u->mapping.start &&
	       follows_call(u->value);
}

/* How far below its place in execute_ex the stack pointer is; BELOW_MAX: not known. */
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

/* bpf/tableless.bpf.h */
__noinline int php__tableless(struct unwind_state *u)
{
	const struct scratch *scratch = scratch__get();
	const struct php_proc_rec *proc;
	__u32 space, more;

	if (!u || !scratch || u->mapping.n_pages || !u->mapping.callers.start)
		return 0;
	space = scratch->proc.space;
	proc = bpf_map_lookup_elem(&php_procs, &space);
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
