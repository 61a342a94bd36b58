/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_STACK_CACHE_H
#define BRAID_STACK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "core/profile/sink.h"

/* A cache of recent stacks and their nodes. The outermost frames that are unchanged need no
 * look-up. The comparison is word by word, so that a hit is never wrong. Each entry serves several
 * threads: threads of a pool have much in common, and many entries would be cold memory. */
#define STACK_CACHE_STACKS  16
#define STACK_CACHE_THREADS 512

struct cached_pair { /* a frame from the kernel half, or after pairing */
	uint64_t first;
	uint64_t address; /* address on the stack; 0: none */
};

/* the other data that the nodes of a stack depend on */
struct cached_basis {
	uint32_t process;    /* id of the process */
	uint32_t runtimes;   /* native stacks: attached runtimes of the process */
	uint64_t changed_ns; /* last change of the process's mappings */
	uint64_t span_ns;    /* native stacks: mapping_times__span() at the sample */
	uint32_t version;    /* if `moving`: version of the process's maps of code without a file */
};

struct cached_frame {
	uint64_t first;
	int64_t offset; /* offset for ids__node() */
	uint32_t node;
	uint8_t runtime;  /* index of the frame's runtime; 0 in native stacks */
	uint8_t evidence; /* enum native_evidence of a runtime frame; 0 in native stacks */
};

struct cached_stack {
	struct cached_basis basis;
	bool moving;		     /* has frames in code without a file */
	struct cached_frame *frames; /* outermost first */
	size_t n, cap;
};

struct cached_thread {
	uint32_t process, tid; /* id of the process; tid of the thread */
	uint32_t row;	       /* id of the thread with its present name; 0: not assigned */
	uint32_t serial;       /* the tracker's serial number of the process */
	uint32_t requested;    /* bit n: runtimes[n] had a request for the program's name */
	bool given;	       /* the row has the program's name, which overrides the kernel's */
	bool settled;	       /* the kernel's name has not changed since */
	char name[THREAD_NAME_BYTES]; /* the kernel's name in the last sample */
};

struct stack_cache;

struct stack_cache *stack_cache__new(void);	   /* NULL: out of memory */
void stack_cache__free(struct stack_cache *cache); /* NULL is fine */

/* Drops all stacks; threads stay. */
void stack_cache__forget(struct stack_cache *cache);

/* Returns the entry of a thread, borrowed until the next call. Its row is 0 if the thread is
 * new. */
struct cached_thread *stack_cache__thread(struct stack_cache *cache, uint32_t process,
					  uint32_t tid);

/* Returns entry @n, from 0 to STACK_CACHE_THREADS - 1; a row of 0 means that it is empty. */
struct cached_thread *stack_cache__nth_thread(struct stack_cache *cache, size_t n);

/* Return an entry that may have a similar stack. */
struct cached_stack *stack_cache__native(struct stack_cache *cache, uint32_t tid);
struct cached_stack *stack_cache__runtime(struct stack_cache *cache, uint32_t tid);

/* Returns a pair's offset below the stack's base. @apart is the address that means SINK_APART, or
 * 0. */
static inline int64_t cached_pair__offset(const struct cached_pair *pair, uint64_t base,
					  uint64_t apart)
{
	if (!pair->address)
		return SINK_NO_OFFSET;
	return pair->address == apart ? SINK_APART : (int64_t)(base - pair->address);
}

/* a stack to look up; all arrays are innermost first */
struct cached_query {
	const struct cached_pair *pairs;
	const uint8_t *runtimes; /* runtime of each pair; NULL: native frames */
	const uint8_t *evidence; /* evidence of each pair; NULL: native frames */
	size_t n;
	uint64_t base, apart; /* as in cached_pair__offset() */
};

/* Returns how many of the outermost frames are unchanged, with the same basis. *@ret_node is the
 * node of the innermost of these; 0: none. */
size_t cached_stack__common(const struct cached_stack *stack, const struct cached_basis *basis,
			    const struct cached_query *query, uint32_t *ret_node);

/* Shortens @stack to its @n outermost frames, or to none if the basis differs. The caller then adds
 * the inner frames. */
void cached_stack__begin(struct cached_stack *stack, const struct cached_basis *basis, size_t n);

/* Adds the next inner frame. If memory is short, this frame and the frames after it are left
 * out. */
void cached_stack__add(struct cached_stack *stack, size_t depth, const struct cached_frame *frame);

#endif
