/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_NOTE_H
#define BRAID_TESTS_REPLAY_NOTE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "bpf/host/programs.h"
#include "core/base/err.h"
#include "tests/replay/pack.h"

/* What a bundle needs of a stopped process: it is put through the pipeline, and what that reads of
 * memory, images and files is noted, with what lies around. */
struct note;

#define UNWOUND_MAX 4096

struct unwound { /* by libdwfl, innermost first */
	uint64_t ips[UNWOUND_MAX];
	size_t n;
	bool complete;
};

int note__new(pid_t pid, struct note **ret); /* -ENOMEM */
void note__free(struct note *note);	     /* NULL is fine */

/* Adds a case; all threads of the process are stopped. */
int note__case(struct note *note, const char *name, const struct host_thread *thread,
	       const struct unwound *unwound, struct err *err);

/* The section "unwound" (expect.h) of the last case. */
void note__print_unwound(const struct note *note, const struct unwound *unwound, FILE *out);

/* The section "merged" of the last case, as it came out of the live process. */
void note__print_merged(const struct note *note, FILE *out);

/* Writes the bundle, and the extracts of its images to their directory. */
int note__write(struct note *note, const char *path, const char *images, struct err *err);

#endif
