// SPDX-License-Identifier: GPL-2.0
#include "bpf/return_address.bpf.h"
#include "bpf/tableless.bpf.h"

/* The perf trampolines of CPython 3.12 and 3.13 (-X perf: Python/asm_trampoline.S, x86-64) have no
 * frame pointers either:
 *   sub $8,%rsp; call *%rcx; add $8,%rsp; ret
 * The code ahead of the pc determines the place of the return address. */
#define STUB_ENTRY  0xc48348d1ff08ec83ULL /* from its second byte on */
#define STUB_CALL   0xc308c48348d1ffULL
#define STUB_RETURN 0xc308c48348ULL

/* Returns CFA - rsp, or 0 if the pc is not in such code. */
static __always_inline int stub__cfa_off(struct unwind_state *u)
{
	__u64 code;

	insn__read(u);
	code = u->code[1];
	if ((code & 0xffffffffffULL) == STUB_RETURN)
		return 16;
	if (!u->leaf)
		return 0;
	if ((code & 0xffffffffffffffULL) == STUB_CALL)
		return 16;
	return (code & 0xff) == 0x48 && (code >> 8 | u->code[2] << 56) == STUB_ENTRY ? 8 : 0;
}

/* The JIT of CPython 3.14 (Tools/jit/shim.c and template.c, by clang 19) has neither tables nor
 * frame pointers. The interpreter loop calls a shim, which saves the registers that compiled code
 * may overwrite, and calls that code. Each piece of code jumps to the next one with an unchanged
 * stack. A piece has some words of its own there while it calls C, the loop's rbp first if it needs
 * that register.
 *
 * So the frame ends where a return address into the shim is followed, after the shim's saved
 * registers, by one into the loop. Words below may equal a return address by chance, because not
 * all of them are in use. */
#define SHIM_POPS      0x415e415d415c415bULL /* pop %rbx, %r12, %r13, %r14, %r15; ret */
#define SHIM_POPS_8    0xc35f
#define SHIM_SAVED     5
#define PIECE_WORDS    40    /* including the shim's saved registers; 21 were seen without */
#define LOOP_BYTES_MAX 16384 /* maximum size of the loop's own frame */

/* The shim, from each of its instructions on, and the number of words saved there. */
static const struct shim_code {
	__u64 code;
	__u32 bytes, saved;
} shim_codes[] = {
	{ 0x5441554156415741, 8, 0 }, /* push %r15, %r14, %r13, %r12, %rbx */
	{ 0x53544155415641, 7, 1 },   { 0x5354415541, 5, 2 },	    { 0x535441, 3, 3 },
	{ 0x894953, 3, 4 },	      { 0xfc8949, 3, 5 }, /* mov %rdi,%r12 */
	{ 0xf58949, 3, 5 },				  /* mov %rsi,%r13 */
	{ 0xe8d68949, 4, 5 },				  /* mov %rdx,%r14 */
	{ 0x5c415b0000000ae8, 8, 5 },			  /* call of the code after the shim */
	{ SHIM_POPS, 8, 5 },	      { 0x5f415e415d415c41, 8, 4 }, { 0xc35f415e415d41, 7, 3 },
	{ 0xc35f415e41, 5, 2 },	      { 0xc35f41, 3, 1 },	    { 0xc3, 1, 0 },
};
#define SHIM_CODES_N (sizeof(shim_codes) / sizeof(shim_codes[0]))

static __always_inline int shim__returns_to(__u64 pc)
{
	__u64 code;
	__u16 more;

	return !bpf_probe_read_user(&code, sizeof(code), (void *)pc) && code == SHIM_POPS &&
	       !bpf_probe_read_user(&more, sizeof(more), (void *)pc + sizeof(code)) &&
	       more == SHIM_POPS_8;
}

/* Checks whether word @i of the block, counted from u->lo, is the return address into the shim. */
static long shim__look(__u32 i, void *unused)
{
	struct scratch *scratch = scratch__get();
	struct unwind_state *u;
	__u32 at;

	(void)unused;
	if (!scratch)
		return 1;
	u = &scratch->unwind;
	at = u->lo + i;
	if (!code__is_caller(u, BLOCK_AT(u, at + SHIM_SAVED + 1)) ||
	    !shim__returns_to(BLOCK_AT(u, at)))
		return 0;
	u->hi = i + SHIM_SAVED + 2;
	return 1;
}

/* Checks whether the shim itself is interrupted, at its code number @i. */
static long shim__is_at(__u32 i, void *ret_code)
{
	struct scratch *scratch = scratch__get();
	__u64 code = *(__u64 *)ret_code;
	struct unwind_state *u;

	if (!scratch || i >= SHIM_CODES_N)
		return 1;
	u = &scratch->unwind;
	if ((code ^ shim_codes[i].code) << (64 - 8 * shim_codes[i].bytes) ||
	    !code__is_caller(u, BLOCK_AT(u, u->lo + shim_codes[i].saved)))
		return 0;
	u->hi = shim_codes[i].saved + 1;
	return 1;
}

/* Returns the number of words from the stack pointer to the CFA, or 0. */
static __always_inline __u32 jit__words(struct unwind_state *u)
{
	__u64 at, code;

	if (!code__has_callers(u, WALKER_PYTHON) || stack__have(u, u->sp, 8 * PIECE_WORDS, &at))
		return 0;
	u->lo = at;
	u->hi = 0;
	bpf_loop(PIECE_WORDS - SHIM_SAVED - 1, shim__look, NULL, 0);
	if (!u->hi && u->leaf && !bpf_probe_read_user(&code, sizeof(code), (void *)u->pc))
		bpf_loop(SHIM_CODES_N, shim__is_at, &code, 0);
	return u->hi;
}

/* Returns 1 if @rbp may be the frame pointer of the loop, whose frame begins at @start. */
static __always_inline int is_loops_rbp(__u64 rbp, __u64 start)
{
	return !(rbp & 7) && rbp - start < LOOP_BYTES_MAX;
}

static __always_inline int jit__rule(struct unwind_state *u)
{
	__u32 words = jit__words(u);

	if (!words)
		return 0;
	u->rule.cfa_off = 8 * words;
	if (words > SHIM_SAVED)
		u->rule.aux_words = -(SHIM_SAVED + 1);
	if (words > SHIM_SAVED + 2 && (u->rbp_lost || !is_loops_rbp(u->rbp, u->sp + 8 * words)))
		u->rule.fp_words = -(SHIM_SAVED + 3);
	return 1;
}

static __always_inline int stub__rule(struct unwind_state *u)
{
	u->rule.cfa_off = stub__cfa_off(u);
	return u->rule.cfa_off != 0;
}

__noinline int python__tableless(struct unwind_state *u)
{
	if (!u || mapping__is_image(&u->mapping, u->pc))
		return 0;
	if (!stub__rule(u) && !jit__rule(u))
		return 0;
	u->rule.kind = UNWIND_REG;
	u->rule.reg = UNWIND_REG_RSP;
	return TABLELESS_RULE;
}
