/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LIVING_TASK_H
#define BRAID_LIVING_TASK_H

#include <stdbool.h>
#include <stdint.h>

/* A process lives as long as one of its threads does. If the first thread ends before the others
 * (pthread_exit in main), /proc/PID loses maps, memory, root and files, and process_vm_readv()
 * finds nothing. The ids of the other threads still give all of them: /proc/TID has the same
 * entries as /proc/PID, though no directory lists it. */

/* Returns the id under which the process is readable: @pid, or a running thread if the first thread
 * has ended. Returns @pid if all threads have ended, or if /proc is unreadable. */
uint32_t living_task__of(uint32_t pid);

/* Returns true for the states of a thread that has ended: 'Z' and 'X'. */
bool state__has_ended(char state);

#endif
