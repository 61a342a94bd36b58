/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PRIORITY_H
#define BRAID_PRIORITY_H

/* The priority of this thread, and of those that it starts meanwhile. What must be over soon cannot
 * wait for its turn on a machine that has more work than CPUs. */

/* Before others: nice -10. Nothing happens if it may not, or is not at 0: somebody has chosen. */
void priority__raise(void);

/* As it was. Both idempotent. */
void priority__restore(void);

#endif
