/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SORT_H
#define BRAID_SORT_H

#include <stddef.h>

/* As qsort, for arrays whose size a file claims: looks at the budget and at the stop between parts
 * of bounded work (core/base/quota.h). Stable. Returns 0, -ENOMEM, -EFBIG or -EINTR; the array is
 * then in another order, but whole. */
int sort__array(void *array, size_t n, size_t size, int (*compare)(const void *, const void *));

#endif
