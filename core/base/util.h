/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UTIL_H
#define BRAID_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define min_of(a, b) ((a) < (b) ? (a) : (b))
#define max_of(a, b) ((a) > (b) ? (a) : (b))

/* Do `len` bytes from `offset` on lie within `room`? The numbers may be anything. */
static inline bool fits_in(uint64_t offset, uint64_t len, uint64_t room)
{
	return len <= room && offset <= room - len;
}

#define NSEC_PER_SEC 1000000000ULL

/* Grows `*array` (element size `size`) so that at least `need` elements fit; `*cap` is its
 * capacity in elements. Doubles, so that appending is linear. Returns 0, or -ENOMEM with the
 * array untouched. */
int array__reserve(void *array, size_t *cap, size_t need, size_t size);

/* Inode number of this process's PID namespace; 0: the initial one. */
uint32_t own_pidns(void);

/* Is this process in a time namespace whose clocks are others than those that the kernel half has?
 */
bool own_clocks_are_shifted(void);

uint64_t now_ns(void);	      /* CLOCK_MONOTONIC */
uint64_t thread_cpu_ns(void); /* CLOCK_THREAD_CPUTIME_ID */

static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

#endif
