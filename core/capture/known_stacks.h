/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_KNOWN_STACKS_H
#define BRAID_KNOWN_STACKS_H

#include <stddef.h>

#include "bpf/shared.h"
#include "core/capture/known_result.h"

/* Samples that the kernel half may refer to (REC_KNOWN): the last full sample of each of its slots.
 * Memory grows with use and is bounded (KNOWN_WORDS_SMALL in bpf/shared.h). */
struct known_stacks;

struct known_stacks *known_stacks__new(void);	     /* NULL: out of memory */
void known_stacks__free(struct known_stacks *known); /* NULL is fine */

/* Stores a REC_SAMPLE if the kernel half may refer to it. Returns 0 or -ENOMEM. */
int known_stacks__keep(struct known_stacks *known, const struct rec_sample *rec, size_t size);

/* Invalidates the results of all stacks. The stacks stay. */
void known_stacks__forget_results(struct known_stacks *known);

/* Returns the full sample that a REC_KNOWN of @size bytes stands for, with its size; NULL: the
 * stack is missing. *@ret_result is the place of the stack's cached result, NULL if memory is
 * short; @ret_result may be NULL. All are borrowed until the next call. */
const struct rec_sample *known_stacks__take(struct known_stacks *known, const struct rec_known *rec,
					    size_t size, size_t *ret_size,
					    struct known_result **ret_result);

#endif
