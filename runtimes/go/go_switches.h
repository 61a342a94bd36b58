/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_GO_SWITCHES_H
#define BRAID_GO_SWITCHES_H

#include "bpf/unwind_rule.h"
#include "runtimes/go/go_table.h"

/* The functions of Go's runtime, written in assembly, that go on on another stack: a goroutine's,
 * the thread's own (g0), that of a signal. In them the table does not say where the caller is. */

#define GO_SWITCHES_MAX 4

struct go_switch {
	uint64_t start, end; /* the stack is another one here */
	struct unwind_rule rule;
};

/* Offsets that hold for a whole file. They are read from the code of runtime.systemstack and
 * runtime.casgstatus, so that no table of versions is needed. */
struct go_places {
	bool known;
	int32_t g_at;	  /* offset of the thread's g from the thread pointer */
	uint32_t curg_at; /* offset of m.curg in m */
	uint32_t goid_at; /* offset of g.goid in g; 0: unknown */
};
struct go_places go_places__of(const struct elf_file *file, const struct go_table *table);

/* Those of one function, in the order of addresses. */
size_t go_switches__of(const struct elf_file *file, const struct go_table *table,
		       const struct go_places *places, const struct go_function *function,
		       struct go_switch ret[GO_SWITCHES_MAX]);

/* Compares the function's name without suffixes that linkers add. */
bool go_function__is(const struct go_function *function, const char *name);

#endif
