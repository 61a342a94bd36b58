/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PRIORITY_H
#define BRAID_PRIORITY_H

#include <stdbool.h>

/* The priority of this thread, and of those that it starts meanwhile. What must be over soon cannot
 * wait for its turn on a machine that has more work than CPUs. */

/* Before others: nice -10. Nothing happens if it may not, or is not at 0: somebody has chosen. */
void priority__raise(void);

/* True: the highest priority that nice values have (-20), while processes wait to be read; false:
 * as priority__raise() left it. Nothing happens unless that raised it. */
void priority__hurry(bool hurries);

/* As it was. All are idempotent. */
void priority__restore(void);

#endif
