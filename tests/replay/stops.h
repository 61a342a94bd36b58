/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_STOPS_H
#define BRAID_TESTS_REPLAY_STOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "bpf/host/programs.h"
#include "core/base/err.h"

/* A traced command with all its threads and children. It stops as a whole whenever one of them
 * enters the marker: the system call getppid, which each language can make and hardly any program
 * uses. */
struct stops;

/* Starts the command. Returns 0, or -ENOENT or another errno with a message. */
int stops__start(char *const *command, struct stops **ret, struct err *err);

/* Lets all threads continue until one enters the marker. Returns 1, its process and its thread,
 * with every thread of every process stopped. Returns 0 if all have ended. */
int stops__next(struct stops *stops, pid_t *ret_pid, pid_t *ret_tid);

/* Lets all threads continue for @us microseconds, then stops them. Returns false if a marker or the
 * end came first. */
bool stops__run_for(struct stops *stops, unsigned us);

/* Lets one thread execute @n instructions, while all others stay stopped. Returns false if the
 * thread has ended, or waits. */
bool stops__step(struct stops *stops, pid_t tid, unsigned n);

/* Returns the first process whose program has this name (comm), or 0. */
pid_t stops__find(const struct stops *stops, const char *program);

/* Reads the registers of a stopped thread. Returns false if the thread is gone. */
bool stops__thread(pid_t pid, pid_t tid, struct host_thread *ret);

void stops__end(struct stops *stops); /* kills all processes that are left; @stops may be NULL */

#endif
