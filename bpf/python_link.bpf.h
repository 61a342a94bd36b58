/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PYTHON_LINK_BPF_H
#define BRAID_PYTHON_LINK_BPF_H

/* The caller of a frame that the interpreter loop is about to link.
 *
 * A loop that calls a function makes the new frame the thread's current one, and stores its caller
 * in it. Compilers swap the two: in all builds of 3.11 to 3.13 that were read, up to ten
 * instructions lie between them. A thread that is interrupted there has a current frame whose link
 * was left over from an earlier frame at the same address.
 *
 * So the code ahead is searched for a store to the link of this very frame. Its operands are the
 * frame and its caller. No proof says that the store is reached, so the frames are inferred. */

#include "bpf/python_code.bpf.h"
#include "bpf/scratch.bpf.h"

#define LINK_BYTES_AHEAD 80 /* the longest observed distance is 54 */
#define LINK_STORE_BYTES 5

/* The parts of `mov %r64, disp8(%r64)`. */
#define IS_REX_W(byte)	  (((byte)&0xfa) == 0x48) /* with R, B or neither */
#define REX_R(byte)	  ((byte) >> 2 & 1)
#define REX_B(byte)	  ((byte)&1)
#define OPCODE_STORE	  0x89
#define IS_DISP8(modrm)	  (((modrm)&0xc0) == 0x40)
#define MODRM_REG(modrm)  ((modrm) >> 3 & 7)
#define MODRM_BASE(modrm) ((modrm)&7)
#define BASE_HAS_SIB	  4
#define SIB_BASE_ALONE	  0x24

struct link_search {
	__u64 frame, caller;
	__u32 disp; /* offset of the link from the frame's start */
	__u8 code[LINK_BYTES_AHEAD];
};

static __always_inline __u64 link__register(const struct scratch *scratch, __u32 number)
{
	return scratch->interrupted[UNWIND_REG_OF_X86(number) & 15];
}

/* Returns 1 if a store to the frame's link is at @at of the code. */
static __always_inline int link__store_at(struct link_search *search, const struct scratch *scratch,
					  __u32 at)
{
	const __u8 *code = search->code + at;
	__u32 base = MODRM_BASE(code[2]), has_sib = base == BASE_HAS_SIB;

	if (!IS_REX_W(code[0]) || code[1] != OPCODE_STORE || !IS_DISP8(code[2]) ||
	    (has_sib ? code[4] : code[3]) != search->disp ||
	    (has_sib && code[3] != SIB_BASE_ALONE) ||
	    link__register(scratch, base | REX_B(code[0]) << 3) != search->frame)
		return 0;
	search->caller = link__register(scratch, MODRM_REG(code[2]) | REX_R(code[0]) << 3);
	return 1;
}

/* Sets state->linking and linking_to if the code ahead of the interrupted instruction stores the
 * link of the innermost frame, which is state->frame. */
__noinline int link__find(struct python_state *state)
{
	const struct scratch *scratch = scratch__get();
	struct link_search search = {};
	__u32 at;

	if (!state || !scratch ||
	    read_user(search.code, sizeof(search.code), scratch->interrupted[UNWIND_REG_PC]))
		return 0;
	search.frame = state->frame;
	search.disp = state->proc.offsets.frame_previous;
	for (at = 0; at <= LINK_BYTES_AHEAD - LINK_STORE_BYTES; at++) {
		if (!link__store_at(&search, scratch, at))
			continue;
		state->linking = search.frame;
		state->linking_to = search.caller;
		break;
	}
	return 0;
}

#endif
