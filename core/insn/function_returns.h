/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FUNCTION_RETURNS_H
#define BRAID_FUNCTION_RETURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/insn/function_map.h"

/* The `ret` instructions by which a call of a function returns, with proof that there are no
 * others. A probe at these instructions sees each return and does not change the stack. The
 * kernel's own return probes replace the return address on the stack. An exception, a longjmp or a
 * switch of stacks that reads such an address ends the process. */

#define FUNCTION_RETURNS_MAX 64

struct function_returns {
	uint64_t list[FUNCTION_RETURNS_MAX]; /* link-time addresses */
	size_t n;
	/* Link-time addresses of jumps to functions of other libraries, which also end a call.
	 * Those functions return to the caller. Their addresses are unknown, and so are the value
	 * and the time of the return. */
	uint64_t jumps[FUNCTION_RETURNS_MAX];
	size_t n_jumps;
	/* Some returns also end calls of other functions, to which this function jumps at its end.
	 * Only the stack pointer at the entry shows to which call a return belongs. */
	bool shared;
};

/* Finds the returns of the function that begins at @vaddr. @through_stubs: jumps to functions that
 * the file exports lead to these functions, as no other library replaces them. Returns 0, -ENOMEM,
 * or -ENOTSUP if the returns cannot be proven. *@why is then the reason, a clause about the
 * function ("it ..."). */
int function_returns__find(const struct function_map *map, uint64_t vaddr, bool through_stubs,
			   struct function_returns *ret, struct err *why);

/* Determines whether a call of the function at @vaddr may end, by a jump, as a call of another
 * function. Other functions are those at one of @n other addresses and those in other libraries.
 * Returns 1 if it may, 0 if it does not, -ENOTSUP if that is not proven, or -ENOMEM. */
int function_returns__end_elsewhere(const struct function_map *map, uint64_t vaddr,
				    const uint64_t *others, size_t n);

#endif
