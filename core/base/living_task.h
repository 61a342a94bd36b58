/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LIVING_TASK_H
#define BRAID_LIVING_TASK_H

#include <stdbool.h>
#include <stdint.h>

/* A process lives as long as one of its threads does. If the first one has ended before the others
 * (pthread_exit in main), /proc/PID has no maps, memory, root or files any more, and
 * process_vm_readv finds nothing. All of that is still there under the id of any other thread:
 * /proc/TID has the same entries as /proc/PID, though no directory lists it. */

/* Returns the id under which the process can be read: @pid, or, if its first thread has ended, a
 * thread that has not. If all have ended, or nothing is known, it is @pid. */
uint32_t living_task__of(uint32_t pid);

/* Returns true for the states of a thread that has ended: 'Z' and 'X'. */
bool state__has_ended(char state);

#endif
