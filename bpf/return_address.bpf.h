/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_RETURN_ADDRESS_BPF_H
#define BRAID_RETURN_ADDRESS_BPF_H

/* Checks for return addresses: the word lies in executable memory, and a call instruction ends at
 * it. An unwind rule is a proof of that. Without one, the machine code is the only evidence. */

#include "bpf/recent.bpf.h"
#include "bpf/scratch.bpf.h"

/* The last bytes of a call (Intel SDM, volume 2, CALL), as a number whose highest byte is the one
 * before the return address. `call rel32` is e8 and four bytes. `call` by a register or by memory
 * is ff with 2 in the middle of the ModRM byte. Then follow a SIB byte and a distance of 8 or 32
 * bits, as the ModRM byte requires. Prefixes come before all these bytes. */
#define CALL_BYTE(before, back)	 ((__u32)((before) >> (64 - 8 * (back))) & 0xff)
#define CALL_MODRM(before, back) (CALL_BYTE(before, back) & 0xc7)
#define CALL_IS_FF(before, back) \
	(CALL_BYTE(before, back) == 0xff && (CALL_BYTE(before, (back)-1) & 0x38) == 0x10)
#define MODRM_MOD(modrm) ((modrm) >> 6)
#define MODRM_RM(modrm)	 ((modrm)&7)
#define RM_SIB		 4 /* a SIB byte follows */
#define RM_NEXT		 5 /* with mod 0: 32 bits from the next instruction on */

/* Returns the bytes of a call whose ModRM byte is @modrm and whose SIB byte, if it has one, is
 * @sib. */
static __always_inline __u32 call__bytes(__u32 modrm, __u32 sib)
{
	__u32 mod = MODRM_MOD(modrm), rm = MODRM_RM(modrm), has_sib = mod != 3 && rm == RM_SIB;
	__u32 distance = mod == 1 ? 1 : mod == 2 ? 4 : 0;

	if (!mod && (rm == RM_NEXT || (has_sib && (sib & 7) == RM_NEXT)))
		distance = 4;
	return 2 + has_sib + distance;
}

#define CALL_BYTES_MAX 7 /* without prefixes */

/* Returns 1 if a call ends where these bytes end. A global function, so that the verifier follows
 * its branches once. */
__weak __noinline int call__ends(__u64 before)
{
	__u32 back;

	if (CALL_BYTE(before, 5) == 0xe8)
		return 1;
	for (back = 2; back <= CALL_BYTES_MAX; back++)
		if (CALL_IS_FF(before, back) &&
		    call__bytes(CALL_MODRM(before, back - 1),
				back > 2 ? CALL_BYTE(before, back - 2) : 0) == back)
			return 1;
	return 0;
}

/* Returns the target of the call before @address if it is direct; else 0. */
static __always_inline __u64 call__target(__u64 address, __u64 before)
{
	return CALL_BYTE(before, 5) == 0xe8 ? address + (__s32)(before >> 32) : 0;
}

/* Calls by a register that the previous instruction loads with a constant, as made by compilers at
 * run time: the last bytes, from the constant's first one on. */
#define CALLED_BYTES	  16
#define CALL_IS_R11(code) ((code)[13] == 0x41 && (code)[14] == 0xff && (code)[15] == 0xd3)
#define CALL_IS_RAX(code) ((code)[14] == 0xff && (code)[15] == 0xd0)
#define MOV_R11_64(code)  ((code)[3] == 0x49 && (code)[4] == 0xbb)
#define MOV_R11_32(code)  ((code)[7] == 0x41 && (code)[8] == 0xbb)
#define MOV_RAX_64(code)  ((code)[4] == 0x48 && (code)[5] == 0xb8)
#define MOV_RAX_32(code)  ((code)[7] == 0x48 && (code)[8] == 0xc7 && (code)[9] == 0xc0)
#define INSN_32(code, at)                                                      \
	((__s32)((code)[at] | (code)[(at) + 1] << 8 | (code)[(at) + 2] << 16 | \
		 (__u32)(code)[(at) + 3] << 24))
#define INSN_64(code, at) ((__u32)INSN_32(code, at) | (__u64)(__u32)INSN_32(code, (at) + 4) << 32)

/* Returns the target of the call before @address if its instructions contain it; else 0. */
__weak __noinline __u64 call__leads_to(struct unwind_state *u, __u64 address)
{
	__u8 code[CALLED_BYTES];

	if (!u || bpf_probe_read_user(code, sizeof(code), (void *)address - sizeof(code)))
		return 0;
	if (code[11] == 0xe8)
		return address + INSN_32(code, 12);
	if (CALL_IS_R11(code))
		return MOV_R11_64(code)	  ? INSN_64(code, 5)
		       : MOV_R11_32(code) ? (__u32)INSN_32(code, 9)
					  : 0;
	if (CALL_IS_RAX(code))
		return MOV_RAX_64(code)	  ? INSN_64(code, 6)
		       : MOV_RAX_32(code) ? (__u64)(__s64)INSN_32(code, 10)
					  : 0;
	return 0;
}

#define PLAUSIBLE_MIN (1ULL << 16) /* vm.mmap_min_addr */
#define PLAUSIBLE_END (1ULL << 47) /* end of user space's addresses */

static __always_inline int address__is_plausible(__u64 address)
{
	return address >= PLAUSIBLE_MIN && address < PLAUSIBLE_END;
}

/* Defined in bpf/unwind.bpf.h. */
__noinline int word__is_return_address(struct unwind_state *u, __u32 space);

/* Reads the bytes before @address into u->value. If the page before is unreadable, only the bytes
 * of its own page are read, and the others are 0. Returns -1 if all are unreadable. */
__weak __noinline int call__read(struct unwind_state *u, __u64 address)
{
	__u32 in_page = address & 7;
	__u64 before = 0;

	if (!u || !address__is_plausible(address))
		return -1;
	if (bpf_probe_read_user(&before, sizeof(before), (void *)address - sizeof(before))) {
		before = 0;
		if (!in_page || address & (PAGE_BYTES - 1) & ~7ULL ||
		    bpf_probe_read_user(&before, in_page, (void *)(address & ~7ULL)))
			return -1;
		before <<= 64 - 8 * in_page;
	}
	u->value = before;
	return 0;
}

/* Returns 1 if a call ends at @address. A return probe's trampoline represents such an address. */
__weak __noinline int insn__follows_call(struct unwind_state *u, __u64 address)
{
	if (!u)
		return 0;
	if (u->trampoline && address == u->trampoline)
		return 1;
	return !call__read(u, address) && call__ends(u->value);
}

/* Layout of u->code, the machine code around u->pc: the bytes before it are in the first word. */
#define INSN_BEFORE 8
#define INSN_AHEAD  (8 * (INSN_WORDS - 1))

/* Reads the machine code around u->pc into u->code. Unreadable words are 0, which matches no call
 * and no other instruction in the searches. */
__weak __noinline int insn__read(struct unwind_state *u)
{
	if (!u || u->code_at == u->pc)
		return 0;
	u->code_at = u->pc;
	if (!bpf_probe_read_user(u->code, sizeof(u->code), (void *)u->pc - INSN_BEFORE))
		return 0;
	__builtin_memset(u->code, 0, sizeof(u->code));
	if (!call__read(u, u->pc))
		u->code[0] = u->value;
	for (int i = 1; i < INSN_WORDS; i++)
		if (bpf_probe_read_user(&u->code[i], sizeof(u->code[i]),
					(void *)u->pc + 8 * (i - 1)))
			u->code[i] = 0;
	return 0;
}

#define ENDBR64		    0xfa1e0ff3
#define IS_XOR_EDI(code)    (((code)&0xffff) == 0xff31)
#define IS_XOR_RDI(code)    (((code)&0xffffff) == 0xff3148)
#define IS_CALL(code)	    (((code)&0xff) == 0xe8)
#define IS_CALL_AT(code)    (((code)&0xffff) == 0x15ff)
#define IS_HLT_AT(code, at) (((code) >> 8 * (at)&0xff) == 0xf4)

/* Returns 1 if the code at u->pc ends the program: it sets an argument, 0 or another value, and
 * then has `call` and `hlt`. It begins with `endbr64` in builds with the CPU's control-flow
 * enforcement. Libraries of coroutines let a stack's first function return to such code. No code
 * has called it, and no frame lies outside of it. */
__weak __noinline int pc__never_returns(struct unwind_state *u)
{
	__u64 code, next;
	__u32 skip;

	if (!u)
		return 0;
	insn__read(u);
	code = u->code[1];
	next = u->code[2];
	if ((__u32)code == ENDBR64) {
		code = code >> 32 | next << 32;
		next = next >> 32 | u->code[3] << 32;
	}
	skip = IS_XOR_RDI(code) ? 24 : IS_XOR_EDI(code) ? 16 : 0;
	if (skip) {
		code = code >> skip | next << (64 - skip);
		next >>= skip;
	}
	return (IS_CALL(code) && IS_HLT_AT(code, 5)) || (IS_CALL_AT(code) && IS_HLT_AT(code, 6));
}

/* Returns 1 if the code at u->pc is `hlt`. A program's first function has it after its last
 * call. */
static __always_inline int pc__is_hlt(struct unwind_state *u)
{
	insn__read(u);
	return IS_HLT_AT(u->code[1], 0);
}

/* Returns 1 if a call ends at u->pc, which is a return address, not that of an interrupted
 * instruction. */
static __always_inline int pc__follows_call(struct unwind_state *u)
{
	if (recent__facts(u, u->pc) & RECENT_CALLED)
		return 1;
	insn__read(u);
	if (!call__ends(u->code[0]))
		return 0;
	recent__add(u, u->pc, &u->mapping, RECENT_CALLED);
	return 1;
}

#endif
