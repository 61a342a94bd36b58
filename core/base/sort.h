/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SORT_H
#define BRAID_SORT_H

#include <stddef.h>
#include <stdint.h>

/* Sorts as qsort() does, for arrays whose size a file claims. The sort is stable. It checks the
 * budget and the stop between parts of bounded work (core/base/quota.h). Returns 0, -ENOMEM, -EFBIG
 * or -EINTR. After a failure all elements are present, in another order. */
int sort__array(void *array, size_t n, size_t size, int (*compare)(const void *, const void *));

/* Returns the number of elements whose key is at or below @key. Each of the @n elements has @size
 * bytes and begins with its key, a uint64_t (for example a struct that begins with `start`). They
 * are in ascending order of their keys. */
size_t sorted__count_up_to(const void *array, size_t n, size_t size, uint64_t key);

#endif
