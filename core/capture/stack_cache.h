/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_STACK_CACHE_H
#define BRAID_STACK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "core/profile/sink.h"

/* Some of the stacks that samples had last, with the nodes that they became: what is still the
 * same, from the outermost frame on, need not be looked up again. Compared word by word, so that a
 * hit is never wrong. Each serves several threads, as those of a pool have much in common and many
 * stacks would be cold memory. */
#define STACK_CACHE_STACKS  16
#define STACK_CACHE_THREADS 512

struct cached_pair { /* one frame, as the kernel half sends it or after pairing */
	uint64_t first;
	uint64_t address; /* on the stack; 0: none */
};

/* What else the nodes of a stack depend on. */
struct cached_basis {
	uint32_t process;    /* its id */
	uint32_t runtimes;   /* that are attached to the process, of a native stack */
	uint64_t changed_ns; /* of the process's mappings */
	uint64_t span_ns;    /* mapping_times__span at the sample, of a native stack */
	uint32_t version;    /* of what it tells of code that no file backs; if `moving` */
};

struct cached_frame {
	uint64_t first;
	int64_t offset; /* as ids__node takes it */
	uint32_t node;
	uint8_t runtime;  /* whose frame it is; of a native stack 0 */
	uint8_t evidence; /* of a runtime frame: enum native_evidence; of a native stack 0 */
};

struct cached_stack {
	struct cached_basis basis;
	bool moving;		     /* it has frames of such code */
	struct cached_frame *frames; /* outermost first */
	size_t n, cap;
};

struct cached_thread {
	uint32_t process, tid; /* its id; of the thread */
	uint32_t row;	       /* the id of the thread under this name; 0: not known */
	uint32_t serial;       /* of the process, as the tracker gave it */
	uint32_t asked; /* bit n: runtimes[n] was asked for the name that the program gave it */
	bool given;	/* the row has that name, which counts more than the kernel's, */
	bool settled;	/* and the kernel's has not changed since */
	char name[THREAD_NAME_BYTES]; /* the kernel's, at its last sample */
};

struct stack_cache;

struct stack_cache *stack_cache__new(void);	   /* NULL: out of memory */
void stack_cache__free(struct stack_cache *cache); /* NULL is fine */

/* Of stacks; threads stay. */
void stack_cache__forget(struct stack_cache *cache);

/* Borrowed until the next call; without a row if nothing is known of the thread. */
struct cached_thread *stack_cache__thread(struct stack_cache *cache, uint32_t process,
					  uint32_t tid);

/* Each of them in turn, number 0 to STACK_CACHE_THREADS - 1; without a row: none. */
struct cached_thread *stack_cache__nth_thread(struct stack_cache *cache, size_t n);

/* One that may be alike. */
struct cached_stack *stack_cache__native(struct stack_cache *cache, uint32_t tid);
struct cached_stack *stack_cache__runtime(struct stack_cache *cache, uint32_t tid);

/* A pair's offset below the stack's base. `apart`: the address that means SINK_APART, or 0. */
static inline int64_t cached_pair__offset(const struct cached_pair *pair, uint64_t base,
					  uint64_t apart)
{
	if (!pair->address)
		return SINK_NO_OFFSET;
	return pair->address == apart ? SINK_APART : (int64_t)(base - pair->address);
}

/* A stack that is looked for; all arrays innermost first. */
struct cached_query {
	const struct cached_pair *pairs;
	const uint8_t *runtimes; /* of each pair; NULL: they are native frames */
	const uint8_t *evidence; /* the same */
	size_t n;
	uint64_t base, apart; /* as for cached_pair__offset */
};

/* How many of the outermost frames are as before, on the same basis; `ret_node` is the node of the
 * innermost one of these, 0 for none. */
size_t cached_stack__common(const struct cached_stack *stack, const struct cached_basis *basis,
			    const struct cached_query *query, uint32_t *ret_node);

/* Keeps the `n` outermost frames, and none if the basis is another. Then add those inside them. */
void cached_stack__begin(struct cached_stack *stack, const struct cached_basis *basis, size_t n);

/* The next frame inwards. Where memory is short it is not kept, nor are those after it. */
void cached_stack__add(struct cached_stack *stack, size_t depth, const struct cached_frame *frame);

#endif
