/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUT_COMMON_H
#define BRAID_OUT_COMMON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/profile/profile.h"

/* Functions that the writers of core/out/output.h share. */

/* A profile's tree in the order in which it is shown. */
struct out_tree {
	uint32_t *order; /* the root, then nodes that have weight or calls, also in descendants:
			    depth first, siblings by name */
	size_t n_order;
	uint32_t *depth;	       /* by node; the root has 0 */
	uint64_t *total;	       /* by node: weight of the node and all descendants */
	uint64_t *waiting, *preempted; /* by node: parts of `total`; NULL: no mix */
	uint32_t depth_max;
	uint32_t *ranks; /* by frame: number of frames before it in the order of names */
};

/* Returns 0 or -ENOMEM. Only after 0 must the caller call out_tree__done(). */
int out_tree__init(struct out_tree *tree, const struct profile *profile);
void out_tree__done(struct out_tree *tree);

/* Returns profile__label() in full. Owned by the caller; NULL: out of memory. */
char *output__label(const struct profile *profile, const struct profile_frame *frame, int annotate);

/* As output__label(), for a node and printable, with the number of frames that it stands for and
 * their library. */
char *output__node_label(const struct profile *profile, uint32_t node, int annotate);

/* Returns true if reports must name the event. The CPU's time and calls need no name. */
bool output__names_event(const struct profile *profile);

/* Writes "30000 samples, 10.0 s, 99 Hz", "event faults: 1.50 MiB in 12 samples, 10.0 s", or "1.23 s
 * in 21891 calls, recorded for 10.0 s", printable. Unknown parts are omitted. */
#define OUTPUT_SUMMARY_BYTES 256
void output__summary(const struct profile *profile, char *buf, size_t size);

/* Writes the notes below the summary, one line each, printable. The first divides weights into
 * running and not running. The last are the idle time that was left out, and unbroken waits.
 * Returns the number of notes. */
#define OUTPUT_NOTES_MAX  6
#define OUTPUT_NOTE_BYTES 320
size_t output__notes(const struct profile *profile,
		     char notes[OUTPUT_NOTES_MAX][OUTPUT_NOTE_BYTES]);

/* Writes the columns of running and not running; "" unless the profile mixes. */
#define OUTPUT_STATES_TITLE "     On CPU    Waiting  Preempted"
#define OUTPUT_STATES_BYTES 128
void output__states(const struct profile *profile, uint64_t total, uint64_t waiting,
		    uint64_t preempted, char *buf, size_t size);

/* Writes the lines above a text: the target, the summary, the notes, and one for each loss. */
void output__heading(const struct profile *profile, FILE *out);

/* Writes a weight as "1234", or as "1.23 ms" or "1.23 MiB" with three digits. */
void output__weight(const struct profile *profile, uint64_t weight, char *buf, size_t size);

/* As output__weight(), but writes samples of a clock as the time that they stand for. */
void output__amount(const struct profile *profile, uint64_t weight, char *buf, size_t size);

/* Returns the colour of names of a kind on a terminal: an SGR sequence, which OUTPUT_COLOUR_END
 * ends. */
#define OUTPUT_COLOUR_END   "\033[m"
#define OUTPUT_COLOUR_FAINT "\033[2m"
const char *output__colour(const struct profile *profile, uint8_t kind);

/* Writes a number in decimal. printf() is too slow for a million of them. */
void output__number(FILE *out, uint64_t number);

/* Flushes @out. Returns 0, or the negative errno of a failed write, which may precede this call. */
int output__finish(FILE *out);

#endif
