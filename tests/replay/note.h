/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_NOTE_H
#define BRAID_TESTS_REPLAY_NOTE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "bpf/host/programs.h"
#include "core/base/err.h"
#include "tests/replay/pack.h"

/* The data of a stopped process that a bundle needs. The process is put through the pipeline, and
 * all memory, images and files that it reads are noted, with their surroundings. */
struct note;

#define UNWOUND_MAX 4096

struct unwound { /* stack that libdwfl found, innermost first */
	uint64_t ips[UNWOUND_MAX];
	size_t n;
	bool complete;
};

int note__new(pid_t pid, struct note **ret); /* 0 or -ENOMEM */
void note__free(struct note *note);	     /* @note may be NULL */

/* Adds a case. All threads of the process must be stopped. */
int note__case(struct note *note, const char *name, const struct host_thread *thread,
	       const struct unwound *unwound, struct err *err);

/* Prints the section "unwound" (expect.h) of the last case. */
void note__print_unwound(const struct note *note, const struct unwound *unwound, FILE *out);

/* Prints the section "merged" of the last case, with the stack of the live process. */
void note__print_merged(const struct note *note, FILE *out);

/* Writes the bundle, and the extracts of its images to their directory. */
int note__write(struct note *note, const char *path, const char *images, struct err *err);

#endif
