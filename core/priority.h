/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PRIORITY_H
#define BRAID_PRIORITY_H

/* While it looks at other programs braid goes before them, where there are more of them than CPUs:
 * it takes little time, but if that comes late, samples are lost and names are gone. */

/* This thread and those that it starts; for a user who has not chosen a priority for braid, if it
 * may. */
void priority__raise(void);

/* In a child that is a program of its own: as braid was started. */
void priority__restore(void);

#endif
