/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_GO_ASSEMBLY_H
#define BRAID_GO_ASSEMBLY_H

#include "bpf/unwind_rule.h"
#include "runtimes/go/go_table.h"

/* Rules of a function that is written in assembly, by its machine code. Go's table counts the bytes
 * that such a function pushes and reserves. It says neither where the function has saved the
 * registers of its caller, which may be C, nor where the stack pointer becomes something else. */

struct go_assembly_row { /* holds up to the next one */
	uint64_t vaddr;
	struct unwind_rule rule;
};

struct go_assembly {
	struct go_assembly_row *list; /* owned */
	size_t n, cap;
	uint64_t
		moves_at; /* the stack pointer is written by other means from here on; UINT64_MAX */
};

/* Reads the function. @ret is empty if the function is not written in assembly. 0, -ENOMEM, -EFBIG
 * or -EINTR. */
int go_assembly__read(const struct elf_file *file, const struct go_table *table,
		      const struct go_function *function, struct go_assembly *ret);
void go_assembly__done(struct go_assembly *assembly); /* idempotent */

/* Returns the rule at @vaddr, where Go's table says @rule, and sets @ret_end to where the next one
 * may hold. */
struct unwind_rule go_assembly__rule(const struct go_assembly *assembly, uint64_t vaddr,
				     const struct unwind_rule *rule, uint64_t *ret_end);

#endif
