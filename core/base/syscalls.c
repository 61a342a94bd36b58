// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/syscalls.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "core/base/util.h"

/* names from the headers of the build machine: the Makefile generates the list from
 * <asm/unistd.h> */
static const char *const of_headers[] = {
#include "core/base/syscalls.inc"
};

/* Recordings may come from kernels that are newer than the headers. Since Linux 5.1 new system
 * calls have one number on all architectures (arch/x86/entry/syscalls/syscall_64.tbl at 6.18). */
#define NEWER_FIRST 451
static const char *const newer[] = {
	"cachestat",	     "fchmodat2",	  "map_shadow_stack", "futex_wake",
	"futex_wait",	     "futex_requeue",	  "statmount",	      "listmount",
	"lsm_get_self_attr", "lsm_set_self_attr", "lsm_list_modules", "mseal",
	"setxattrat",	     "getxattrat",	  "listxattrat",      "removexattrat",
	"open_tree_attr",    "file_getattr",	  "file_setattr",
};

#define NUMBERS max_of(ARRAY_SIZE(of_headers), NEWER_FIRST + ARRAY_SIZE(newer))

const char *syscall__name(int number)
{
	size_t i = number;

	if (number < 0)
		return NULL;
	if (i < ARRAY_SIZE(of_headers) && of_headers[i])
		return of_headers[i];
	return i >= NEWER_FIRST && i - NEWER_FIRST < ARRAY_SIZE(newer) ? newer[i - NEWER_FIRST]
								       : NULL;
}

int syscall__next(int number)
{
	for (; number < (int)NUMBERS; number++)
		if (syscall__name(number))
			return number;
	return -1;
}

int syscall__number(const char *name)
{
	for (int i = syscall__next(0); i >= 0; i = syscall__next(i + 1))
		if (!strcmp(syscall__name(i), name))
			return i;
	return -ENOENT;
}
