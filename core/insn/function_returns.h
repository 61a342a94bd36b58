/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FUNCTION_RETURNS_H
#define BRAID_FUNCTION_RETURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/insn/function_map.h"

/* The `ret` instructions by which a call of a function returns, with proof that there are no
 * others. A probe at these sees each return and leaves the stack alone. The kernel's own return
 * probes replace the return address on the stack: an exception, a longjmp or a switch of stacks
 * that meets such an address ends the process. */

#define FUNCTION_RETURNS_MAX 64

struct function_returns {
	uint64_t list[FUNCTION_RETURNS_MAX]; /* link-time addresses */
	size_t n;
	/* It also ends by jumping to functions of other libraries, which then return to its caller:
	 * where they are, and so what they return and when, is not known. Addresses of the jumps.
	 */
	uint64_t jumps[FUNCTION_RETURNS_MAX];
	size_t n_jumps;
	/* Some of them end calls of other functions, too, which this one jumps to at its end: only
	 * the stack pointer at the entry tells whose return it is. */
	bool shared;
};

/* Finds the returns of the function that begins at @vaddr. @through_stubs: jumps to functions that
 * the file exports lead to these, as no other library takes their place. -ENOTSUP if the returns
 * cannot be proven, with the reason in @why, a clause about the function ("it ..."); -ENOMEM. */
int function_returns__find(const struct function_map *map, uint64_t vaddr, bool through_stubs,
			   struct function_returns *ret, struct err *why);

/* Does a call of the function at @vaddr end, by a jump, as a call of a function that begins at one
 * of @n other addresses, or of one in another library? 1: it may; 0: it does not; -ENOTSUP: not
 * proven; -ENOMEM. */
int function_returns__end_elsewhere(const struct function_map *map, uint64_t vaddr,
				    const uint64_t *others, size_t n);

#endif
