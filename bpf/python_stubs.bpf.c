// SPDX-License-Identifier: GPL-2.0
#include "bpf/tableless.bpf.h"

/* The perf trampolines of CPython 3.12 and 3.13 (-X perf: Python/asm_trampoline.S, x86-64) have no
 * frame pointers either:
 *   sub $8,%rsp; call *%rcx; add $8,%rsp; ret
 * What is ahead of the pc says where the return address is. */
#define STUB_ENTRY  0xc48348d1ff08ec83ULL /* ... from its second byte on */
#define STUB_CALL   0xc308c48348d1ffULL
#define STUB_RETURN 0xc308c48348ULL

/* CFA - rsp; 0: the pc is not in such code. */
static __always_inline int stub__cfa_off(const struct unwind_state *u)
{
	__u64 code, next;

	if (bpf_probe_read_user(&code, sizeof(code), (void *)u->pc))
		return 0;
	if ((code & 0xffffffffffULL) == STUB_RETURN)
		return 16;
	if (!u->leaf)
		return 0;
	if ((code & 0xffffffffffffffULL) == STUB_CALL)
		return 16;
	return (code & 0xff) == 0x48 &&
			       !bpf_probe_read_user(&next, sizeof(next), (void *)u->pc + 1) &&
			       next == STUB_ENTRY
		       ? 8
		       : 0;
}

__noinline int python__tableless(struct unwind_state *u)
{
	int cfa_off;

	if (!u)
		return 0;
	cfa_off = stub__cfa_off(u);
	if (!cfa_off)
		return 0;
	u->rule.kind = UNWIND_REG;
	u->rule.reg = UNWIND_REG_RSP;
	u->rule.cfa_off = cfa_off;
	return TABLELESS_RULE;
}
