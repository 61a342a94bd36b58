// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/copied_frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/copy/unwind_copy.h"
#include "core/target/mapping_times.h"

struct copied_frames {
	struct unwind_copy *copier;
	const struct process *process; /* process of the stack, during the unwinding only */
	uint32_t serial;	       /* process whose images the copier caches ... */
	uint64_t changed_ns, span_ns;  /* ... in the state of these times */
	uint64_t time_ns;	       /* time of the stack */
	struct unwind_copy_frame frames[NATIVE_FRAMES_MAX];
};

static const struct elf_file *find_image(void *ctx, uint64_t ip, struct unwind_copy_place *ret)
{
	struct copied_frames *copied = ctx;
	const struct mapped *mapped = mapping_times__find(copied->process, ip, copied->time_ns);

	if (!mapped || !mapped->image)
		return NULL;
	*ret = (struct unwind_copy_place) { .bias = mapped->bias,
					    .own_start = mapped->image->table.own_start,
					    .own_end = mapped->image->table.own_end };
	return mapped->image->file;
}

int copied_frames__new(struct copied_frames **ret)
{
	struct copied_frames *copied = calloc(1, sizeof(*copied));
	int rc = copied ? unwind_copy__new(find_image, copied, &copied->copier) : -ENOMEM;

	if (rc)
		free(copied);
	else
		*ret = copied;
	return rc;
}

void copied_frames__free(struct copied_frames *copied)
{
	if (!copied)
		return;
	unwind_copy__free(copied->copier);
	free(copied);
}

int copied_frames__renew(struct copied_frames *copied)
{
	struct unwind_copy *copier;
	int ret = unwind_copy__new(find_image, copied, &copier);

	if (ret)
		return ret;
	unwind_copy__free(copied->copier);
	copied->copier = copier;
	copied->serial = 0;
	return 0;
}

/* Returns the number of frames before the first that is outside of all code. libunwind has no data
 * about code that a compiler generated, and may compute a return to any address. */
static int count_frames_in_code(const struct process *process, uint64_t time_ns,
				const struct unwind_copy_frame *frames, int n)
{
	int i;

	for (i = 1; i < n; i++)
		if (!mapping_times__find(process, frames[i].ip, time_ns))
			return i;
	return n;
}

/* Returns the word of frame @i, as in struct rec_sample. */
static uint64_t copied_frame__ip(const struct unwind_copy_frame *frame, int i)
{
	uint64_t evidence = frame->inferred ? EVIDENCE_INFERRED : i ? EVIDENCE_COPY : EVIDENCE_RULE;

	return frame->ip | (frame->exact ? NATIVE_EXACT : 0) | evidence << NATIVE_EVIDENCE_SHIFT;
}

size_t copied_frames__of(struct copied_frames *copied, const struct process *process,
			 const struct rec_stack *stack, struct native_frame *ret,
			 bool *ret_complete)
{
	const struct unwind_copy_frame *frames = copied->frames;
	struct unwind_copy_input input = { .stack_start = stack->start,
					   .stack = stack->data,
					   .stack_size = stack->size };
	uint64_t span_ns = mapping_times__span(process, stack->time_ns);
	int n, in_code, i;

	*ret_complete = false;
	memcpy(input.regs, stack->regs, sizeof(input.regs));
	if (copied->serial != process->serial || copied->changed_ns != process->changed_ns ||
	    copied->span_ns != span_ns)
		unwind_copy__flush(copied->copier);
	copied->process = process;
	copied->serial = process->serial;
	copied->changed_ns = process->changed_ns;
	copied->span_ns = span_ns;
	copied->time_ns = stack->time_ns;
	n = unwind_copy__run(copied->copier, &input, copied->frames, NATIVE_FRAMES_MAX,
			     ret_complete);
	copied->process = NULL;
	if (n <= 0)
		return 0;
	in_code = count_frames_in_code(process, stack->time_ns, frames, n);
	*ret_complete = *ret_complete && in_code == n;
	for (i = 0; i < in_code; i++)
		ret[i] = (struct native_frame) { copied_frame__ip(&frames[i], i), frames[i].cfa };
	return in_code;
}
