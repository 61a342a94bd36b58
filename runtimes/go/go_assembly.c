// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/go/go_assembly.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/insn/insn_rows.h"
#include "core/insn/insn_steps.h"

static bool is_assembly(const struct go_table *table, const struct go_function *function)
{
	int32_t number = go_values__at(table, function, function->file, function->start);
	const char *path = number >= 0 ? go_table__file(table, function, number) : NULL;
	size_t n = path ? strlen(path) : 0;

	return n > 2 && !strcmp(path + n - 2, ".s");
}

static int add_row(void *ctx, uint64_t vaddr, const struct unwind_rule *rule)
{
	struct go_assembly *assembly = ctx;

	if (array__reserve(&assembly->list, &assembly->cap, assembly->n + 1,
			   sizeof(*assembly->list)))
		return -ENOMEM;
	assembly->list[assembly->n++] = (struct go_assembly_row) { vaddr, *rule };
	return 0;
}

/* Does the instruction write the stack pointer in a way that Go's assembler does not count? */
static bool moves_stack(const struct insn_step *step)
{
	switch (step->op) {
	case INSN_LOAD:
	case INSN_LOAD_FROM:
	case INSN_LEAVE:
	case INSN_LOSE:
	case INSN_ALIGN:
		return true;
	case INSN_FETCH:
		return step->reg == UNWIND_REG_RSP;
	default:
		return false;
	}
}

static int find_moves(const struct elf_file *file, const struct go_function *function,
		      uint64_t *ret_at)
{
	struct insn_steps steps = {};
	int ret = insn_steps__read(&steps, file, function->start, function->end);

	*ret_at = UINT64_MAX;
	for (size_t i = 0; !ret && i < steps.n && *ret_at == UINT64_MAX; i++)
		if (moves_stack(&steps.list[i]))
			*ret_at = steps.list[i].vaddr + steps.list[i].size;
	insn_steps__done(&steps);
	return ret == -E2BIG ? 0 : ret;
}

int go_assembly__read(const struct elf_file *file, const struct go_table *table,
		      const struct go_function *function, struct go_assembly *ret)
{
	struct go_assembly assembly = { .moves_at = UINT64_MAX };
	int rc = 0;

	if (is_assembly(table, function)) {
		rc = insn_rows__function(file, function->start, function->end, add_row, &assembly);
		rc = rc ?: find_moves(file, function, &assembly.moves_at);
	}
	if (rc)
		go_assembly__done(&assembly);
	*ret = assembly;
	return rc;
}

void go_assembly__done(struct go_assembly *assembly)
{
	free(assembly->list);
	*assembly = (struct go_assembly) {};
}

struct unwind_rule go_assembly__rule(const struct go_assembly *assembly, uint64_t vaddr,
				     const struct unwind_rule *rule, uint64_t *ret_end)
{
	static const struct unwind_rule unsupported = { .kind = UNWIND_UNSUPPORTED };
	struct unwind_rule found = { .kind = UNWIND_NONE };
	uint64_t end = UINT64_MAX;
	size_t i = 0;

	while (i < assembly->n && assembly->list[i].vaddr <= vaddr)
		found = assembly->list[i++].rule;
	if (i < assembly->n)
		end = assembly->list[i].vaddr;
	if (vaddr < assembly->moves_at)
		end = min_of(end, assembly->moves_at);
	*ret_end = end;
	if (found.kind != UNWIND_NONE)
		return found;
	return vaddr >= assembly->moves_at ? unsupported : *rule;
}
