// SPDX-License-Identifier: GPL-2.0-or-later
/* Code that moves the stack pointer further than any function does. Its frame is unknown, and no
 * distance wraps around to a plausible value. */
#include "core/insn/insn_state.h"

#include "core/base/util.h"
#include "tests/tap.h"

static struct unwind_rule after(const struct insn_step *steps, size_t n)
{
	struct insn_state state;

	insn_state__enter(&state);
	for (size_t i = 0; i < n; i++)
		insn_state__advance(&state, &steps[i], false);
	return insn_state__rule(&state);
}

#define AFTER(...)                                  \
	after((struct insn_step[]) { __VA_ARGS__ }, \
	      sizeof((struct insn_step[]) { __VA_ARGS__ }) / sizeof(struct insn_step))

static struct insn_step step(uint8_t op, uint8_t reg, int32_t value)
{
	return (struct insn_step) { .op = op, .reg = reg, .value = value };
}

static struct insn_step move(int32_t value)
{
	return step(INSN_MOVE, UNWIND_REGS, value);
}

static void test_moves(void)
{
	struct unwind_rule rule = AFTER(move(-(1 << 20)), move(-(1 << 20)));

	ok(rule.kind == UNWIND_REG && rule.cfa_off == (2 << 20) + 8, "two moves of a MiB add up");
	rule = AFTER(move(-(1 << 30)), move(-(1 << 30)), move(-(1 << 30)), move(-(1 << 30)));
	is_int(rule.kind, UNWIND_NONE, "four moves of a GiB do not wrap to no move at all");
	rule = AFTER(move(-(1 << 29)), move(-(1 << 29)), move(-(1 << 29)), move(-(1 << 29)),
		     move(-(1 << 29)), move(-(1 << 29)), move(-(1 << 29)), move(-(1 << 29)));
	is_int(rule.kind, UNWIND_NONE, "nor do eight of half a GiB");
	rule = AFTER(move(INT32_MIN));
	is_int(rule.kind, UNWIND_NONE, "a move by the smallest number");
	rule = AFTER(move(INT32_MAX), move(INT32_MAX), move(2));
	is_int(rule.kind, UNWIND_NONE, "upwards");
}

static void test_others(void)
{
	struct unwind_rule rule =
		AFTER(step(INSN_PUSH, UNWIND_REG_RBP, 8), step(INSN_SAVE, UNWIND_REGS, 0),
		      step(INSN_LOAD, UNWIND_REGS, INT32_MIN));

	is_int(rule.kind, UNWIND_NONE, "a stack pointer that is 2 GiB from the frame pointer");
	rule = AFTER(step(INSN_STORE, UNWIND_REG_RBX, INT32_MIN),
		     step(INSN_FETCH, UNWIND_REG_RBP, INT32_MIN));
	is_int(rule.kind, UNWIND_NONE, "a register that is saved 2 GiB away");
	rule = AFTER(step(INSN_COPY, UNWIND_REG_RBX, 0), step(INSN_ALIGN, UNWIND_REGS, 0),
		     step(INSN_STORE, UNWIND_REG_RBX, 1 << 29), move(-(1 << 29)), move(-(1 << 29)),
		     move(-(1 << 29)), move(-(1 << 29)), move(-(1 << 29)));
	is_int(rule.kind, UNWIND_NONE, "an aligned stack that moves away from what it kept");
}

int main(void)
{
	test_moves();
	test_others();
	return tap__done();
}
