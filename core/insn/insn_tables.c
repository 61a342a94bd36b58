// SPDX-License-Identifier: GPL-2.0-or-later
/* Compilers implement a switch by a table of addresses, or of distances from the table itself: lea
 * table(%rip),%a; movslq (%a,%b,4),%c; add %a,%c; jmp *%c */
#include "core/insn/insn_tables.h"

#include "core/base/util.h"

#define STEPS_BACK                                                                             \
	256	    /* from the jump to the load of the table's address, perhaps before a loop \
		     */
#define CASES_MIN 2 /* minimum of valid distances in a table */

/* Returns the step of a case, or NULL. The case must be in the same function, as far as entries
 * show. */
static const struct insn_step *case_at(const struct insn_steps *steps, const struct insn_step *from,
				       uint64_t vaddr)
{
	const struct insn_step *step = insn_steps__at(steps, vaddr);

	if (!step || step->entry || step->op == INSN_PADDING)
		return NULL;
	for (const struct insn_step *at = min_of(step, from); at < max_of(step, from); at++)
		if (at[1].entry)
			return NULL;
	return step;
}

static size_t read_table(const struct elf_file *file, const struct insn_steps *steps,
			 const struct insn_step *from, uint64_t table, size_t bytes,
			 const struct insn_step **ret)
{
	size_t n = 0;

	while (n < INSN_CASES_MAX) {
		int64_t value = 0;
		int32_t distance;

		if (bytes == sizeof(value)
			    ? elf_file__read(file, table + n * bytes, &value, bytes)
			    : elf_file__read(file, table + n * bytes, &distance, bytes))
			break;
		ret[n] = case_at(steps, from,
				 bytes == sizeof(value) ? (uint64_t)value : table + distance);
		if (!ret[n])
			break;
		n++;
	}
	return n;
}

size_t insn_tables__read(const struct elf_file *file, const struct insn_steps *steps, size_t at,
			 const struct insn_step *ret[INSN_CASES_MAX])
{
	const struct insn_step *from = &steps->list[at], *step = from;
	size_t n = 0;

	if (from->target)
		return read_table(file, steps, from, from->target, sizeof(int64_t), ret);
	for (size_t i = 0; i < STEPS_BACK && step > steps->list && !step->entry && n < CASES_MIN;
	     i++) {
		step--;
		if (step->op == INSN_TABLE && !insn_steps__at(steps, step->target))
			n = read_table(file, steps, from, step->target, sizeof(int32_t), ret);
	}
	return n < CASES_MIN ? 0 : n;
}
