/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_KALLSYMS_H
#define BRAID_KALLSYMS_H

#include <stdint.h>

#include "core/base/err.h"

struct kallsyms;

/* Reads @path ("/proc/kallsyms"). Returns 0, -EPERM with the remedy in @err if the addresses are
 * hidden (all zero), -ENOMEM, or the negative errno of open and read. */
int kallsyms__load(const char *path, struct kallsyms **ret, struct err *err);
void kallsyms__free(struct kallsyms *kallsyms); /* NULL is fine */

/* Returns the text symbol that contains @address (up to the next symbol), or NULL. Borrowed until
 * kallsyms__free(). *@ret_module (@ret_module may be NULL) is the module's name, or NULL for the
 * kernel proper. */
const char *kallsyms__find(const struct kallsyms *kallsyms, uint64_t address,
			   const char **ret_module);

/* Returns the address of the kernel's own symbol @name, or 0 if there is none. Searches all symbols
 * one by one. */
uint64_t kallsyms__address(const struct kallsyms *kallsyms, const char *name);

#endif
