/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_STACK_COPIES_H
#define BRAID_STACK_COPIES_H

#include <stddef.h>

#include "bpf/shared.h"

/* Stack copies, which precede their samples, until these come. */
struct stack_copies;

struct stack_copies *stack_copies__new(int n_cpus);   /* one per CPU; NULL: out of memory */
void stack_copies__free(struct stack_copies *copies); /* NULL is fine */

/* `size` is what arrived: what is too short is left out. In place of the oldest, if need be. */
void stack_copies__keep(struct stack_copies *copies, const struct rec_stack *rec, size_t size);

/* The copy of this sample, borrowed until the next call; NULL: it was lost. */
const struct rec_stack *stack_copies__take(struct stack_copies *copies,
					   const struct rec_sample *rec);

#endif
