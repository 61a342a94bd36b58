/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_FRAME_POINTER_BPF_H
#define BRAID_FRAME_POINTER_BPF_H

/* Rules for code without any information except its bytes.
 *
 * rbp may be the frame pointer of the function at the pc, that of a function further out, or any
 * number. It belongs to a function further out if the function at the pc has no frame pointer, or
 * has not set it yet. A wrong choice invents or hides a call. So rbp is used only with proof, of
 * which there are three:
 *
 *   - The instructions from the pc on lead directly to a return (epilogue__rule). They give the
 *     place of the return address, independently of the rest of the code.
 *   - The function is about to set rbp: `push %rbp` or `mov %rsp,%rbp` is next (prologue__rule).
 *   - The word after the one at rbp is a return address (a call instruction ends there), and no
 *     word between the stack pointer and rbp is. If rbp belonged to a caller, the return address
 *     into that caller would be there (pointer__is_proven).
 *
 * The third proof fails if a word left over from earlier calls happens to be a return address. But
 * whether rbp is the frame pointer at a pc is a property of the code. A proof is therefore cached,
 * by the pc and the bytes around it. A runtime's hook for its own compiler needs no such proof
 * (TABLELESS_POINTER). Two other kinds of code need none either (unwind_state.keeps). One has a
 * prologue that was seen in its file. The other is from a runtime's compiler, as far as that
 * maintains frame pointers. In these, a frame without proof is inferred. */

#include "bpf/return_address.bpf.h"
#include "bpf/tableless.bpf.h"
#include "bpf/vma.bpf.h"

extern const volatile __u32 cfg_unwind;

/* --- directly to a return --- */

#define EPILOGUE_INSTRUCTIONS_MAX 12

#define INSN_BYTE(u, at) (((__u8 *)(u)->code)[(INSN_BEFORE + (at)) & (8 * INSN_WORDS - 1)])

enum { EPILOGUE_GOES_ON, EPILOGUE_RETURNS, EPILOGUE_UNKNOWN };

static __always_inline int epilogue__pop(struct unwind_epilogue *state, __u32 reg)
{
	if (reg == UNWIND_REG_RSP)
		return EPILOGUE_UNKNOWN;
	if (reg == UNWIND_REG_RBP)
		state->rbp_at = state->sp, state->has_rbp = 1;
	if (reg == UNWIND_REG_RBX)
		state->rbx_at = state->sp, state->has_rbx = 1;
	state->sp += 8;
	return EPILOGUE_GOES_ON;
}

/* Sets the stack pointer to rbp + @distance, if rbp still has its value at the pc. */
static __always_inline int epilogue__to_rbp(struct unwind_epilogue *state, int distance)
{
	if (state->by_rbp || state->has_rbp || state->has_rbx)
		return EPILOGUE_UNKNOWN;
	state->by_rbp = 1;
	state->sp = distance;
	return EPILOGUE_GOES_ON;
}

/* Follows an instruction of three bytes or more, by its first three. */
static __always_inline int epilogue__longer(struct unwind_state *u, __u32 at, __u32 first)
{
	struct unwind_epilogue *state = &u->epilogue;
	__s32 distance = (__s8)INSN_BYTE(u, at + 3), word;

	switch (first) {
	case 0x77f8c5: /* vzeroupper */
		state->at += 3;
		return EPILOGUE_GOES_ON;
	case 0xc0c748: /* mov $imm32,%rax: the result */
		state->at += 7;
		return EPILOGUE_GOES_ON;
	case 0xec8948: /* mov %rbp,%rsp, in either encoding */
	case 0xe58b48:
		state->at += 3;
		return epilogue__to_rbp(state, 0);
	case 0x658d48: /* lea d8(%rbp),%rsp */
		state->at += 4;
		return epilogue__to_rbp(state, distance);
	case 0xc48348: /* add $d8,%rsp */
		state->at += 4;
		state->sp += distance;
		return distance > 0 ? EPILOGUE_GOES_ON : EPILOGUE_UNKNOWN;
	case 0xc48148: /* add $d32,%rsp */
		word = INSN_BYTE(u, at + 3) | INSN_BYTE(u, at + 4) << 8 |
		       INSN_BYTE(u, at + 5) << 16 | INSN_BYTE(u, at + 6) << 24;
		state->at += 7;
		if (word <= 0 || word >= EPILOGUE_BYTES_MAX)
			return EPILOGUE_UNKNOWN;
		state->sp += word;
		return EPILOGUE_GOES_ON;
	default:
		return EPILOGUE_UNKNOWN;
	}
}

/* Recognises `mov %reg,%rax` in either encoding (REX.W, opcode, ModRM with two registers). It sets
 * the return value, for example as the last instruction of HotSpot's flush_icache_stub. */
static __always_inline int epilogue__is_result(__u32 first)
{
	__u32 rex = first & 0xfa, modrm = first >> 16 & 0xff, opcode = first >> 8 & 0xff;

	return (rex == 0x48 && opcode == 0x8b && (first & 4) == 0 && (modrm & 0xf8) == 0xc0) ||
	       (rex == 0x48 && opcode == 0x89 && (first & 1) == 0 && (modrm & 0xc7) == 0xc0);
}

static __always_inline int epilogue__instruction(struct unwind_state *u)
{
	struct unwind_epilogue *state = &u->epilogue;
	__u32 at = state->at, byte, next;
	int ret;

	if (at > INSN_AHEAD - 8)
		return EPILOGUE_UNKNOWN;
	byte = INSN_BYTE(u, at);
	next = INSN_BYTE(u, at + 1);
	if (byte == 0xc2) /* ret $imm16 */
		state->arguments = next | INSN_BYTE(u, at + 2) << 8;
	if (byte == 0xc2 || byte == 0xc3 || (byte == 0xf3 && next == 0xc3)) /* ret, rep ret */
		return EPILOGUE_RETURNS;
	if ((byte & 0xf8) == 0x58) { /* pop; numbers differ from DWARF's, except for these three */
		state->at++;
		return epilogue__pop(state, (byte & 7) == 4   ? UNWIND_REG_RSP
					    : (byte & 7) == 5 ? UNWIND_REG_RBP
					    : (byte & 7) == 3 ? UNWIND_REG_RBX
							      : UNWIND_REG_RDX);
	}
	if (byte == 0x41 && (next & 0xf8) == 0x58) { /* pop %r8 to %r15 */
		state->at += 2;
		return epilogue__pop(state, UNWIND_REG_RDX);
	}
	if (byte == 0xc9) { /* leave */
		state->at++;
		ret = epilogue__to_rbp(state, 0);
		return ret == EPILOGUE_GOES_ON ? epilogue__pop(state, UNWIND_REG_RBP) : ret;
	}
	if (byte == 0xb8) { /* mov $imm32,%eax: the result */
		state->at += 5;
		return EPILOGUE_GOES_ON;
	}
	if (epilogue__is_result(byte | next << 8 | INSN_BYTE(u, at + 2) << 16)) {
		state->at += 3;
		return EPILOGUE_GOES_ON;
	}
	return epilogue__longer(u, at, byte | next << 8 | INSN_BYTE(u, at + 2) << 16);
}

static long epilogue__step(__u32 index, void *unused)
{
	struct scratch *scratch = scratch__get();

	(void)index, (void)unused;
	if (!scratch)
		return 1;
	scratch->unwind.epilogue.found = epilogue__instruction(&scratch->unwind);
	return scratch->unwind.epilogue.found != EPILOGUE_GOES_ON;
}

/* Returns the address that is @distance bytes above the register to which the distances relate: rbp
 * or the stack pointer. */
static __always_inline __u64 epilogue__at(const struct unwind_state *u, __s32 distance)
{
	return (u->epilogue.by_rbp ? u->rbp : u->sp) + distance;
}

/* Sets u->rule by the instructions from the pc on that lead to a return. Returns 0 if there are
 * none, or if @checks is set and no call ends at the return address. @with_rbp: the rule may use
 * rbp. */
__weak __noinline int epilogue__rule(struct unwind_state *u, int checks, int with_rbp)
{
	struct unwind_epilogue *state;
	struct unwind_rule *rule;

	if (!u)
		return 0;
	state = &u->epilogue;
	rule = &u->rule;
	__builtin_memset(state, 0, sizeof(*state));
	bpf_loop(EPILOGUE_INSTRUCTIONS_MAX, epilogue__step, NULL, 0);
	if (state->found != EPILOGUE_RETURNS || state->sp > EPILOGUE_BYTES_MAX ||
	    (state->by_rbp && (!with_rbp || u->rbp_lost || u->rbp < u->sp)))
		return 0;
	if (checks &&
	    (stack__read(u, epilogue__at(u, state->sp)) || !insn__follows_call(u, u->value)))
		return 0;
	if (state->arguments)
		u->caller_sp = epilogue__at(u, state->sp + 8 + state->arguments);
	rule->kind = UNWIND_REG;
	rule->reg = state->by_rbp ? UNWIND_REG_RBP : UNWIND_REG_RSP;
	rule->cfa_off = state->sp + 8;
	if (state->has_rbp)
		rule->fp_words = -((__u32)(rule->cfa_off - state->rbp_at) >> 3);
	if (state->has_rbx)
		rule->aux_words = -((__u32)(rule->cfa_off - state->rbx_at) >> 3);
	return 1;
}

/* --- about to set rbp --- */

#define PUSH_RBP     0x55
#define IS_MOV(code) (((code)&0xffffff) == 0xe58948 || ((code)&0xffffff) == 0xec8b48)

/* `pop %rbp` followed by a jump to another function, in place of a return. */
#define POP_RBP		0x5d
#define IS_JUMP(code)	(((code)&0xff) == 0xe9 || ((code)&0xff) == 0xeb || ((code)&0x38ff) == 0x20ff)
#define IS_TAIL(code)	(IS_JUMP(code) || (((code)&0xff) == 0x41 && ((code) >> 8 & 0x38ff) == 0x20ff))
/* `mov %rbp,%rsp; pop %rbp`, with any next instruction. */
#define IS_LEFT(before) ((before) >> 32 == 0x5de58b48 || (before) >> 32 == 0x5dec8948)

/* Returns 1 if the call at @address leads to the pc. @before: the last bytes before that
 * address. */
static __always_inline int pc__is_called(struct unwind_state *u, __u64 address, __u64 before)
{
	__u64 target = call__target(address, before);

	if (target != u->pc - 4 || !target)
		return target && target == u->pc;
	insn__read(u);
	return (__u32)(u->code[0] >> 32) == ENDBR64;
}

/* Returns the code at the pc, or after an ENDBR64 at the pc. */
static __always_inline __u64 insn__after_endbr(const struct unwind_state *u)
{
	__u64 code = u->code[1];

	return (__u32)code == ENDBR64 ? code >> 32 | u->code[2] << 32 : code;
}

/* Returns 1 if the instructions around the pc set rbp in the way of a function's first ones. */
static __always_inline int insn__sets_pointer(const struct unwind_state *u)
{
	__u64 code = insn__after_endbr(u);

	return (IS_MOV(u->code[1]) && u->code[0] >> 56 == PUSH_RBP) ||
	       ((code & 0xff) == PUSH_RBP && IS_MOV(code >> 8));
}

/* Returns 1 if a function in code with frame pointers has left its frame, and has not yet jumped to
 * another function. The instructions around the pc show this. */
static __always_inline int insn__has_left(const struct unwind_state *u)
{
	return u->keeps &&
	       ((u->code[0] >> 56 == POP_RBP && IS_TAIL(u->code[1])) || IS_LEFT(u->code[0]));
}

/* Searches the instructions from the pc on for a way to a return. Is called for the innermost
 * frame, and for frames whose caller has no other evidence. Returns 1 if it has set u->rule. A
 * negative result is a property of the code, and is cached. */
static __always_inline int insn__rule(struct unwind_state *u, int checks, int with_rbp)
{
	if (recent__facts(u, u->pc) & RECENT_BODY)
		return 0;
	insn__read(u);
	if (epilogue__rule(u, checks, with_rbp))
		return 1;
	if (u->epilogue.found == EPILOGUE_UNKNOWN && !insn__sets_pointer(u) && !insn__has_left(u))
		recent__add(u, u->pc, &u->mapping, RECENT_BODY);
	return 0;
}

/* Sets u->rule for a function that has not set rbp yet. Returns 0 if the pc is not at such a
 * place. */
__weak __noinline int prologue__rule(struct unwind_state *u)
{
	__u64 code, returns;

	if (!u || !u->leaf)
		return 0;
	if (recent__facts(u, u->pc) & RECENT_BODY) {
		code = 0;
	} else {
		insn__read(u);
		code = u->code[1];
	}
	if (IS_MOV(code) && u->code[0] >> 56 == PUSH_RBP && !u->rbp_lost &&
	    !stack__read(u, u->sp) && u->value == u->rbp && !stack__read(u, u->sp + 8)) {
		returns = u->value;
		u->rule.cfa_off = 16;
		u->rule.fp_words = -2;
		goto check;
	}
	if (stack__read(u, u->sp))
		return 0;
	returns = u->value;
	u->rule.cfa_off = 8;
	u->rule.fp_words = UNWIND_WORDS_SAME;
	if (code && insn__has_left(u))
		goto check;
	code = code ? insn__after_endbr(u) : 0;
	if ((code & 0xff) == PUSH_RBP && IS_MOV(code >> 8))
		goto check;
	if (!address__is_plausible(returns) || call__read(u, returns) ||
	    !pc__is_called(u, returns, u->value))
		return 0;
check:
	u->rule.kind = UNWIND_REG;
	u->rule.reg = UNWIND_REG_RSP;
	return insn__follows_call(u, returns);
}

/* --- the frame that rbp belongs to --- */

#define POINTER_WORDS_MAX 512 /* maximum number of words searched in a frame; a power of two */
_Static_assert(POINTER_WORDS_MAX < 1 << RECENT_WORD_BITS, "room for an index");

#define STUB_BYTES_MAX 4096

enum { CALL_ELSEWHERE, CALL_UNKNOWN, CALL_OF_STUB };

/* Returns the relation between the call before the return address u->seek and the code at u->pc,
 * which usually maintains frame pointers. Left-over words on the stack are mostly return addresses
 * of calls to other functions, as the call instructions show (CALL_ELSEWHERE). The called function
 * may begin shortly in front of the pc, without a prologue. Then it is a stub of the compiler, and
 * this is its return address (CALL_OF_STUB). A function with a prologue has a frame when it calls
 * others, but not at every instruction. In the innermost function, the call proves nothing either,
 * because the called function may have jumped here (CALL_UNKNOWN). */
__weak __noinline int call__relation(struct unwind_state *u)
{
	__u64 target, code = 0;

	if (!u || !u->keeps)
		return CALL_UNKNOWN;
	target = call__leads_to(u, u->seek);
	if (!target)
		return CALL_UNKNOWN;
	if (target < u->mapping.start || target >= u->mapping.end)
		return u->leaf ? CALL_UNKNOWN : CALL_ELSEWHERE;
	if (u->pc - target >= STUB_BYTES_MAX ||
	    bpf_probe_read_user(&code, sizeof(code), (void *)target))
		return CALL_UNKNOWN;
	if ((code & 0xff) != PUSH_RBP || !IS_MOV(code >> 8))
		return CALL_OF_STUB;
	return u->leaf ? CALL_UNKNOWN : CALL_ELSEWHERE;
}

/* Checks whether the word @index of the frame may be a return address. */
static long pointer__look(__u32 index, void *unused)
{
	struct scratch *scratch = scratch__get();
	struct unwind_state *u;

	(void)unused;
	if (!scratch)
		return 1;
	u = &scratch->unwind;
	if (stack__read(u, u->sp + 8ULL * index)) {
		u->relation = CALL_UNKNOWN;
		u->disproof = index + 1;
		return 1;
	}
	if (!address__is_plausible(u->value))
		return 0;
	u->seek = u->value;
	if (!word__is_return_address(u, scratch->proc.space))
		return 0;
	u->relation = call__relation(u);
	if (!u->relation)
		return 0;
	u->disproof = index + 1;
	return 1;
}

/* Proven facts, by a hash of the pc, the machine code around it, and the address space. Entries are
 * single words, so that each is read and written atomically. */
#define PROVEN_MAX 4096 /* a power of two */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PROVEN_MAX);
	__type(key, __u32);
	__type(value, __u64);
} proven __weak SEC(".maps");

static __always_inline __u64 pointer__fact(const struct unwind_state *u, __u32 space)
{
	__u64 hash = u->pc * 0x9bbf89cd4a5c6de7 + space;

	for (int i = 0; i < INSN_WORDS; i++)
		hash = (hash ^ hash >> 32 ^ u->code[i]) * 0xff51afd7ed558ccd;
	return hash ^ hash >> 29;
}

/* Returns 1 if a recent proof for the function at the pc failed at a word that is a return address
 * in this frame, too. */
static __always_inline int pointer__fails_again(struct unwind_state *u, __u64 facts)
{
	__u64 at = facts / RECENT_WORD;

	return at && 8 * at <= u->rbp - u->sp && !stack__read(u, u->sp + 8 * (at - 1)) &&
	       recent__facts(u, u->value) & RECENT_CALLED;
}

/* Returns 1 if rbp is the frame pointer of the function at the pc. */
__weak __noinline int pointer__is_proven(struct unwind_state *u, __u32 space)
{
	__u64 fact, *entry, facts;
	__u32 key;

	if (!u)
		return 0;
	facts = recent__facts(u, u->pc);
	if (facts & RECENT_POINTER)
		return 1;
	if (!u->keeps && pointer__fails_again(u, facts))
		return 0;
	insn__read(u);
	fact = pointer__fact(u, space);
	key = fact >> 40 & (PROVEN_MAX - 1);
	entry = bpf_map_lookup_elem(&proven, &key);
	if (entry && *(volatile __u64 *)entry == fact)
		goto proven;
	if (u->rbp - u->sp > 8 * POINTER_WORDS_MAX)
		return 0;
	u->disproof = 0;
	bpf_loop((__u32)(u->rbp - u->sp) / 8, pointer__look, NULL, 0);
	if (u->disproof) {
		if (!u->keeps)
			recent__add(u, u->pc, &u->mapping, RECENT_WORD * (__u64)u->disproof);
		return 0;
	}
	if (entry)
		*(volatile __u64 *)entry = fact;
proven:
	recent__add(u, u->pc, &u->mapping, RECENT_POINTER);
	return 1;
}

/* Returns 1 if the compiler of the code at the pc guarantees that rbp has the frame. */
static __always_inline int pointer__is_maintained(const struct unwind_state *u)
{
	return u->keeps & (u->leaf ? KEEPS_LEAVES : KEEPS_CALLERS);
}

/* Sets u->rule by rbp. Returns 0, or the counter of the failure. @is_proven: the code certainly has
 * frame pointers. */
static __always_inline int pointer__rule(struct unwind_state *u, __u32 space, int is_proven)
{
	struct unwind_rule *rule = &u->rule;

	if (u->rbp_lost || u->rbp & 7)
		return COUNT_NO_RULE;
	if (!u->rbp && !u->leaf)
		return COUNT_ZERO_POINTER;
	if (u->rbp < u->sp)
		return COUNT_NO_RULE;
	if (stack__read(u, u->rbp + 8))
		return COUNT_STACK_READ;
	/* With UNWIND_MODE_FP, the next step checks the return address, and the walk has no
	 * alternative rule. */
	if (!is_proven && cfg_unwind != UNWIND_MODE_FP && u->value &&
	    !insn__follows_call(u, u->value))
		return COUNT_UNPROVEN;
	u->next_evidence = EVIDENCE_FRAME_POINTER;
	u->relation = CALL_ELSEWHERE;
	if (!is_proven && !pointer__is_maintained(u) && !pointer__is_proven(u, space)) {
		if (cfg_unwind != UNWIND_MODE_FP && !u->keeps)
			return COUNT_UNPROVEN;
		u->next_evidence = EVIDENCE_INFERRED;
	}
	if (is_proven & TABLELESS_GUESS)
		u->next_evidence = EVIDENCE_INFERRED;
	rule->kind = UNWIND_REG;
	if (u->relation == CALL_OF_STUB) {
		rule->reg = UNWIND_REG_RSP;
		rule->cfa_off = 8 * u->disproof;
		return 0;
	}
	rule->reg = UNWIND_REG_RBP;
	rule->cfa_off = 16;
	rule->fp_words = -2;
	rule->aux_words = UNWIND_WORDS_LOST;
	return 0;
}

#endif
