/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SENT_STACKS_H
#define BRAID_SENT_STACKS_H

#include <stddef.h>

#include "bpf/shared.h"
#include "core/capture/cached_result.h"

/* Samples that the kernel half may refer to (REC_REPEAT): the last full sample of each of its
 * slots. Memory grows with use and is bounded (SENT_WORDS_SMALL in bpf/shared.h). */
struct sent_stacks;

struct sent_stacks *sent_stacks__new(void);	  /* NULL: out of memory */
void sent_stacks__free(struct sent_stacks *sent); /* NULL is fine */

/* Stores a REC_SAMPLE if the kernel half may refer to it. Returns 0 or -ENOMEM. */
int sent_stacks__store(struct sent_stacks *sent, const struct rec_sample *rec, size_t size);

/* Invalidates the results of all stacks. The stacks stay. */
void sent_stacks__forget_results(struct sent_stacks *sent);

/* Returns the full sample that a REC_REPEAT of @size bytes stands for, with its size; NULL: the
 * stack is missing. *@ret_result is the place of the stack's cached result, NULL if memory is
 * short; @ret_result may be NULL. All are borrowed until the next call. */
const struct rec_sample *sent_stacks__find(struct sent_stacks *sent, const struct rec_repeat *rec,
					   size_t size, size_t *ret_size,
					   struct cached_result **ret_result);

#endif
