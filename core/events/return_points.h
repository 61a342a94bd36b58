/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RETURN_POINTS_H
#define BRAID_RETURN_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/insn/function_returns.h"
#include "probes/attach.h"

/* Where the returns of a function are probed for an event: at its `ret` instructions, which leaves
 * the stack alone. If these are not proven, only with --force: then the kernel replaces return
 * addresses on the stack, and whatever leaves the function by another way aborts the process. */

struct return_wish {
	uint64_t vaddr;	  /* where the function begins */
	uint64_t cookie;  /* of the event: COOKIE_* */
	bool call;	  /* the entry is probed by the caller, with COOKIE_FRAME */
	bool force;	  /* replace return addresses if there is no other way */
	const char *name; /* for people */
};

struct return_points {
	struct probe_point list[FUNCTION_RETURNS_MAX + 1];
	size_t n;
	bool replaces; /* return addresses */
};

/* -ENOTSUP: not proven, with the reason and the way out. -ENOMEM. */
int return_points__find(const struct elf_file *file, const struct return_wish *wish,
			struct return_points *ret, struct err *err);

/* Those of several functions, each place once, for programs that tell by the stack pointer whose
 * return it is. */
struct return_list {
	struct probe_point *list; /* owned */
	size_t n, cap;
	char left_out[200]; /* names of functions that are not proven, with the reason of the last
			     */
};

struct listed_function {
	uint64_t vaddr;
	uint64_t cookie;
	uint64_t jump_cookie; /* at jumps to other libraries that end it; 0: it must not have any */
	bool through_stubs;   /* as in function_returns__find */
	bool force;	      /* as in struct return_wish */
	const char *name;
};

/* Appends the returns of @function. @ret_added: false if they are not proven, which is noted in
 * `left_out`. -ENOMEM. */
int return_list__add(struct return_list *list, const struct elf_file *file,
		     const struct function_map *map, const struct listed_function *function,
		     bool *ret_added);
void return_list__done(struct return_list *list); /* idempotent */

#endif
