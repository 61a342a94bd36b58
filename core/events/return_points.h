/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RETURN_POINTS_H
#define BRAID_RETURN_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/insn/function_returns.h"
#include "probes/attach.h"

/* Finds the places at which the returns of a function are probed for an event: its `ret`
 * instructions, which leaves the stack unchanged. If these are not proven, --force makes the kernel
 * replace return addresses on the stack. Leaving the function in another way then aborts the
 * process. */

struct return_wish {
	uint64_t vaddr;	  /* start of the function */
	uint64_t cookie;  /* COOKIE_* of the event */
	bool call;	  /* the caller probes the entry, with COOKIE_FRAME */
	bool force;	  /* replace return addresses if there is no other way */
	const char *name; /* for users */
};

struct return_points {
	struct probe_point list[FUNCTION_RETURNS_MAX + 1];
	size_t n;
	bool replaces; /* return addresses are replaced */
};

/* Returns 0; -ENOTSUP if the returns are not proven, with the reason and the remedy; or -ENOMEM. */
int return_points__find(const struct elf_file *file, const struct return_wish *wish,
			struct return_points *ret, struct err *err);

/* The returns of several functions, each place once, for programs that find the call by the stack
 * pointer. */
struct return_list {
	struct probe_point *list; /* owned */
	size_t n, cap;
	char left_out[200]; /* functions without proven returns; reason of the last */
};

struct listed_function {
	uint64_t vaddr;
	uint64_t cookie;
	uint64_t jump_cookie; /* cookie of a final jump to another library; 0: there must be none */
	bool through_stubs;   /* as in function_returns__find() */
	bool force;	      /* as in struct return_wish */
	const char *name;
};

/* Appends the returns of @function. *@ret_added is false if they are not proven; `left_out` then
 * names the function. Returns 0 or -ENOMEM. */
int return_list__add(struct return_list *list, const struct elf_file *file,
		     const struct function_map *map, const struct listed_function *function,
		     bool *ret_added);
void return_list__done(struct return_list *list); /* idempotent */

#endif
