/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JIT_SORT_H
#define BRAID_JIT_SORT_H

#include <stddef.h>

#include "core/target/jit_index.h"

/* Sorts the entries by start. The sort is stable. Returns 0 or -ENOMEM. */
int jit_sort(struct jit_entry *entries, size_t n);

#endif
