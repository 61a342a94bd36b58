/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_EXPECT_H
#define BRAID_TESTS_REPLAY_EXPECT_H

#include <stdbool.h>
#include <stdio.h>

#include "tests/replay/pipeline.h"

/* What is expected of the cases of a bundle: a text for people, and for `git diff`. Of each case
 *
 *   == NAME
 *   -- told                what the program said of its own stack, outermost frame first; lines are
 *   FUNCTION\tFILE\tLINE   of three columns, of which "*" stands for anything; a function that
 *   -- or                  begins with "~" is known by its last part only, a line with "?" may
 *   FUNCTION\tFILE\tLINE   lack. Of several stacks one must be right; with "-- or cut" a part of
 *                          one may do, if the walk is flagged as broken off, which it must not be
 *                          otherwise, or the native stack is not complete
 *   -- called              native functions that the program says are there, in this order, maybe
 *   FUNCTION\tFILE\tLINE   with others between them; "-- called part": the last ones may have
 *                          returned
 *   -- unwound             what libdwfl found, innermost frame first; "-- unwound part" where it
 *   IMAGE+0xADDRESS        could not go on
 *   -- merged              what braid must show, outermost frame first; "~ " is in front of what
 *     LABEL                only --keep-vm shows */
struct expect {
	char *text; /* owned */
};

/* -ENOENT and others, with the sentence. */
int expect__read(const char *path, struct expect *ret, struct err *err);
void expect__done(struct expect *expect);

/* Checks a stack against what is expected of the case. What is wrong is printed to `out`, line by
 * line, behind "# ". The merged stack counts only if `merged`. */
bool expect__check(const struct expect *expect, const char *name,
		   const struct pipeline_stack *stack, bool merged, FILE *out);

/* Calls @found with each return address that libdwfl found in the case: the name of an image and a
 * link-time address. */
void expect__each_return(const struct expect *expect, const char *name,
			 void (*found)(void *ctx, const char *image, uint64_t vaddr), void *ctx);

/* The lines of the section "merged". */
void expect__print_merged(const struct pipeline_stack *stack, FILE *out);

/* Writes the case with what is told, called and unwound as it was, and this merged stack. */
void expect__write(const struct expect *expect, const char *name,
		   const struct pipeline_stack *stack, FILE *out);

#endif
