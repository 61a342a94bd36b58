/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_STACK_MEMO_H
#define BRAID_STACK_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "core/recording.h"

/* Some of the stacks that samples had last, with the nodes that they became: what is still the
 * same, from the outermost frame on, need not be looked up again. Compared word by word, so that a
 * hit is never wrong. Each serves several threads, as those of a pool have much in common and many
 * stacks would be cold memory. */
#define STACK_MEMO_STACKS  16
#define STACK_MEMO_THREADS 512

struct memo_pair { /* one frame, as the kernel half sends it or after pairing */
	uint64_t first;
	uint64_t address; /* on the stack; 0: none */
};

/* What else the nodes of a stack depend on. */
struct memo_basis {
	uint32_t process;    /* the recording's row */
	uint32_t runtimes;   /* that are attached to the process, or that whose frames these are */
	uint64_t changed_ns; /* of the process's mappings */
	uint32_t version;    /* of what it tells of code that no file backs; if `moving` */
};

struct memo_frame {
	uint64_t first;
	int64_t offset; /* as recording__node takes it */
	uint32_t node;
};

struct memo_stack {
	struct memo_basis basis;
	bool moving;		   /* it has frames of such code */
	struct memo_frame *frames; /* outermost first */
	size_t n, cap;
};

struct memo_thread {
	uint32_t process, tid; /* the recording's row; of the thread */
	uint32_t row;	       /* the recording's, of the thread under this name; 0: not known */
	char name[THREAD_NAME_BYTES];
};

struct stack_memo;

struct stack_memo *stack_memo__new(void);	/* NULL: out of memory */
void stack_memo__free(struct stack_memo *memo); /* NULL is fine */

/* Borrowed until the next call; without a row if nothing is known of the thread. */
struct memo_thread *stack_memo__thread(struct stack_memo *memo, uint32_t process, uint32_t tid);

/* One that may be alike. */
struct memo_stack *stack_memo__native(struct stack_memo *memo, uint32_t tid);
struct memo_stack *stack_memo__runtime(struct stack_memo *memo, uint32_t tid);

/* A pair's offset below the stack's base. `apart`: the address that means RECORDING_APART, or 0. */
static inline int64_t memo_pair__offset(const struct memo_pair *pair, uint64_t base, uint64_t apart)
{
	if (!pair->address)
		return RECORDING_NO_OFFSET;
	return pair->address == apart ? RECORDING_APART : (int64_t)(base - pair->address);
}

/* How many of the outermost frames are as before, on the same basis; `ret_node` is the node of the
 * innermost one of these, 0 for none. `pairs` innermost first. */
size_t memo_stack__common(const struct memo_stack *stack, const struct memo_basis *basis,
			  const struct memo_pair *pairs, size_t n, uint64_t base, uint64_t apart,
			  uint32_t *ret_node);

/* Keeps the `n` outermost frames, and none if the basis is another. Then add those inside them. */
void memo_stack__begin(struct memo_stack *stack, const struct memo_basis *basis, size_t n);

/* The next frame inwards. Where memory is short it is not kept, nor are those after it. */
void memo_stack__add(struct memo_stack *stack, size_t depth, const struct memo_frame *frame);

#endif
