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

/* Returns true if @len bytes at @offset lie within @room bytes. The numbers may have any value. */
static inline bool fits_in(uint64_t offset, uint64_t len, uint64_t room)
{
	return len <= room && offset <= room - len;
}

#define NSEC_PER_SEC 1000000000ULL

/* Grows *@array (element size @size) so that at least @need elements fit; *@cap is its capacity in
 * elements. Doubles the capacity, so that appending is linear. Returns 0, or -ENOMEM with the array
 * unchanged. */
int array__reserve(void *array, size_t *cap, size_t need, size_t size);

/* Returns the inode number of this process's PID namespace; 0: the initial one. */
uint32_t own_pidns(void);

/* Returns true if this process is in a time namespace with clocks that differ from those of the
 * kernel half. */
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
