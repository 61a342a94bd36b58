/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ALLOWANCE_H
#define BRAID_ALLOWANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits how much of a process's memory is read for names, and how much of that is stored. A single
 * object that a process names has a limit of its own, but a process can name any number of them. An
 * allowance bounds their sum, for one process and (by `of_all`) for all processes of a session.
 *
 * Reading is limited by time: `rate` bytes a second, and `burst` bytes after a pause. Storing is
 * limited to `charged_max` bytes at a time. A caller that is refused continues as if the memory
 * were unreadable. Not thread-safe. */
struct allowance {
	struct allowance *of_all; /* an allowance that is charged as well; borrowed; NULL: none */
	uint64_t rate, burst;
	size_t charged_max;

	uint64_t left;	    /* bytes that may be read now */
	uint64_t filled_ns; /* CLOCK_MONOTONIC; 0: never, it is full */
	size_t charged;
};

/* Charged for each read in addition to its bytes. */
#define ALLOWANCE_READ_BYTES 64

/* Charges a read of @bytes that is about to happen. Returns false if the limit does not allow it.
 * Here and below, a NULL @allowance allows everything. */
bool allowance__read(struct allowance *allowance, uint64_t bytes);

/* Charges @bytes of storage. Returns false, and charges nothing, if a limit would be exceeded. */
bool allowance__keep(struct allowance *allowance, size_t bytes);

/* Reverts the charge of @bytes by allowance__keep(). */
void allowance__drop(struct allowance *allowance, size_t bytes);

#endif
