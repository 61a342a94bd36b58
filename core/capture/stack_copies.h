/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_STACK_COPIES_H
#define BRAID_STACK_COPIES_H

#include <stddef.h>

#include "bpf/shared.h"

/* Stack copies, which precede their samples, until the samples arrive. */
struct stack_copies;

struct stack_copies *stack_copies__new(int n_cpus);   /* one per CPU; NULL: out of memory */
void stack_copies__free(struct stack_copies *copies); /* NULL is fine */

/* Stores a copy of @size bytes; evicts the oldest copy if necessary. Drops a record that is too
 * short. */
void stack_copies__keep(struct stack_copies *copies, const struct rec_stack *rec, size_t size);

/* Returns the copy of this sample, borrowed until the next call; NULL: the copy was lost. */
const struct rec_stack *stack_copies__take(struct stack_copies *copies,
					   const struct rec_sample *rec);

#endif
