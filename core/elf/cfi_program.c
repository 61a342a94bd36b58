// SPDX-License-Identifier: GPL-2.0-or-later
/* Call frame instructions describe a table with a column for each register. A program needs one row
 * at a time, with the computation of the CFA and the place of each of the caller's saved registers.
 * A step to the caller needs only the return address and the registers that the rule of some outer
 * frame may refer to. Compilers refer to rsp and rbp only; glibc's lazy binding refers to rbx. So a
 * row's columns here are CFA, rbp, rbx and the return address. All other columns are ignored
 * (docs/internals/unwinding.md has the counts over 1,162 files).
 *
 * A value that these columns cannot express is no error. A register saved at an unsupported place
 * is "lost", and the walk fails only if a later rule needs it. A CFA by an expression is
 * "unsupported" except for three forms: a dereferenced slot of realigned stacks, the PLT's
 * conditional, and register plus offset.
 *
 * The input is hostile. An instruction that is unknown, or extends beyond the end, makes the rest
 * of its function unsupported. There is no loop: instructions are read forward only, saved states
 * are a stack of a fixed size, and an advance by 0 emits no row. */
#include "core/elf/cfi_program.h"

#include <limits.h>

#include "core/arch/arch.h"
#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/elf/cfi_reader.h"

#define WORD_BYTES     8
#define STATES_MAX     32  /* nested DW_CFA_remember_state; compilers do not nest them */
#define CIE_CODE_BYTES 512 /* a common entry's instructions; real ones have under 50 bytes */

/* place of the caller's value of a register */
enum saved { SAVED_SAME, SAVED_UNDEFINED, SAVED_ELSEWHERE, SAVED_AT_CFA, SAVED_AT_FP };

/* state of one run */
struct run {
	const struct arch *arch;
	const struct cfi_cie *cie;
	const struct cfi_state *initial; /* initial state of the common entry */
	struct cfi_reader in;
	uint64_t loc; /* start of the next row; link-time address */
	struct cfi_state now;
	struct cfi_state remembered[STATES_MAX];
	unsigned int n_remembered;
};

static const struct unwind_rule unsupported = { .kind = UNWIND_UNSUPPORTED };

/* --- expressions --- */

static bool is_aligned_int(int64_t value)
{
	return value % WORD_BYTES == 0 && value >= INT_MIN && value <= INT_MAX;
}

static uint8_t next_byte(struct cfi_reader *in)
{
	return cfi_reader__uint(in, 1);
}

static struct cfi_reader next_block(struct cfi_reader *in)
{
	uint64_t size = cfi_reader__uleb(in);
	const uint8_t *start = in->at;

	cfi_reader__skip(in, size);
	return (struct cfi_reader) { .at = in->bad ? in->end : start, .end = in->at };
}

/* Matches the linkers' expression for lazy PLT entries, after its `breg7 off`: one word more on the
 * stack from the entry's push on. `breg16 0; lit15; and; litN; ge; lit3; shl; plus` */
static bool match_plt(struct cfi_reader in, int *ret_from)
{
	static const uint8_t before[] = { DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and };
	static const uint8_t after[] = { DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus };
	uint8_t op;

	if (in.end - in.at != sizeof(before) + 1 + sizeof(after) ||
	    memcmp(in.at, before, sizeof(before)) != 0 ||
	    memcmp(in.at + sizeof(before) + 1, after, sizeof(after)) != 0)
		return false;
	op = in.at[sizeof(before)];
	if (op < DW_OP_lit0 || op > DW_OP_lit15)
		return false;
	*ret_from = op - DW_OP_lit0;
	return true;
}

/* Matches the end of `breg off; deref`: empty, `plus_uconst n`, or `litN; plus`. */
static bool match_add(struct cfi_reader in, int64_t *ret_add)
{
	int64_t add = 0;
	uint8_t op;

	if (in.at < in.end) {
		op = next_byte(&in);
		if (op == DW_OP_plus_uconst)
			add = (int64_t)cfi_reader__uleb(&in);
		else if (op >= DW_OP_lit0 && op <= DW_OP_lit31 && next_byte(&in) == DW_OP_plus)
			add = op - DW_OP_lit0;
		else
			return false;
	}
	*ret_add = add;
	return !in.bad && in.at == in.end;
}

static void set_cfa(const struct arch *arch, struct unwind_rule *rule, uint64_t reg, int64_t off)
{
	rule->kind = UNWIND_UNSUPPORTED;
	rule->cfa_add = 0;
	if (reg >= arch->pc || !is_aligned_int(off))
		return;
	rule->kind = UNWIND_REG;
	rule->reg = reg;
	rule->cfa_off = off;
}

static void set_cfa_expression(const struct arch *arch, struct unwind_rule *rule,
			       struct cfi_reader in)
{
	uint8_t op = next_byte(&in);
	int64_t off = cfi_reader__sleb(&in), add;
	int from;

	rule->kind = UNWIND_UNSUPPORTED;
	if (in.bad || op < DW_OP_breg0 || op > DW_OP_breg31)
		return;
	set_cfa(arch, rule, op - DW_OP_breg0, off);
	if (rule->kind == UNWIND_UNSUPPORTED || in.at == in.end)
		return;
	rule->kind = UNWIND_UNSUPPORTED;
	if (rule->reg == arch->sp && match_plt(in, &from)) {
		rule->kind = UNWIND_PLT;
		rule->cfa_add = from;
	} else if (next_byte(&in) == DW_OP_deref && match_add(in, &add) && is_aligned_int(add)) {
		rule->kind = UNWIND_DEREF;
		rule->cfa_add = add;
	}
}

/* --- registers --- */

static short to_words(enum saved saved, int64_t off)
{
	int64_t words = off / WORD_BYTES;

	if (saved == SAVED_SAME)
		return UNWIND_WORDS_SAME;
	if (saved < SAVED_AT_CFA || off % WORD_BYTES || words <= SHRT_MIN || words > SHRT_MAX)
		return UNWIND_WORDS_LOST;
	if (saved == SAVED_AT_CFA && words == UNWIND_WORDS_SAME)
		return UNWIND_WORDS_LOST; /* this value is reserved; no function saves a register
					     there */
	return words;
}

static void set_flag(struct unwind_rule *rule, unsigned char flag, enum saved saved, short words)
{
	rule->flags &= ~flag;
	if (saved == SAVED_AT_FP && words != UNWIND_WORDS_LOST)
		rule->flags |= flag;
}

static void set_saved(struct run *p, uint64_t reg, enum saved saved, int64_t off)
{
	const struct arch *arch = p->arch;
	struct unwind_rule *rule = &p->now.rule;

	if (reg == arch->fp) {
		rule->fp_words = to_words(saved, off);
		set_flag(rule, UNWIND_FP_AT_FP, saved, rule->fp_words);
	} else if (reg == arch->aux) {
		rule->aux_words = to_words(saved, off);
		set_flag(rule, UNWIND_AUX_AT_FP, saved, rule->aux_words);
	} else if (reg == arch->sp) {
		p->now.sp_moved = saved != SAVED_SAME;
	}
	if (reg == arch->ra)
		p->now.ra = saved == SAVED_UNDEFINED			  ? CFI_RA_UNDEFINED
			    : saved == SAVED_AT_CFA && off == -WORD_BYTES ? CFI_RA_AT_CFA
									  : CFI_RA_ELSEWHERE;
}

/* Sets that the caller's value of @reg is in register @from. */
static void set_link(struct run *p, uint64_t reg, uint64_t from)
{
	if (reg != p->arch->ra || from >= p->arch->pc)
		return;
	p->now.ra = CFI_RA_IN_REGISTER;
	p->now.ra_reg = from;
}

static void restore_initial(struct run *p, uint64_t reg)
{
	const struct cfi_state *initial = p->initial;
	struct unwind_rule *rule = &p->now.rule;
	unsigned char flag = 0;

	if (reg == p->arch->fp) {
		rule->fp_words = initial->rule.fp_words;
		flag = UNWIND_FP_AT_FP;
	} else if (reg == p->arch->aux) {
		rule->aux_words = initial->rule.aux_words;
		flag = UNWIND_AUX_AT_FP;
	} else if (reg == p->arch->sp) {
		p->now.sp_moved = initial->sp_moved;
	}
	if (reg == p->arch->ra) {
		p->now.ra = initial->ra;
		p->now.ra_reg = initial->ra_reg;
	}
	rule->flags = (rule->flags & ~flag) | (initial->rule.flags & flag);
}

static void set_saved_expression(struct run *p)
{
	uint64_t reg = cfi_reader__uleb(&p->in);
	struct cfi_reader block = next_block(&p->in);
	uint8_t op = next_byte(&block);
	int64_t off = cfi_reader__sleb(&block);
	bool at_fp = op == DW_OP_breg0 + p->arch->fp && !block.bad && block.at == block.end;

	set_saved(p, reg, at_fp ? SAVED_AT_FP : SAVED_ELSEWHERE, at_fp ? off : 0);
}

/* --- instructions --- */

static int64_t scaled(struct run *p, int64_t factored)
{
	int64_t off;

	/* INT64_MAX is no aligned int: the rule becomes unsupported, or the register lost */
	return __builtin_mul_overflow(factored, p->cie->data_align, &off) ? INT64_MAX : off;
}

static void advance(struct run *p, uint64_t factored)
{
	uint64_t delta;

	if (__builtin_mul_overflow(factored, p->cie->code_align, &delta) ||
	    __builtin_add_overflow(p->loc, delta, &p->loc))
		p->loc = UINT64_MAX; /* after the end of any function */
}

static void set_loc(struct run *p)
{
	uint64_t loc = cfi_reader__address(&p->in, p->cie->encoding, p->cie->bias);

	if (loc < p->loc)
		cfi_reader__fail(&p->in);
	else
		p->loc = loc;
}

static void remember(struct run *p)
{
	if (p->n_remembered == STATES_MAX)
		cfi_reader__fail(&p->in);
	else
		p->remembered[p->n_remembered++] = p->now;
}

static void restore_remembered(struct run *p)
{
	if (!p->n_remembered)
		cfi_reader__fail(&p->in);
	else
		p->now = p->remembered[--p->n_remembered];
}

static void define_cfa(struct run *p, uint64_t reg, int64_t off)
{
	p->now.cfa_reg = reg;
	p->now.cfa_off = off;
	p->now.cfa_is_expression = false;
	set_cfa(p->arch, &p->now.rule, reg, off);
}

/* Sets the offset of the CFA. After an expression it takes effect with the next
 * DW_CFA_def_cfa_register, as in libgcc and readelf: hand-written assembly relies on it. */
static void define_cfa_offset(struct run *p, int64_t off)
{
	if (p->now.cfa_is_expression || p->now.rule.kind == UNWIND_NONE)
		p->now.cfa_off = off;
	else
		define_cfa(p, p->now.cfa_reg, off);
}

static void step_cfa(struct run *p, uint8_t op)
{
	struct cfi_reader *in = &p->in;
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = cfi_reader__uleb(in);
		define_cfa(p, reg, cfi_reader__uleb(in));
		break;
	case DW_CFA_def_cfa_sf:
		reg = cfi_reader__uleb(in);
		define_cfa(p, reg, scaled(p, cfi_reader__sleb(in)));
		break;
	case DW_CFA_def_cfa_register:
		define_cfa(p, cfi_reader__uleb(in), p->now.cfa_off);
		break;
	case DW_CFA_def_cfa_offset:
		define_cfa_offset(p, cfi_reader__uleb(in));
		break;
	case DW_CFA_def_cfa_offset_sf:
		define_cfa_offset(p, scaled(p, cfi_reader__sleb(in)));
		break;
	case DW_CFA_def_cfa_expression:
		p->now.cfa_is_expression = true;
		set_cfa_expression(p->arch, &p->now.rule, next_block(in));
		break;
	default:
		cfi_reader__fail(in);
	}
}

static void step_register(struct run *p, uint8_t op)
{
	struct cfi_reader *in = &p->in;
	uint64_t reg;

	switch (op) {
	case DW_CFA_offset_extended:
		reg = cfi_reader__uleb(in);
		set_saved(p, reg, SAVED_AT_CFA, scaled(p, cfi_reader__uleb(in)));
		break;
	case DW_CFA_offset_extended_sf:
		reg = cfi_reader__uleb(in);
		set_saved(p, reg, SAVED_AT_CFA, scaled(p, cfi_reader__sleb(in)));
		break;
	case DW_CFA_GNU_negative_offset_extended:
		reg = cfi_reader__uleb(in);
		set_saved(p, reg, SAVED_AT_CFA, scaled(p, -cfi_reader__uleb(in)));
		break;
	case DW_CFA_restore_extended:
		restore_initial(p, cfi_reader__uleb(in));
		break;
	case DW_CFA_undefined:
		set_saved(p, cfi_reader__uleb(in), SAVED_UNDEFINED, 0);
		break;
	case DW_CFA_same_value:
		set_saved(p, cfi_reader__uleb(in), SAVED_SAME, 0);
		break;
	case DW_CFA_register:
		reg = cfi_reader__uleb(in);
		set_saved(p, reg, SAVED_ELSEWHERE, 0);
		set_link(p, reg, cfi_reader__uleb(in));
		break;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		reg = cfi_reader__uleb(in);
		cfi_reader__uleb(in);
		set_saved(p, reg, SAVED_ELSEWHERE, 0);
		break;
	case DW_CFA_val_expression:
		reg = cfi_reader__uleb(in);
		next_block(in);
		set_saved(p, reg, SAVED_ELSEWHERE, 0);
		break;
	case DW_CFA_expression:
		set_saved_expression(p);
		break;
	default:
		step_cfa(p, op);
	}
}

static void step(struct run *p)
{
	struct cfi_reader *in = &p->in;
	uint8_t op = next_byte(in), operand = op & 0x3f;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		advance(p, operand);
		return;
	case DW_CFA_offset:
		set_saved(p, operand, SAVED_AT_CFA, scaled(p, cfi_reader__uleb(in)));
		return;
	case DW_CFA_restore:
		restore_initial(p, operand);
		return;
	}
	switch (op) {
	case DW_CFA_nop:
		break;
	case DW_CFA_set_loc:
		set_loc(p);
		break;
	case DW_CFA_advance_loc1:
		advance(p, cfi_reader__uint(in, 1));
		break;
	case DW_CFA_advance_loc2:
		advance(p, cfi_reader__uint(in, 2));
		break;
	case DW_CFA_advance_loc4:
		advance(p, cfi_reader__uint(in, 4));
		break;
	case DW_CFA_remember_state:
		remember(p);
		break;
	case DW_CFA_restore_state:
		restore_remembered(p);
		break;
	case DW_CFA_GNU_args_size:
		cfi_reader__uleb(in);
		break;
	default:
		if (op != p->arch->cfi_ignored || !op)
			step_register(p, op);
	}
}

static bool has_return_address(const struct arch *arch, const struct cfi_state *state)
{
	return arch->ra == arch->aux ? state->rule.aux_words != UNWIND_WORDS_LOST
				     : state->ra == CFI_RA_AT_CFA;
}

static struct unwind_rule rule_of(const struct arch *arch, const struct cfi_cie *cie,
				  const struct cfi_state *state)
{
	struct unwind_rule end = { .kind = UNWIND_END,
				   .reg = arch->sp,
				   .cfa_off = arch->ra == arch->aux ? 0 : WORD_BYTES };
	struct unwind_rule link = state->rule;

	if (cie->signal)
		return (struct unwind_rule) { .kind = UNWIND_SIGNAL };
	if (state->ra == CFI_RA_UNDEFINED) {
		if (state->rule.kind == UNWIND_REG) {
			end.reg = state->rule.reg;
			end.cfa_off = state->rule.cfa_off;
		}
		return end;
	}
	if (state->sp_moved)
		return unsupported;
	if (state->ra == CFI_RA_IN_REGISTER && state->rule.kind == UNWIND_REG) {
		link.kind = UNWIND_LINK;
		link.cfa_add = state->ra_reg;
		return link;
	}
	if (!has_return_address(arch, state) || state->rule.kind == UNWIND_NONE ||
	    state->rule.kind == UNWIND_UNSUPPORTED)
		return unsupported;
	return state->rule;
}

static bool is_at_end(const struct run *p)
{
	return p->in.bad || p->in.at == p->in.end;
}

void cfi_program__prepare(struct cfi_program *ret, const struct cfi_cie *cie,
			  const struct arch *arch)
{
	struct run p = { .arch = arch, .cie = cie, .initial = &ret->initial };

	*ret = (struct cfi_program) { .arch = arch, .cie = cie };
	if (cie->ra_reg != arch->ra || cie->code_size > CIE_CODE_BYTES)
		return;
	p.in = (struct cfi_reader) { .at = cie->code, .end = cie->code + cie->code_size };
	while (!is_at_end(&p))
		step(&p);
	ret->initial = p.now;
	ret->usable = !p.in.bad && !p.loc;
}

int cfi_program__run(const struct cfi_program *program, const uint8_t *code, size_t size,
		     uint64_t start, uint64_t end, cfi_range_fn range, void *ctx)
{
	struct run p;
	uint64_t from = start;
	struct unwind_rule rule;
	int rc;

	if (!program->usable)
		return range(ctx, start, end, &unsupported);
	p.arch = program->arch;
	p.cie = program->cie;
	p.initial = &program->initial;
	p.in = (struct cfi_reader) { .at = code, .end = code + size };
	p.loc = start;
	p.now = program->initial;
	p.n_remembered = 0;
	for (uint64_t i = 0; !is_at_end(&p) && p.loc < end; i++) {
		rc = quota__look_at(i);
		if (rc)
			return rc;
		step(&p);
		if (p.loc == from || p.in.bad)
			continue;
		rule = rule_of(p.arch, p.cie, &p.now);
		rc = range(ctx, from, min_of(p.loc, end), &rule);
		if (rc)
			return rc;
		from = p.loc;
	}
	if (from >= end)
		return 0;
	rule = p.in.bad ? unsupported : rule_of(p.arch, p.cie, &p.now);
	return range(ctx, from, end, &rule);
}
