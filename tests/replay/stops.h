/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_STOPS_H
#define BRAID_TESTS_REPLAY_STOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "bpf/host/programs.h"
#include "core/base/err.h"

/* A command that runs traced, all its threads and children with it, and stops as a whole whenever
 * one of them enters the marker: the system call getppid, which each language can make and which
 * hardly anything else does. */
struct stops;

/* Starts the command. -ENOENT and the like with the sentence. */
int stops__start(char *const *command, struct stops **ret, struct err *err);

/* Lets all go on until one enters the marker: its process and thread, with every thread of every
 * process stopped. 1; 0: all have ended. */
int stops__next(struct stops *stops, pid_t *ret_pid, pid_t *ret_tid);

/* Lets all go on for a while and stops them wherever they are. False: a marker came first, or the
 * end. */
bool stops__run_for(struct stops *stops, unsigned us);

/* Lets one thread execute so many instructions, all others stay stopped. False: it has ended, or it
 * waits for something. */
bool stops__step(struct stops *stops, pid_t tid, unsigned n);

/* The first process whose program has this name (comm). 0: none of them. */
pid_t stops__find(const struct stops *stops, const char *program);

/* Registers of a stopped thread. False: it is gone. */
bool stops__thread(pid_t pid, pid_t tid, struct host_thread *ret);

void stops__end(struct stops *stops); /* kills what is left; NULL is fine */

#endif
