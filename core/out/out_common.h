/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUT_COMMON_H
#define BRAID_OUT_COMMON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/profile/profile.h"

/* What the writers of core/out/output.h share. */

/* A profile's tree in the order in which it is shown. */
struct out_tree {
	uint32_t *order; /* the root, then nodes with weight or calls in them or above: depth
			    first, siblings by name */
	size_t n_order;
	uint32_t *depth;	       /* by node; the root has 0 */
	uint64_t *total;	       /* by node: its weight and that of everything above it */
	uint64_t *waiting, *preempted; /* by node: parts of that; NULL unless the profile mixes */
	uint32_t depth_max;
	uint32_t *ranks; /* by frame: how many frames come before it in the order of names */
};

/* 0 or -ENOMEM; only after 0 it needs out_tree__done. */
int out_tree__init(struct out_tree *tree, const struct profile *profile);
void out_tree__done(struct out_tree *tree);

/* profile__label in full. Owned by the caller; NULL: out of memory. */
char *output__label(const struct profile *profile, const struct profile_frame *frame, int annotate);

/* The same of a node, printable: with how many frames it stands for, and of what library. */
char *output__node_label(const struct profile *profile, uint32_t node, int annotate);

/* Is it of an event that the reader has to be told, not of the CPU's time or of calls? */
bool output__names_event(const struct profile *profile);

/* "30000 samples, 10.0 s, 99 Hz", "event faults: 1.50 MiB in 12 samples, 10.0 s", or "1.23 s in
 * 21891 calls, recorded for 10.0 s", as far as it is known; printable. */
#define OUTPUT_SUMMARY_BYTES 256
void output__summary(const struct profile *profile, char *buf, size_t size);

/* What else is said below the summary, a line each, printable: how weights are divided among
 * running and not running, and, last, what was left out. Returns how many. */
#define OUTPUT_NOTES_MAX  4
#define OUTPUT_NOTE_BYTES 320
size_t output__notes(const struct profile *profile,
		     char notes[OUTPUT_NOTES_MAX][OUTPUT_NOTE_BYTES]);

/* The columns of running and of not running: "" unless the profile mixes. */
#define OUTPUT_STATES_TITLE "     On CPU    Waiting  Preempted"
#define OUTPUT_STATES_BYTES 128
void output__states(const struct profile *profile, uint64_t total, uint64_t waiting,
		    uint64_t preempted, char *buf, size_t size);

/* Above a text: the target, the summary, the notes, and a line for each loss. */
void output__heading(const struct profile *profile, FILE *out);

/* How a weight is shown: "1234", or "1.23 ms" or "1.23 MiB" in three digits. */
void output__weight(const struct profile *profile, uint64_t weight, char *buf, size_t size);

/* The same, but samples of a clock are shown as the time that they stand for. */
void output__amount(const struct profile *profile, uint64_t weight, char *buf, size_t size);

/* How names of that kind are coloured on a terminal: an SGR sequence, which OUTPUT_COLOUR_END
 * ends. */
#define OUTPUT_COLOUR_END   "\033[m"
#define OUTPUT_COLOUR_FAINT "\033[2m"
const char *output__colour(const struct profile *profile, uint8_t kind);

/* In decimal; printf is too slow for a million of them. */
void output__number(FILE *out, uint64_t number);

/* Flushes: 0, or the negative errno of a write that failed, now or before. */
int output__finish(FILE *out);

#endif
