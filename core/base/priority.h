/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PRIORITY_H
#define BRAID_PRIORITY_H

#include <stdbool.h>

/* The priority of this thread, and of threads that it starts meanwhile. Urgent work must not wait
 * for its turn on a machine with more work than CPUs. */

/* Raises the priority to nice -10. Does nothing without permission, or if nice is not 0, as the
 * user then chose another priority. */
void priority__raise(void);

/* Sets the highest nice priority (-20) if @hurries, for the time in which processes wait to be
 * read; otherwise restores that of priority__raise(). Does nothing unless priority__raise() changed
 * the priority. */
void priority__hurry(bool hurries);

/* Restores the original priority. All three functions are idempotent. */
void priority__restore(void);

#endif
