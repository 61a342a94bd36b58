/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_EXPECT_H
#define BRAID_TESTS_REPLAY_EXPECT_H

#include <stdbool.h>
#include <stdio.h>

#include "tests/replay/pipeline.h"

/* The expected results of the cases of a bundle: a text for people, and for `git diff`. A case
 * begins with "== NAME". Its sections begin with "-- " and one of these titles:
 *
 *   "told"                 stack that the program described, outermost frame first; lines have
 *   FUNCTION\tFILE\tLINE   three columns, in which "*" matches any text. After "~" the line has
 *   "or"                   only the last part of a function's name. A line with "?" may be
 *   FUNCTION\tFILE\tLINE   missing. One of several stacks must match. With "or cut" a part of one
 *                          may match, if the walk is flagged as broken off or the native stack is
 *                          not complete. Without it, the walk must not be flagged as broken off.
 *   "called"               native functions that the program described, in this order, perhaps
 *   FUNCTION\tFILE\tLINE   with others between them; "called part": the last ones may have
 *                          returned
 *   "unwound"              stack that libdwfl found, innermost frame first; "unwound part" if
 *   IMAGE+0xADDRESS        libdwfl could not continue
 *   "merged"               stack that braid must show, outermost frame first; "~ " precedes frames
 *     LABEL                that only --keep-vm shows */
struct expect {
	char *text; /* owned */
};

/* Reads the text. Returns 0, or -ENOENT or another errno with a message. */
int expect__read(const char *path, struct expect *ret, struct err *err);
void expect__done(struct expect *expect);

/* Checks a stack against the expected results of the case. Prints all differences to @out, line by
 * line, each after "# ". Checks the merged stack only if @merged is set. */
bool expect__check(const struct expect *expect, const char *name,
		   const struct pipeline_stack *stack, bool merged, FILE *out);

/* Calls @found with each return address that libdwfl found in the case: the name of an image and a
 * link-time address. */
void expect__each_return(const struct expect *expect, const char *name,
			 void (*found)(void *ctx, const char *image, uint64_t vaddr), void *ctx);

/* Prints the lines of the section "merged". */
void expect__print_merged(const struct pipeline_stack *stack, FILE *out);

/* Writes the case with this merged stack, and with its other sections unchanged. */
void expect__write(const struct expect *expect, const char *name,
		   const struct pipeline_stack *stack, FILE *out);

#endif
