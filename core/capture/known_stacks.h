/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_KNOWN_STACKS_H
#define BRAID_KNOWN_STACKS_H

#include <stddef.h>

#include "bpf/shared.h"
#include "core/capture/known_result.h"

/* Samples that the kernel half may refer to (REC_KNOWN): the last whole one of each of its slots.
 * Memory grows with what is kept, and is bounded (KNOWN_WORDS_SMALL in bpf/shared.h). */
struct known_stacks;

struct known_stacks *known_stacks__new(void);	     /* NULL: out of memory */
void known_stacks__free(struct known_stacks *known); /* NULL is fine */

/* A REC_SAMPLE, whether it is one of these or not. -ENOMEM. */
int known_stacks__keep(struct known_stacks *known, const struct rec_sample *rec, size_t size);

/* The stacks stay, but no result of one holds any more. */
void known_stacks__forget_results(struct known_stacks *known);

/* The whole sample that a REC_KNOWN of `size` bytes stands for, and its bytes. Borrowed until the
 * next call, as is where the result of its stack is kept (may be NULL, and gives NULL if memory is
 * short). NULL: the stack is not there. */
const struct rec_sample *known_stacks__take(struct known_stacks *known, const struct rec_known *rec,
					    size_t size, size_t *ret_size,
					    struct known_result **ret_result);

#endif
