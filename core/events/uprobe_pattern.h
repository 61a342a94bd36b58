/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UPROBE_PATTERN_H
#define BRAID_UPROBE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/elf/elf_file.h"

/* Functions of a file whose names match a shell pattern. */

struct matched_function {
	uint64_t vaddr;
	char *name; /* owned */
};

struct matched_functions {
	struct matched_function *list; /* in the order of their addresses, each address once */
	size_t n, cap;
};

/* Returns true if @text has *, ? or [, except for the star of a receiver of Go. */
bool is_pattern(const char *text);

/* Finds the functions in all available symbol tables. Returns 0; -E2BIG: more than
 * EVENT_PLACES_MAX; or -ENOMEM; with a message. */
int matched_functions__find(const struct elf_file *file, const char *pattern,
			    struct matched_functions *ret, struct err *err);
void matched_functions__done(struct matched_functions *functions); /* idempotent */

#endif
