/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_SORT_H
#define BRAID_CODE_SORT_H

#include <stddef.h>

#include "core/target/code_index.h"

/* Sorts the entries by start. The sort is stable. Returns 0 or -ENOMEM. */
int code_sort(struct code_entry *entries, size_t n);

#endif
