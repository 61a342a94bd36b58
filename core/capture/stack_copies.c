// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/stack_copies.h"

#include <stdlib.h>
#include <string.h>

struct stack_copies {
	int n;
	struct rec_stack list[]; /* type 0: free */
};

struct stack_copies *stack_copies__new(int n_cpus)
{
	struct stack_copies *copies = calloc(1, sizeof(*copies) + n_cpus * sizeof(copies->list[0]));

	if (copies)
		copies->n = n_cpus;
	return copies;
}

void stack_copies__free(struct stack_copies *copies)
{
	free(copies);
}

void stack_copies__keep(struct stack_copies *copies, const struct rec_stack *rec, size_t size)
{
	int i, slot = 0;

	if (size < REC_STACK_HEADER || rec->size > size - REC_STACK_HEADER)
		return;
	for (i = 0; i < copies->n; i++) {
		if (!copies->list[i].type) {
			slot = i;
			break;
		}
		if (copies->list[i].time_ns < copies->list[slot].time_ns)
			slot = i; /* the sample of that copy was lost */
	}
	memcpy(&copies->list[slot], rec, REC_STACK_HEADER + rec->size);
}

const struct rec_stack *stack_copies__take(struct stack_copies *copies,
					   const struct rec_sample *rec)
{
	int i;

	for (i = 0; i < copies->n; i++)
		if (copies->list[i].type && copies->list[i].tid == rec->tid &&
		    copies->list[i].time_ns == rec->time_ns) {
			copies->list[i].type = 0;
			return &copies->list[i];
		}
	return NULL;
}
