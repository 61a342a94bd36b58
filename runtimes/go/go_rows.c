// SPDX-License-Identifier: GPL-2.0-or-later
/* Go's table has the number of bytes below the return address for each instruction of a function.
 * That gives the CFA. No other rule is needed, since Go code restores no register for its caller.
 * Assembly may be called by C, too, so its rules come from its machine code (go_assembly.h). */
#include "runtimes/go/go_rows.h"

#include <errno.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "runtimes/go/go_assembly.h"
#include "runtimes/go/go_switches.h"
#include "runtimes/go/go_table.h"

#define STACK_MAX (1 << 30) /* bytes of a frame; stacks are smaller */

struct rows {
	const struct elf_file *file;
	const struct go_table *table;
	struct go_places places;
	cfi_row_fn row;
	void *ctx;
	uint64_t covered; /* rows up to here were put */
	uint64_t looks;
};

/* The stack ends in these: src/runtime/symtab.go, and their flags TOPFRAME. */
static const char *const outermost[] = { "runtime.goexit", "runtime.mstart", "runtime.rt0_go",
					 "_rt0_amd64", "_rt0_amd64_linux" };

/* Where a signal's handler returns to, with the kernel's frame at rsp. */
static const char *const signal_frames[] = { "runtime.sigreturn", "runtime.sigreturn__sigaction" };

static bool is_one_of(const struct go_function *function, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (go_function__is(function, names[i]))
			return true;
	return false;
}

static struct unwind_rule rule_of(int32_t bytes, uint8_t kind)
{
	struct unwind_rule rule = { .kind = UNWIND_UNSUPPORTED };

	if (bytes >= 0 && bytes < STACK_MAX && bytes % 8 == 0)
		rule = (struct unwind_rule) { .kind = kind,
					      .reg = UNWIND_REG_RSP,
					      .cfa_off = bytes + 8,
					      .fp_words = UNWIND_WORDS_LOST,
					      .aux_words = UNWIND_WORDS_LOST };
	return rule;
}

static int put(struct rows *rows, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
	start = max_of(start, rows->covered);
	if (start >= end)
		return 0;
	rows->covered = end;
	return rows->row(rows->ctx, start, rule);
}

/* Adds rows for a part of a function with one number of bytes on the stack. Rules from machine code
 * take precedence. */
static int put_counted(struct rows *rows, uint64_t start, uint64_t end,
		       const struct unwind_rule *rule, const struct go_assembly *assembly)
{
	int ret = 0;

	while (!ret && start < end) {
		uint64_t until;
		struct unwind_rule found = go_assembly__rule(assembly, start, rule, &until);

		until = min_of(until, end);
		ret = put(rows, start, until, rule->kind == UNWIND_END ? rule : &found);
		start = until;
	}
	return ret;
}

/* Adds rows for a part of a function with one number of bytes on the stack, except where the code
 * runs on another stack. */
static int put_part(struct rows *rows, uint64_t start, uint64_t end, const struct unwind_rule *rule,
		    const struct go_switch *switches, size_t n, const struct go_assembly *assembly)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < n; i++) {
		ret = put_counted(rows, start, min_of(end, switches[i].start), rule, assembly);
		if (!ret && start < switches[i].end && end > switches[i].start)
			ret = put(rows, max_of(start, switches[i].start),
				  min_of(end, switches[i].end), &switches[i].rule);
		start = max_of(start, switches[i].end);
	}
	return ret ? ret : put_counted(rows, start, end, rule, assembly);
}

/* A signal's handler returns to the first instruction, and a return address is looked up by the
 * byte before it. */
static bool is_signal_frame(const struct rows *rows, size_t i)
{
	struct go_function function;

	return go_table__function(rows->table, i, &function) &&
	       is_one_of(&function, signal_frames, ARRAY_SIZE(signal_frames));
}

static int put_values(struct rows *rows, const struct go_function *function)
{
	bool ends = is_one_of(function, outermost, ARRAY_SIZE(outermost));
	struct go_values values = go_values__of(rows->table, function, function->sp);
	struct go_switch switches[GO_SWITCHES_MAX];
	size_t n = go_switches__of(rows->file, rows->table, &rows->places, function, switches);
	struct go_assembly assembly = { .moves_at = UINT64_MAX };
	int ret = n ? 0 : go_assembly__read(rows->file, rows->table, function, &assembly);

	while (!ret && go_values__next(&values) && !(ret = quota__look_at(rows->looks++))) {
		struct unwind_rule rule = rule_of(values.value, ends ? UNWIND_END : UNWIND_REG);

		ret = put_part(rows, values.start, min_of(values.until, function->end), &rule,
			       switches, n, &assembly);
	}
	go_assembly__done(&assembly);
	return ret;
}

static int put_function(struct rows *rows, size_t i, struct go_function *function)
{
	static const struct unwind_rule none = { .kind = UNWIND_NONE };
	static const struct unwind_rule signal = { .kind = UNWIND_SIGNAL };
	int ret;

	if (is_signal_frame(rows, i))
		return put(rows, rows->covered, function->end, &signal);
	function->end -= is_signal_frame(rows, i + 1);
	if (function->start > rows->covered && rows->covered) {
		ret = put(rows, rows->covered, function->start, &none);
		if (ret)
			return ret;
	}
	rows->covered = max_of(rows->covered, function->start);
	ret = put_values(rows, function);
	return ret ? ret : put(rows, rows->covered, function->end, &none);
}

int go_rows__read(const struct elf_file *file, cfi_row_fn row, void *ctx)
{
	static const struct unwind_rule none = { .kind = UNWIND_NONE };
	struct go_table table;
	struct rows rows = { .file = file, .table = &table, .row = row, .ctx = ctx };
	struct go_function function;
	int ret = go_table__open(file, &table);

	if (ret)
		return ret;
	rows.places = go_places__of(file, &table);
	for (size_t i = 0; !ret && i < table.n_functions; i++) {
		ret = quota__look_at(i);
		if (ret || !go_table__function(&table, i, &function))
			continue;
		ret = put_function(&rows, i, &function);
	}
	if (!ret)
		ret = row(ctx, rows.covered, &none);
	go_table__done(&table);
	return ret;
}
